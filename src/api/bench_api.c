/* SPDX-License-Identifier: Apache-2.0 */
/* Times for programs (edgewise_bench.h), over bench/. */
#include <math.h>

#include "base/num.h"
#include "base/sized.h"
#include "bench/bench_load.h"
#include "edgewise_bench.h"
#include "engine/engine.h"

#define MOST_CONTEXTS 16

static ew_err options(const struct ew_timing_opts *opts, struct ew_timing_opts *out)
{
    EW_TRY(ew_sized_import(opts, out, sizeof(*out)));
    EW_CHECK(out->warmup >= 0 && out->runs >= 0 && out->seconds >= 0 && out->per_second >= 0,
             EW_ERR_ARG, "%lld runs to warm up, %lld runs, %g seconds, %g a second: negative",
             (long long)out->warmup, (long long)out->runs, out->seconds, out->per_second);
    out->warmup = out->warmup ? out->warmup : 5;
    out->runs = out->runs ? out->runs : 50;
    return EW_OK;
}

static void give(const struct ew_bench_stats *s, struct ew_context *c, double others,
                 struct ew_timing *out)
{
    const int64_t batch = ew_graph_images(ew_context_graph(c));
    const struct ew_timing t = {.runs = s->n,
                                .min_ms = s->min_ms,
                                .median_ms = s->median_ms,
                                .mean_ms = s->mean_ms,
                                .sd_ms = s->sd_ms,
                                .p90_ms = s->p90_ms,
                                .p99_ms = s->p99_ms,
                                .max_ms = s->max_ms,
                                .images_per_s = 1e3 * (double)batch / s->median_ms,
                                .others = others};
    ew_sized_export(&t, sizeof(t), out);
}

EW_API ew_err ew_context_bench(struct ew_context *c, const struct ew_timing_opts *opts,
                               struct ew_timing *out)
{
    EW_C_LOCALE;
    EW_NEED(c);
    EW_NEED(out);
    struct ew_timing_opts o;
    struct ew_load_result r = {0};
    struct ew_bench_stats stats = {0};
    EW_TRY(ew_sized_check(out));
    EW_TRY(options(opts, &o));
    const struct ew_load_opts load = {
        .warmup = o.warmup, .iters = o.runs, .duration_s = o.seconds, .qps = o.per_second};
    struct ew_plan *p = ew_context_plan(c);
    ew_err e = ew_bench_load(&p, 1, &load, NULL, NULL, &r);
    if (e == EW_OK)
        e = ew_load_stats(&r, &stats);
    if (e == EW_OK)
        give(&stats, c, r.others, out);
    ew_load_result_fini(&r);
    return e;
}

/* Element i of an array whose elements have the size that the caller's release gives them. */
static struct ew_timing *timing_at(struct ew_timing *out, int i)
{
    return (void *)((char *)out + (size_t)i * out->size);
}

EW_API ew_err ew_contexts_compare(struct ew_context *const *contexts, int n,
                                  const struct ew_timing_opts *opts, struct ew_timing *out,
                                  double *speedup)
{
    EW_C_LOCALE;
    EW_NEED(contexts);
    EW_NEED(out);
    struct ew_bench_side sides[MOST_CONTEXTS] = {{0}};
    struct ew_timing_opts o;
    EW_CHECK(n >= 1 && n <= MOST_CONTEXTS, EW_ERR_ARG, "1 to %d contexts are compared, not %d",
             MOST_CONTEXTS, n);
    EW_TRY(options(opts, &o));
    EW_TRY(ew_sized_check(out));
    EW_CHECK(!(o.seconds > 0) && !(o.per_second > 0), EW_ERR_ARG,
             "a comparison takes turns: it has neither seconds nor per_second");
    for (int i = 0; i < n; i++) {
        EW_NEED(contexts[i]);
        EW_CHECK(timing_at(out, i)->size == out->size, EW_ERR_ARG,
                 "the size of out[%d] is %zu bytes, that of out[0] %zu", i, timing_at(out, i)->size,
                 out->size);
        sides[i].p = ew_context_plan(contexts[i]);
    }
    const struct ew_bench_opts b = {.warmup = o.warmup, .iters = o.runs, .trials = 1};
    EW_TRY(ew_bench_interleave(sides, n, &b, NULL, NULL));
    for (int i = 0; i < n; i++) {
        give(&sides[i].time, contexts[i], (double)NAN, timing_at(out, i));
        if (speedup)
            speedup[i] = sides[i].ratio;
    }
    return EW_OK;
}
