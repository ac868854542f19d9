/* SPDX-License-Identifier: Apache-2.0 */
/* A network under load: concurrent streams, each with its own plan; closed loop (each request as
 * soon as the last is served) or open loop (requests at a fixed rate). */
#ifndef EW_BENCH_BENCH_LOAD_H
#define EW_BENCH_BENCH_LOAD_H

#include "bench/bench.h"
#include "bench/quiet.h"

struct ew_load_opts {
    int64_t warmup;    /* warm-up runs per stream */
    int64_t iters;     /* minimum number of requests */
    double duration_s; /* minimum duration; 0: none */
    double qps;        /* open loop: requests per second, evenly spaced; 0: closed loop */
    int beside; /* the last this many streams are background load: they run until the others are
                 * done, and are not in the result */
};

struct ew_load_run {
    int64_t start_ns;   /* since the measurement started */
    int64_t latency_ns; /* from the request's arrival: with qps including queueing */
    int stream;
};

struct ew_load_result {
    struct ew_load_run *runs; /* by start time */
    int64_t n;
    double wall_s;
    int64_t beside; /* runs of the background streams */
    double others;  /* share of the CPUs' time used by other programs; nan: unknown */
};

/* Runs the load; `tick` may be NULL.  Free with fini, also after a failure. */
ew_err ew_bench_load(struct ew_plan *const *plans, int streams, const struct ew_load_opts *o,
                     ew_bench_tick *tick, void *ctx, struct ew_load_result *out);
void ew_load_result_fini(struct ew_load_result *r);

/* Percentile of the latency in milliseconds. */
double ew_load_percentile(const struct ew_load_result *r, double percent);
ew_err ew_load_stats(const struct ew_load_result *r, struct ew_bench_stats *out);

/* Number of runs slower than EW_LOAD_SLOW times the median. */
#define EW_LOAD_SLOW 1.5
int64_t ew_load_slow_runs(const struct ew_load_result *r, double median_ms);

#endif
