/* SPDX-License-Identifier: Apache-2.0 */
/* Streams under load: all run, requests arrive at their times, percentiles are by rank. */
#include "bench/bench_load.h"

#include <math.h>

#include "ew_test.h"

static struct ew_graph *net;
static struct ew_plan *plans[2];

static void open_plans(void)
{
    const struct ew_plan_opts o = {.optimize = true, .backend = {.threads = 1}};
    EW_EXPECT_OK(ew_model_build("lenet5", NULL, &net));
    EW_EXPECT_OK(ew_model_init("lenet5", 1, net));
    for (int i = 0; i < 2; i++) {
        EW_EXPECT_OK(ew_plan_compile(net, &o, &plans[i]));
        ew_bench_fill(plans[i], net, 10, 1);
    }
}

static void close_plans(void)
{
    for (int i = 0; i < 2; i++)
        ew_plan_free(plans[i]);
    ew_graph_free(net);
}

static void rising(void *ctx, int64_t done, int64_t total)
{
    int64_t *last = ctx;
    EW_EXPECT(done >= *last && done < total);
    *last = done;
}

static void one_stream_runs_as_often_as_asked(void)
{
    struct ew_load_result r;
    struct ew_bench_stats s;
    const struct ew_load_opts o = {.warmup = 2, .iters = 37};
    int64_t last = 0;
    open_plans();
    if (EW_EXPECT_OK(ew_bench_load(plans, 1, &o, rising, &last, &r)) &&
        EW_EXPECT_OK(ew_load_stats(&r, &s))) {
        EW_EXPECT_INT(r.n, 37);
        EW_EXPECT_INT(s.n, 37);
        EW_EXPECT_INT(last, 36);
        EW_EXPECT_NEAR(ew_load_percentile(&r, 100), s.max_ms, 1e-12);
        EW_EXPECT_NEAR(ew_load_percentile(&r, 0), s.min_ms, 1e-12);
        EW_EXPECT(r.wall_s * 1e3 >= s.mean_ms);
    }
    ew_load_result_fini(&r);
    close_plans();
}

/* Request k arrives at k / qps, whichever stream serves it and however late. */
static void requests_come_at_their_times(void)
{
    struct ew_load_result r;
    const struct ew_load_opts o = {.iters = 20, .qps = 1000, .duration_s = 0.05};
    open_plans();
    if (EW_EXPECT_OK(ew_bench_load(plans, 2, &o, NULL, NULL, &r))) {
        EW_EXPECT_INT(r.n, 50);
        for (int64_t k = 0; k < r.n; k++)
            EW_EXPECT_INT(r.runs[k].start_ns, k * 1000000);
        EW_EXPECT(r.wall_s >= 0.049);
    }
    ew_load_result_fini(&r);
    close_plans();
}

/* A stream may serve nothing: here the second one, whose turn comes after the only request. */
static void more_streams_than_requests(void)
{
    struct ew_load_result r;
    const struct ew_load_opts o = {.iters = 1};
    open_plans();
    if (EW_EXPECT_OK(ew_bench_load(plans, 2, &o, NULL, NULL, &r)))
        EW_EXPECT_INT(r.n, 1);
    ew_load_result_fini(&r);
    close_plans();
}

/* Background networks end when the others have, and are counted separately. */
static void streams_beside_are_not_in_the_result(void)
{
    struct ew_load_result r;
    const struct ew_load_opts o = {.warmup = 1, .iters = 25, .beside = 1};
    const struct ew_load_opts all = {.iters = 25, .beside = 2};
    open_plans();
    if (EW_EXPECT_OK(ew_bench_load(plans, 2, &o, NULL, NULL, &r))) {
        EW_EXPECT_INT(r.n, 25);
        EW_EXPECT(r.beside >= 1);
        for (int64_t k = 0; k < r.n; k++)
            EW_EXPECT_INT(r.runs[k].stream, 0);
    }
    ew_load_result_fini(&r);
    EW_EXPECT_ERR(ew_bench_load(plans, 2, &all, NULL, NULL, &r), EW_ERR_ARG, "2 of them beside");
    close_plans();
}

static void percentiles_and_slow_runs(void)
{
    struct ew_load_run runs[20];
    for (int i = 0; i < 20; i++)
        runs[i] = (struct ew_load_run){.latency_ns = (i == 3 ? 90 : 10 + i % 2) * 1000000LL};
    const struct ew_load_result r = {.runs = runs, .n = 20};
    EW_EXPECT_NEAR(ew_load_percentile(&r, 50), 10, 1e-9);
    EW_EXPECT_NEAR(ew_load_percentile(&r, 95), 11, 1e-9);
    EW_EXPECT_NEAR(ew_load_percentile(&r, 95.1), 90, 1e-9);
    EW_EXPECT_INT(ew_load_slow_runs(&r, 10), 1);
    const struct ew_load_result none = {0};
    EW_EXPECT(isnan(ew_load_percentile(&none, 50)));
}

EW_TEST_MAIN(EW_TEST(one_stream_runs_as_often_as_asked), EW_TEST(requests_come_at_their_times),
             EW_TEST(more_streams_than_requests), EW_TEST(streams_beside_are_not_in_the_result),
             EW_TEST(percentiles_and_slow_runs))
