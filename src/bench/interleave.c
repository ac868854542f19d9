/* SPDX-License-Identifier: Apache-2.0 */
/* Interleaved timing of several plans, so that drift of the machine affects all alike. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/bench.h"

#define AGAIN 2 /* runs that refill the caches at the start of a turn */

/* The times of one trial begin at trial * iters. */
struct table {
    struct ew_bench_side *sides;
    int n;
    const struct ew_bench_opts *o;
    int64_t **ns;    /* [side]: all durations */
    double *medians; /* [turn][side]: median of that turn's runs */
    int64_t turns;
};

static int by_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One side's turn: `warm` unmeasured runs, then `n` measured ones. */
static ew_err take_turn(struct ew_plan *p, int64_t warm, int64_t *ns, int64_t n)
{
    for (int64_t i = 0; i < warm; i++)
        EW_TRY(ew_plan_run(p));
    for (int64_t i = 0; i < n; i++) {
        const int64_t start = ew_clock_ns();
        EW_TRY(ew_plan_run(p));
        ns[i] = ew_clock_ns() - start;
    }
    return EW_OK;
}

/* Reverses the order of the sides every other round. */
static ew_err run_round(struct table *t, int64_t trial, int64_t round, int64_t rounds)
{
    const struct ew_bench_opts *o = t->o;
    const int64_t from = o->iters * round / rounds, to = o->iters * (round + 1) / rounds;
    const int64_t warm = round == 0 ? o->warmup : AGAIN;
    for (int i = 0; i < t->n; i++) {
        const int s = t->turns % 2 ? t->n - 1 - i : i;
        int64_t *ns = t->ns[s] + trial * o->iters + from;
        EW_TRY(take_turn(t->sides[s].p, warm < AGAIN && o->warmup ? AGAIN : warm, ns, to - from));
        struct ew_bench_stats stats;
        EW_CLEANUP(ew_free_ptr) int64_t *copy = malloc((size_t)(to - from) * sizeof(*copy));
        EW_CHECK(copy, EW_ERR_MEMORY, "no memory for %lld durations", (long long)(to - from));
        memcpy(copy, ns, (size_t)(to - from) * sizeof(*copy));
        ew_bench_stats(copy, to - from, &stats);
        t->medians[t->turns * t->n + s] = stats.median_ms;
    }
    t->turns++;
    return EW_OK;
}

static ew_err run_all(struct table *t, int64_t rounds, ew_bench_tick *tick, void *ctx)
{
    for (int64_t trial = 0; trial < t->o->trials; trial++)
        for (int64_t r = 0; r < rounds; r++) {
            EW_TRY(run_round(t, trial, r, rounds));
            if (tick)
                tick(ctx, t->turns, t->o->trials * rounds);
        }
    return EW_OK;
}

/* Quartiles over turns of (time of the first side / time of this one). */
static void set_ratio(const struct table *t, int s, double *scratch)
{
    for (int64_t k = 0; k < t->turns; k++)
        scratch[k] = t->medians[k * t->n] / t->medians[k * t->n + s];
    qsort(scratch, (size_t)t->turns, sizeof(*scratch), by_double);
    struct ew_bench_side *side = &t->sides[s];
    side->ratio = t->turns % 2 ? scratch[t->turns / 2]
                               : (scratch[t->turns / 2 - 1] + scratch[t->turns / 2]) / 2;
    side->ratio_low = scratch[t->turns / 4];
    side->ratio_high = scratch[t->turns - 1 - t->turns / 4];
}

static void set_trials(const struct table *t, int s)
{
    const int64_t iters = t->o->iters, trials = t->o->trials;
    int64_t means[EW_BENCH_TRIALS];
    struct ew_bench_stats stats;
    const int64_t n = trials < EW_BENCH_TRIALS ? trials : EW_BENCH_TRIALS;
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        for (int64_t i = 0; i < iters; i++)
            sum += (double)t->ns[s][k * iters + i];
        means[k] = (int64_t)(sum / (double)iters);
    }
    ew_bench_stats(means, n, &stats);
    t->sides[s].trial_sd_ms = stats.sd_ms;
}

ew_err ew_bench_interleave(struct ew_bench_side *sides, int n, const struct ew_bench_opts *o,
                           ew_bench_tick *tick, void *ctx)
{
    const int64_t rounds = ew_max_i64(1, ew_min_i64(o->rounds ? o->rounds : 8, o->iters));
    const size_t all = (size_t)(o->iters * o->trials), turns = (size_t)(rounds * o->trials);
    EW_CHECK(o->iters >= 1 && o->trials >= 1 && n >= 1, EW_ERR_ARG, "nothing to run");
    EW_CLEANUP(ew_free_ptr) int64_t *ns = calloc(all * (size_t)n, sizeof(*ns));
    EW_CLEANUP(ew_free_ptr) int64_t **by_side = calloc((size_t)n, sizeof(*by_side));
    EW_CLEANUP(ew_free_ptr) double *medians = calloc(turns * (size_t)n, sizeof(*medians));
    EW_CLEANUP(ew_free_ptr) double *scratch = calloc(turns, sizeof(*scratch));
    EW_CHECK(ns && by_side && medians && scratch, EW_ERR_MEMORY, "no memory for %zu durations",
             all * (size_t)n);
    for (int s = 0; s < n; s++)
        by_side[s] = ns + all * (size_t)s;
    struct table t = {.sides = sides, .n = n, .o = o, .ns = by_side, .medians = medians};
    EW_TRY(run_all(&t, rounds, tick, ctx));
    for (int s = 0; s < n; s++) {
        set_ratio(&t, s, scratch);
        set_trials(&t, s);
        ew_bench_stats(by_side[s], (int64_t)all, &sides[s].time);
        sides[s].ratio_min = sides[0].time.min_ms / sides[s].time.min_ms;
    }
    return EW_OK;
}
