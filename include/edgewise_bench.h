/* SPDX-License-Identifier: Apache-2.0 */
/* How long a network takes here. */
#ifndef EDGEWISE_BENCH_H
#define EDGEWISE_BENCH_H

#include "edgewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero it, set `size` and whatever is wanted. */
struct ew_timing_opts {
    size_t size;       /* sizeof(struct ew_timing_opts) */
    int64_t warmup;    /* runs that do not count; 0: 5 */
    int64_t runs;      /* at least so many; 0: 50 */
    double seconds;    /* and for at least so long; 0: as long as they take */
    double per_second; /* runs a second, evenly spaced; waiting counts.  0: back to back */
};

struct ew_timing {
    size_t size; /* sizeof(struct ew_timing), set before the call */
    int64_t runs;
    double min_ms, median_ms, mean_ms, sd_ms; /* sd_ms: sample standard deviation */
    double p90_ms, p99_ms, max_ms;            /* by nearest rank */
    double images_per_s;                      /* from the median, at the present batch */
    double others; /* share of the CPUs that other programs took meanwhile; nan: not known */
};

/* Runs the context with what its inputs hold and takes the times.  `opts` may be NULL. */
EW_API ew_err ew_context_bench(struct ew_context *c, const struct ew_timing_opts *opts,
                               struct ew_timing *out);

/* Runs n contexts in turns, A B B A, so that all see the same machine; out[i].images_per_s and the
 * rest are those of contexts[i], speedup[i] (may be NULL) is the median over turns of the first
 * one's time over its own.  At most 16; seconds and per_second are not for it. */
EW_API ew_err ew_contexts_compare(struct ew_context *const *contexts, int n,
                                  const struct ew_timing_opts *opts, struct ew_timing *out,
                                  double *speedup);

#ifdef __cplusplus
}
#endif

#endif
