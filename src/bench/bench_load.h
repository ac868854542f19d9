/* SPDX-License-Identifier: Apache-2.0 */
/* A network under load: one or several streams, each a plan of its own, that run at the same time;
 * requests as fast as they are served, or at a rate. */
#ifndef EW_BENCH_BENCH_LOAD_H
#define EW_BENCH_BENCH_LOAD_H

#include "bench/bench.h"
#include "bench/quiet.h"

struct ew_load_opts {
    int64_t warmup;    /* runs of each stream before the clock starts */
    int64_t iters;     /* at least so many requests in all */
    double duration_s; /* and at least for so long; 0: as long as they take */
    double qps;        /* requests a second, evenly spaced; 0: the next as soon as one is done */
    int beside; /* the last so many streams only keep the machine busy: they run one after the other
                   until the others are done, and are not in the result */
};

struct ew_load_run {
    int64_t start_ns;   /* since the first request could begin */
    int64_t latency_ns; /* from the request's arrival: with qps, waiting for a stream counts */
    int stream;
};

struct ew_load_result {
    struct ew_load_run *runs; /* by their start */
    int64_t n;
    double wall_s;
    int64_t beside; /* runs of the streams that only keep the machine busy */
    double others;  /* others' share of the CPU meanwhile, nan: not known */
};

/* Runs the streams' plans; `tick` may be NULL.  Release with fini, also after a failure. */
ew_err ew_bench_load(struct ew_plan *const *plans, int streams, const struct ew_load_opts *o,
                     ew_bench_tick *tick, void *ctx, struct ew_load_result *out);
void ew_load_result_fini(struct ew_load_result *r);

/* Milliseconds that `percent` of the requests do not exceed. */
double ew_load_percentile(const struct ew_load_result *r, double percent);
ew_err ew_load_stats(const struct ew_load_result *r, struct ew_bench_stats *out);

/* Runs that take over EW_LOAD_SLOW times the median. */
#define EW_LOAD_SLOW 1.5
int64_t ew_load_slow_runs(const struct ew_load_result *r, double median_ms);

#endif
