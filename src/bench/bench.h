/* SPDX-License-Identifier: Apache-2.0 */
/* Timing plans: warm-up, repetitions, statistics, profiles. */
#ifndef EW_BENCH_BENCH_H
#define EW_BENCH_BENCH_H

#include "plan/plan.h"

struct ew_bench_opts {
    int64_t warmup, iters, trials; /* warm-up runs; measured runs; repetitions of both */
    bool steps_only; /* without transfers of inputs and outputs, after at least one run with them */
    int64_t rounds;  /* interleaved: turns per trial; 0: 8 */
};

/* Statistics of durations. */
struct ew_bench_stats {
    int64_t n;
    double min_ms, median_ms, mean_ms, p90_ms, p99_ms, max_ms;
    double sd_ms; /* sample standard deviation; 0 for one run */
};

/* Statistics of n durations in nanoseconds, which it sorts.  Percentiles are by nearest rank. */
void ew_bench_stats(int64_t *ns, int64_t n, struct ew_bench_stats *out);

/* Fills every input with random numbers: normal floats, integer labels below `classes`. */
void ew_bench_fill(struct ew_plan *p, struct ew_graph *g, int64_t classes, uint64_t seed);

/* Progress callback after each run, warm-up included. */
typedef void ew_bench_tick(void *ctx, int64_t done, int64_t total);

/* Times the plan; `tick` may be NULL. */
ew_err ew_bench_run(struct ew_plan *p, const struct ew_bench_opts *o, ew_bench_tick *tick,
                    void *ctx, struct ew_bench_stats *out);

#define EW_BENCH_TRIALS 1024

/* One of several plans to compare. */
struct ew_bench_side {
    struct ew_plan *p;
    /* Results: */
    struct ew_bench_stats time;
    double ratio; /* median over turns of (time of the first side / time of this one) */
    double ratio_low, ratio_high; /* quartiles */
    double ratio_min;             /* of the shortest runs: what a busy machine disturbs least */
    double trial_sd_ms;           /* sample standard deviation of the trials' means */
};

/* Times the plans interleaved, A B B A; `tick` may be NULL. */
ew_err ew_bench_interleave(struct ew_bench_side *sides, int n, const struct ew_bench_opts *o,
                           ew_bench_tick *tick, void *ctx);

/* Median nanoseconds of each step over `iters` runs; `ns` has one entry per step. */
ew_err ew_bench_profile(struct ew_plan *p, int64_t iters, int64_t *ns);

/* Memory read bandwidth of this many threads (0: one for each CPU) in bytes per second: the best of
 * a few passes over 256 MiB. */
ew_err ew_bench_bandwidth(int threads, double *bytes_s);

/* Resident memory of the process in bytes, now and at its peak; 0: unknown. */
int64_t ew_bench_resident(void);
int64_t ew_bench_resident_peak(void);

#endif
