/* SPDX-License-Identifier: Apache-2.0 */
/* Interleaved plans: each runs as often as requested, and the slower one is found slower. */
#include "bench/bench.h"
#include "ew_test.h"
#include "plan/plan.h"

static struct ew_plan *plan(const char *name, int64_t side, struct ew_graph **g)
{
    struct ew_plan *p = NULL;
    const struct ew_model_opts m = {.size = sizeof(m), .height = side, .width = side};
    const struct ew_plan_opts o = {.optimize = true, .backend = {.threads = 1}};
    EW_EXPECT_OK(ew_model_build(name, &m, g));
    EW_EXPECT_OK(ew_model_init(name, 1, *g));
    EW_EXPECT_OK(ew_plan_compile(*g, &o, &p));
    return p;
}

static void count(void *ctx, int64_t done, int64_t total)
{
    int64_t *last = ctx;
    EW_EXPECT_INT(done, *last + 1);
    EW_EXPECT(done <= total);
    *last = done;
}

static void the_slower_one_is_slower(void)
{
    struct ew_graph *g[2];
    /* More than thirty times the arithmetic: no load on the machine can outweigh that. */
    struct ew_bench_side s[2] = {{.p = plan("lenet5", 28, &g[0])},
                                 {.p = plan("squeezenet1_1", 64, &g[1])}};
    const struct ew_bench_opts o = {.warmup = 1, .iters = 7, .trials = 2, .rounds = 3};
    int64_t ticks = 0;
    if (EW_EXPECT_OK(ew_bench_interleave(s, 2, &o, count, &ticks))) {
        EW_EXPECT_INT(ticks, 6);
        EW_EXPECT_INT(s[0].time.n, 14);
        EW_EXPECT_INT(s[1].time.n, 14);
        EW_EXPECT_NEAR(s[0].ratio, 1, 1e-12);
        EW_EXPECT(s[1].ratio < 1 && s[1].ratio > 0);
        EW_EXPECT_NEAR(s[0].ratio_min, 1, 1e-12);
        EW_EXPECT(s[1].ratio_min < 1 && s[1].ratio_min > 0);
        EW_EXPECT(s[1].ratio_low <= s[1].ratio && s[1].ratio <= s[1].ratio_high);
        EW_EXPECT(s[1].time.median_ms > s[0].time.median_ms);
        EW_EXPECT(s[0].trial_sd_ms >= 0);
    }
    for (int i = 0; i < 2; i++) {
        ew_plan_free(s[i].p);
        ew_graph_free(g[i]);
    }
}

static void nothing_to_run_is_refused(void)
{
    struct ew_bench_side s = {0};
    const struct ew_bench_opts none = {.iters = 0, .trials = 1};
    EW_EXPECT_ERR(ew_bench_interleave(&s, 1, &none, NULL, NULL), EW_ERR_ARG, "nothing");
}

EW_TEST_MAIN(EW_TEST(the_slower_one_is_slower), EW_TEST(nothing_to_run_is_refused))
