/* SPDX-License-Identifier: Apache-2.0 */
/* Latency and throughput of networks on this machine. */
#ifndef EDGEWISE_BENCH_H
#define EDGEWISE_BENCH_H

#include "edgewise.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero the struct, set `size` and the fields that you need. */
struct ew_timing_opts {
    size_t size;       /* sizeof(struct ew_timing_opts) */
    int64_t warmup;    /* runs before the measured ones; 0: 5 */
    int64_t runs;      /* minimum number of measured runs; 0: 50 */
    double seconds;    /* minimum duration; 0: none */
    double per_second; /* open-loop arrival rate: runs per second, evenly spaced; latency includes
                        * queueing.  0: back to back */
};

struct ew_timing {
    size_t size; /* sizeof(struct ew_timing), set before the call */
    int64_t runs;
    double min_ms, median_ms, mean_ms, sd_ms; /* sd_ms: sample standard deviation */
    double p90_ms, p99_ms, max_ms;            /* by nearest rank */
    double images_per_s;                      /* from the median, at the current batch */
    double others; /* share of the CPUs' time used by other programs during the runs; nan: not
                    * known */
};

/* Runs the context on the present contents of its inputs and measures the time of each run.  `opts`
 * may be NULL. */
EW_API ew_err ew_context_bench(struct ew_context *c, const struct ew_timing_opts *opts,
                               struct ew_timing *out);

/* Runs n contexts interleaved (A B B A), so that drift of the machine affects all alike.  out[i] is
 * of contexts[i]; speedup[i] (may be NULL) is the median over turns of the time of contexts[0] over
 * that of contexts[i].  At most 16 contexts; `seconds` and `per_second` must be 0. */
EW_API ew_err ew_contexts_compare(struct ew_context *const *contexts, int n,
                                  const struct ew_timing_opts *opts, struct ew_timing *out,
                                  double *speedup);

#ifdef __cplusplus
}
#endif

#endif
