/* SPDX-License-Identifier: Apache-2.0 */
/* Scores and learning rate schedules against values computed by hand. */
#include <math.h>

#include "ew_test.h"
#include "train/schedule.h"
#include "train/scores.h"

/* Truth 0 0 0 1 1 2, predictions 0 0 1 1 2 2; class 3 never occurs.
 * Precision 1, 1/2, 1/2; recall 2/3, 1/2, 1; F1 4/5, 1/2, 2/3. */
static void counts_as_by_hand(void)
{
    static const int64_t labels[] = {0, 0, 0, 1, 1, 2};
    static const int predicted[] = {0, 0, 1, 1, 2, 2};
    float scores[6 * 4] = {0};
    for (int i = 0; i < 6; i++)
        scores[i * 4 + predicted[i]] = 2;
    struct ew_confusion c;
    EW_EXPECT_OK(ew_confusion_init(&c, 4));
    ew_confusion_add(&c, scores, labels, 4);
    ew_confusion_add(&c, scores + 16, labels + 4, 2);
    const struct ew_scores s = ew_confusion_scores(&c);
    EW_EXPECT_NEAR(s.accuracy, 4 / 6.0, 1e-12);
    EW_EXPECT_NEAR(s.precision, 2 / 3.0, 1e-12);
    EW_EXPECT_NEAR(s.recall, (2 / 3.0 + 0.5 + 1) / 3, 1e-12);
    EW_EXPECT_NEAR(s.f1, (0.8 + 0.5 + 2 / 3.0) / 3, 1e-12);
    EW_EXPECT_INT(s.samples, 6);
    /* A correct prediction costs log(e^2 + 3) - 2, a wrong one log(e^2 + 3). */
    EW_EXPECT_NEAR(s.loss, log(exp(2) + 3) - 2 * 4 / 6.0, 1e-6);
    EW_EXPECT_NEAR(ew_confusion_class(&c, 1).f1, 0.5, 1e-12);
    EW_EXPECT_INT(ew_confusion_class(&c, 0).samples, 3);
    EW_EXPECT_NEAR(ew_confusion_class(&c, 3).f1, 0, 0);
    ew_confusion_clear(&c);
    EW_EXPECT_NEAR(ew_confusion_scores(&c).f1, 0, 0);
    ew_confusion_fini(&c);
}

/* Scores with a NaN predict no class: neither the first nor the last. */
static void scores_that_are_no_numbers(void)
{
    static const float scores[] = {NAN, NAN, NAN, 0, NAN, 5, -INFINITY, 1, INFINITY};
    static const int64_t labels[] = {0, 2, 2};
    struct ew_confusion c;
    EW_EXPECT_INT(ew_best_class((const float[]){NAN, 1, NAN, 3, 3}, 5), -1);
    EW_EXPECT_INT(ew_best_class((const float[]){1, 3, 3}, 3), 1);
    EW_EXPECT_INT(ew_best_class((const float[]){7}, 1), 0);
    EW_EXPECT_OK(ew_confusion_init(&c, 3));
    ew_confusion_add(&c, scores, labels, 3);
    EW_EXPECT_INT(c.total, 3);
    EW_EXPECT_INT(c.correct, 1);
    EW_EXPECT_INT(ew_confusion_unanswered(&c), 2);
    EW_EXPECT_INT(ew_confusion_class(&c, 2).samples, 2);
    EW_EXPECT_NEAR(ew_confusion_class(&c, 2).recall, 0.5, 0);
    EW_EXPECT_NEAR(ew_confusion_class(&c, 2).precision, 1, 0);
    EW_EXPECT_NEAR(ew_confusion_class(&c, 0).recall, 0, 0);
    EW_EXPECT(isnan(ew_confusion_scores(&c).loss));
    ew_confusion_clear(&c);
    EW_EXPECT_INT(ew_confusion_unanswered(&c), 0);
    ew_confusion_fini(&c);
    EW_EXPECT_ERR(ew_confusion_init(&c, 0), EW_ERR_LIMIT, "0 classes");
}

/* Scores 2 0 0 of label 0 and 0 1 0 of label 2, against targets 1 0 0 and 0 0 1. */
static void losses_that_are_not_of_labels(void)
{
    static const float scores[] = {2, 0, 0, 0, 1, 0};
    static const int64_t labels[] = {0, 2};
    struct ew_confusion c;
    EW_EXPECT_OK(ew_confusion_init(&c, 3));
    c.loss = ew_loss_of_options("epochs = 3\nloss = mse\nlr = 0.1\n", NULL);
    ew_confusion_add(&c, scores, labels, 2);
    EW_EXPECT_NEAR(ew_confusion_scores(&c).loss, (1 / 3.0 + 2 / 3.0) / 2, 1e-12);
    ew_confusion_fini(&c);
    EW_EXPECT(ew_loss_of_options("epochs = 3\nloss-scale = l1\n", NULL) == NULL);
    EW_EXPECT(ew_loss_of_options("loss = none such\n", NULL) == NULL);
}

