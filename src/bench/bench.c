/* SPDX-License-Identifier: Apache-2.0 */
/* Timing plans. */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order_stats.h"
#include "base/rng.h"

void ew_bench_stats(int64_t *ns, int64_t n, struct ew_bench_stats *out)
{
    *out = (struct ew_bench_stats){.n = n};
    if (n == 0)
        return;
    ew_sort_i64(ns, n);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)ns[i] * 1e-6;
    out->mean_ms = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)ns[i] * 1e-6 - out->mean_ms;
        squares += d * d;
    }
    out->sd_ms = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
    out->min_ms = 1e-6 * (double)ew_nearest_rank(ns, n, 0);
    out->median_ms = 1e-6 * ew_median_i64(ns, n);
    out->p90_ms = 1e-6 * (double)ew_nearest_rank(ns, n, 90);
    out->p99_ms = 1e-6 * (double)ew_nearest_rank(ns, n, 99);
    out->max_ms = 1e-6 * (double)ew_nearest_rank(ns, n, 100);
}

void ew_bench_fill(struct ew_plan *p, struct ew_graph *g, int64_t classes, uint64_t seed)
{
    for (int i = 0; i < g->n_inputs; i++) {
        struct ew_tensor *t = ew_plan_input(p, i);
        struct ew_rng r = {.seed = seed, .stream = (uint64_t)i};
        for (int64_t k = 0; k < ew_tensor_count(t); k++) {
            if (ew_dtype_is_float(t->dtype)) {
                const double v = ew_rng_next_normal(&r);
                ew_tensor_store(t, k, 1, &v);
            } else {
                const int64_t v = (int64_t)ew_rng_next_below(&r, (uint64_t)ew_max_i64(classes, 1));
                ew_tensor_store_int(t, k, 1, &v);
            }
        }
    }
}

/* Progress, and its callback. */
struct progress {
    ew_bench_tick *tick;
    void *ctx;
    int64_t done, total;
};

static void advance(struct progress *g)
{
    g->done++;
    if (g->tick)
        g->tick(g->ctx, g->done, g->total);
}

static ew_err run_trial(struct ew_plan *p, const struct ew_bench_opts *o, struct progress *g,
                        int64_t *ns)
{
    ew_err (*run)(struct ew_plan *) = o->steps_only ? ew_plan_run_steps : ew_plan_run;
    for (int64_t i = 0; i < o->warmup; i++) {
        EW_TRY(run(p));
        advance(g);
    }
    for (int64_t i = 0; i < o->iters; i++) {
        const int64_t start = ew_clock_ns();
        EW_TRY(run(p));
        ns[i] = ew_clock_ns() - start;
        advance(g);
    }
    return EW_OK;
}

ew_err ew_bench_run(struct ew_plan *p, const struct ew_bench_opts *o, ew_bench_tick *tick,
                    void *ctx, struct ew_bench_stats *out)
{
    const int64_t n = o->iters * o->trials;
    EW_CHECK(o->iters >= 1 && o->trials >= 1, EW_ERR_ARG, "nothing to run: %lld runs, %lld trials",
             (long long)o->iters, (long long)o->trials);
    EW_CLEANUP(ew_free_ptr) int64_t *ns = calloc((size_t)n, sizeof(*ns));
    EW_CHECK(ns, EW_ERR_MEMORY, "no memory for %lld durations", (long long)n);
    struct progress g = {.tick = tick, .ctx = ctx, .total = (o->warmup + o->iters) * o->trials};
    for (int64_t t = 0; t < o->trials; t++)
        EW_TRY(run_trial(p, o, &g, ns + t * o->iters));
    ew_bench_stats(ns, n, out);
    return EW_OK;
}

ew_err ew_bench_profile(struct ew_plan *p, int64_t iters, int64_t *ns)
{
    const int steps = ew_plan_step_count(p);
    EW_CLEANUP(ew_free_ptr)
    int64_t *all = calloc((size_t)(steps * iters) + 1, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory to profile %d steps", steps);
    for (int64_t i = 0; i < iters; i++)
        EW_TRY(ew_plan_run_timed(p, all + i * steps));
    EW_CLEANUP(ew_free_ptr) int64_t *column = calloc((size_t)iters + 1, sizeof(*column));
    EW_CHECK(column, EW_ERR_MEMORY, "no memory to profile %d steps", steps);
    for (int k = 0; k < steps; k++) {
        for (int64_t i = 0; i < iters; i++)
            column[i] = all[i * steps + k];
        ew_sort_i64(column, iters);
        ns[k] = column[iters / 2];
    }
    return EW_OK;
}

/* ---- The machine ---- */

/* "VmRSS:   1234 kB" of /proc/self/status. */
static int64_t status_bytes(const char *key)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long long kb = 0;
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtoll(line + strlen(key), NULL, 10);
    if (f)
        fclose(f);
    return kb * 1024;
}

int64_t ew_bench_resident(void)
{
    return status_bytes("VmRSS:");
}

int64_t ew_bench_resident_peak(void)
{
    return status_bytes("VmHWM:");
}
