/* SPDX-License-Identifier: Apache-2.0 */
/* Distillation: training with a teacher's scores. */
#include <math.h>
#include <string.h>

#include "train/learner.h"
#include "train/train_test.h"

/* Loss of the first batch, at learning rate 0. */
static double first_loss(struct ew_graph *net, struct ew_teacher teacher)
{
    struct ew_dataset *data = NULL;
    struct ew_loader *l = NULL;
    const struct ew_batch *b = NULL;
    struct ew_learner k;
    const void *features[EW_LEARNER_INPUTS];
    const struct ew_learner_opts o = {
        .optimizer = {.momentum = 0.9}, .batch = 32, .threads = 1, .teacher = teacher};
    EW_EXPECT_OK(ew_dataset_open(TEST_DATA, &data));
    const struct ew_loader_opts lo = {.data = data, .batch = 32, .drop_last = true};
    EW_EXPECT_OK(ew_loader_open(&lo, &l));
    EW_EXPECT_OK(ew_loader_start(l, 0, 0));
    EW_EXPECT_OK(ew_loader_next(l, &b));
    double loss = NAN;
    if (EW_EXPECT_OK(ew_learner_open(net, &o, &k))) {
        EW_EXPECT_OK(ew_learner_features(&k, b->images, features));
        EW_EXPECT_OK(ew_learner_teach(&k, b->images));
        EW_EXPECT_OK(ew_learner_step(&k, features, b->labels, 0, 0));
        loss = ew_learner_loss(&k);
    }
    ew_learner_close(&k);
    ew_loader_release(l, b);
    ew_loader_close(l);
    ew_dataset_close(data);
    return loss;
}

static void the_loss_is_between_labels_and_teacher(void)
{
    struct ew_graph *net = small_net(), *same = small_net(), *other = small_net();
    EW_EXPECT_OK(ew_model_init("lenet5", 77, other));
    for (int v = 0; v < other->n_values; v++) /* fresh weights give nearly uniform scores */
        for (int64_t i = 0;
             other->values[v].kind == EW_VALUE_PARAM && i < ew_tensor_count(&other->values[v].t);
             i++)
            ((float *)other->values[v].t.data)[i] *= 3;
    const double labels = first_loss(net, (struct ew_teacher){0});
    const double alone = first_loss(net, (struct ew_teacher){other, 1, 2});
    EW_EXPECT(labels > 1 && alone > 0.01);
    /* A teacher with the same scores leaves a loss of 0. */
    EW_EXPECT_NEAR(first_loss(net, (struct ew_teacher){same, 1, 2}), 0, 1e-5);
    EW_EXPECT_NEAR(first_loss(net, (struct ew_teacher){other, 0, 2}), labels, 1e-5);
    EW_EXPECT_NEAR(first_loss(net, (struct ew_teacher){other, 0.25, 2}),
                   0.75 * labels + 0.25 * alone, 1e-5);
    ew_graph_free(net);
    ew_graph_free(same);
    ew_graph_free(other);
}

/* Runs a job to its end and returns the loss of the last epoch. */
static double last_loss(const struct ew_train_job *job)
{
    struct ew_trainer *t = NULL;
    if (!EW_EXPECT_OK(ew_trainer_open(job, &t)))
        return NAN;
    train_some(t, 0);
    const double loss = ew_trainer_epoch(t)->train_loss;
    ew_trainer_close(t);
    return loss;
}

static void a_student_follows_its_teacher(void)
{
    struct ew_dataset *data = NULL;
    struct ew_graph *teacher = small_net(), *net = small_net();
    EW_EXPECT_OK(ew_dataset_open(TEST_DATA, &data));
    EW_EXPECT_OK(ew_model_init("lenet5", 77, net));
    struct ew_train_job job = {.net = teacher, .data = data, .opts = small_opts(), .options = ""};
    last_loss(&job);
    job.net = net;
    job.teacher = (struct ew_teacher){teacher, 1, 2};
    job.opts.epochs = 1;
    const double first = last_loss(&job);
    job.opts.epochs = 4;
    EW_EXPECT(last_loss(&job) < 0.9 * first);
    job.opts.label_smoothing = 0.1;
    struct ew_trainer *t = NULL;
    EW_EXPECT_ERR(ew_trainer_open(&job, &t), EW_ERR_USAGE, "neither --label-smoothing");
    ew_graph_free(teacher);
    ew_graph_free(net);
    ew_dataset_close(data);
}

EW_TEST_MAIN(EW_TEST(the_loss_is_between_labels_and_teacher),
             EW_TEST(a_student_follows_its_teacher))