static double rate(const struct ew_schedule *s, double epoch)
{
    return ew_schedule_rate(s, (int64_t)(epoch * (double)s->steps_per_epoch));
}

static void falls_as_it_should(void)
{
    struct ew_schedule s = {.lr = 0.1,
                            .gamma = 0.1,
                            .every = 3,
                            .epochs = 10,
                            .steps_per_epoch = 100,
                            .milestones = {2, {4, 8}}};
    s.kind = EW_SCHEDULE_CONSTANT;
    EW_EXPECT_NEAR(rate(&s, 9.99), 0.1, 0);
    s.kind = EW_SCHEDULE_STEP;
    EW_EXPECT_NEAR(rate(&s, 2.99), 0.1, 1e-15);
    EW_EXPECT_NEAR(rate(&s, 3), 0.01, 1e-15);
    EW_EXPECT_NEAR(rate(&s, 9.5), 0.0001, 1e-15);
    s.kind = EW_SCHEDULE_MULTISTEP;
    EW_EXPECT_NEAR(rate(&s, 3.99), 0.1, 1e-15);
    EW_EXPECT_NEAR(rate(&s, 4), 0.01, 1e-15);
    EW_EXPECT_NEAR(rate(&s, 8), 0.001, 1e-15);
    s.kind = EW_SCHEDULE_COSINE;
    EW_EXPECT_NEAR(rate(&s, 0), 0.1, 1e-15);
    EW_EXPECT_NEAR(rate(&s, 5), 0.05, 1e-15);
    EW_EXPECT_NEAR(rate(&s, 2.5), 0.05 * (1 + sqrt(0.5)), 1e-12);
    EW_EXPECT_NEAR(rate(&s, 10), 0, 1e-15);
    EW_EXPECT_NEAR(rate(&s, 12), 0, 1e-15);
}

static void warms_up_in_a_line(void)
{
    struct ew_schedule s = {
        .kind = EW_SCHEDULE_COSINE, .lr = 0.5, .warmup = 2, .epochs = 10, .steps_per_epoch = 50};
    EW_EXPECT_NEAR(ew_schedule_rate(&s, 0), 0.5 / 101, 1e-15);
    EW_EXPECT_NEAR(ew_schedule_rate(&s, 49), 0.5 * 50 / 101, 1e-15);
    EW_EXPECT_NEAR(ew_schedule_rate(&s, 100), 0.5, 1e-15);
    EW_EXPECT_NEAR(ew_schedule_rate(&s, 300), 0.25, 1e-15); /* in the middle of the remaining
                                                             * steps */
}

/* Wilson's bounds are the shares b with (p - b)^2 = z^2 b (1 - b) / n. */
static void intervals(void)
{
    struct ew_confusion c = {.total = 200, .correct = 104};
    const double z2 = 1.959964 * 1.959964;
    double b[2];
    ew_confusion_interval(&c, &b[0], &b[1]);
    for (int i = 0; i < 2; i++)
        EW_EXPECT_NEAR((0.52 - b[i]) * (0.52 - b[i]), z2 * b[i] * (1 - b[i]) / 200, 1e-12);
    EW_EXPECT(b[0] < 0.52 && b[1] > 0.52);
    for (int all = 0; all < 2; all++) {
        c = (struct ew_confusion){.total = 20, .correct = all ? 20 : 0};
        ew_confusion_interval(&c, &b[0], &b[1]);
        EW_EXPECT_NEAR(b[all], all, 0);
        EW_EXPECT_NEAR(b[!all], all ? 20 / (20 + z2) : z2 / (20 + z2), 1e-12);
    }
    c.total = c.correct = 0;
    ew_confusion_interval(&c, &b[0], &b[1]);
    EW_EXPECT(b[0] <= 0 && b[1] >= 1);
}

EW_TEST_MAIN(EW_TEST(counts_as_by_hand), EW_TEST(intervals), EW_TEST(scores_that_are_no_numbers),
             EW_TEST(losses_that_are_not_of_labels), EW_TEST(falls_as_it_should),
             EW_TEST(warms_up_in_a_line))
