/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement of results with published ones in order, optimum and trend. */
#include "study/trend_agreement.h"

#include <string.h>

#include "ew_test.h"

static struct ew_published_row rows[8];
static struct ew_published_comparison list[8];

static void put(int i, const char *settings, double theirs, double ours)
{
    ew_record_clear(EW_RECORD_PUBLISHED, &rows[i]);
    rows[i].metric = "stall_s";
    rows[i].board = "Jetson Nano";
    rows[i].settings = settings;
    rows[i].value = theirs;
    list[i] = (struct ew_published_comparison){
        .published = &rows[i], .jobs = 1, .runs = 1, .value = ours};
}

static const struct ew_trend_agreement *find(const struct ew_trend_agreement *v, int n,
                                             const char *key, const char *fixed)
{
    for (int i = 0; i < n; i++)
        if (strcmp(v[i].key, key) == 0 && strcmp(v[i].fixed, fixed) == 0)
            return &v[i];
    return NULL;
}

static void sets_differ_in_one_setting(void)
{
    struct ew_arena a;
    struct ew_trend_agreement *v;
    int n;
    char text[EW_TREND_AGREEMENT_CHARS];
    ew_arena_init(&a);
    put(0, "network=lenet5 workers=0", 42, 4.2);
    put(1, "network=lenet5 workers=1", 17, 2.0);
    put(2, "network=lenet5 workers=2", 12, 1.5);
    put(3, "network=vgg11 workers=0", 90, 1.0);
    put(4, "network=vgg11 workers=1", 91, 5.0); /* a tie in the publication: it has no order */
    put(5, "network=vgg11 workers=2", 50, 9.0);
    put(6, "network=vgg11 workers=4", 1, 1);
    list[6].runs = 0; /* not run here */
    EW_EXPECT_OK(ew_trend_agreement_find(list, 7, &a, &v, &n));
    const struct ew_trend_agreement *s = find(v, n, "workers", "network=lenet5");
    if (EW_EXPECT(s)) {
        EW_EXPECT_INT(s->n, 3);
        EW_EXPECT_INT(s->pairs, 3);
        EW_EXPECT_INT(s->agree, 3);
        EW_EXPECT(ew_trend_agreement_holds(s));
        EW_EXPECT_STR(ew_trend_agreement_text(s, text),
                      "same order, same lowest (2), same trend (falls)");
    }
    s = find(v, n, "workers", "network=vgg11");
    if (EW_EXPECT(s)) {
        EW_EXPECT_INT(s->n, 3);
        EW_EXPECT_INT(s->pairs, 2);
        EW_EXPECT_INT(s->agree, 0);
        EW_EXPECT(!ew_trend_agreement_holds(s));
        EW_EXPECT_STR(ew_trend_agreement_text(s, text),
                      "order: 0 of 2 pairs agree, lowest at 0, published at "
                      "2, trend: rises, published: falls");
    }
    /* For names there is an order of figures, but no trend. */
    s = find(v, n, "network", "workers=1");
    if (EW_EXPECT(s)) {
        EW_EXPECT_INT(s->trend, 0);
        EW_EXPECT_STR(ew_trend_agreement_text(s, text), "same order, same lowest (lenet5)");
    }
    ew_arena_fini(&a);
}

/* Regression: the worst F1 was called the optimum; and results measured while the machine was busy
 * are marked as such. */
static void the_best_score_is_the_highest(void)
{
    struct ew_arena a;
    struct ew_trend_agreement *v;
    int n;
    char text[EW_TREND_AGREEMENT_CHARS];
    ew_arena_init(&a);
    put(0, "network=alexnet", 0.8, 0.7);
    put(1, "network=lenet5", 0.9, 0.6);
    list[0].higher = list[1].higher = true;
    list[1].noisy = 1;
    EW_EXPECT_OK(ew_trend_agreement_find(list, 2, &a, &v, &n));
    EW_EXPECT_INT(n, 1);
    EW_EXPECT_STR(ew_trend_agreement_text(&v[0], text),
                  "order: 0 of 1 pairs agree, highest at alexnet, "
                  "published at lenet5; ours are noisy");
    ew_arena_fini(&a);
}

static void long_words_are_cut(void)
{
    static char word[400];
    struct ew_trend_agreement s = {.pairs = 1, .trend = 1, .trend_here = -1, .noisy = true};
    char text[EW_TREND_AGREEMENT_CHARS];
    memset(word, 'x', sizeof(word) - 1);
    s.best = word;
    s.best_here = "y";
    EW_EXPECT(strlen(ew_trend_agreement_text(&s, text)) < EW_TREND_AGREEMENT_CHARS);
}

EW_TEST_MAIN(EW_TEST(sets_differ_in_one_setting), EW_TEST(the_best_score_is_the_highest),
             EW_TEST(long_words_are_cut))
