/* SPDX-License-Identifier: Apache-2.0 */
/* Timing plans: warm-up, repeats, statistics, and where the time goes.  Printing is left to others.
 */
#ifndef EW_BENCH_BENCH_H
#define EW_BENCH_BENCH_H

#include "plan/plan.h"

struct ew_bench_opts {
    int64_t warmup, iters, trials; /* runs not counted; runs counted; repetitions of both */
};

/* Of a list of durations. */
struct ew_bench_stats {
    int64_t n;
    double min_ms, median_ms, mean_ms, p90_ms, p99_ms, max_ms;
    double sd_ms; /* sample standard deviation; 0 for one run */
};

/* Statistics of n durations in nanoseconds; sorts them.  Percentiles are by nearest rank. */
void ew_bench_stats(int64_t *ns, int64_t n, struct ew_bench_stats *out);

/* Fills every input with random numbers: images normal, labels whole numbers below `classes`. */
void ew_bench_fill(struct ew_plan *p, struct ew_graph *g, int64_t classes, uint64_t seed);

/* Called after each run: how many of how many are done. */
typedef void ew_bench_tick(void *ctx, int64_t done, int64_t total);

/* Runs the plan and takes its times; `tick` may be NULL. */
ew_err ew_bench_run(struct ew_plan *p, const struct ew_bench_opts *o, ew_bench_tick *tick,
                    void *ctx, struct ew_bench_stats *out);

/* Median nanoseconds of each step over `iters` runs; `ns` has one entry per step. */
ew_err ew_bench_profile(struct ew_plan *p, int64_t iters, int64_t *ns);

/* Multiply-adds that this machine's threads do together, in flops a second: the best of a few
 * rounds. */
double ew_bench_peak(const struct ew_backend *be);

/* Bytes that the process has in memory now, and the most that it has had; 0 where the system does
 * not say. */
int64_t ew_bench_resident(void);
int64_t ew_bench_resident_peak(void);

#endif
