/* SPDX-License-Identifier: Apache-2.0 */
/* The bench of one network or engine: how long runs take, alone or in several streams at the same
 * time, and where the time goes.  Several networks are comparison.h's. */
#ifndef EW_MEASURE_SINGLE_BENCH_H
#define EW_MEASURE_SINGLE_BENCH_H

#include "bench/bench_load.h"
#include "measure/beside.h"

#define EW_BENCH_STREAMS 64

struct ew_single_opts {
    struct ew_network_opts net;
    bool train;             /* whole training steps: forward, backward, SGD */
    bool reference, plain;  /* reference kernels; nothing folded or fused */
    bool keep_weights;      /* the graph's own are needed beside packed ones */
    bool dry;               /* the plan is only looked at */
    int streams;            /* 0: 1 */
    const char *beside;     /* "a,b": these run meanwhile, one after the other; NULL: none */
    int threads;            /* of each; 0: the machine's, divided among all */
    size_t memory_limit;    /* 0: none */
    struct ew_tuner *tuner; /* NULL: kernels by rules */
};

/* The plans that run at the same time; the first is the one that is described. */
struct ew_single_bench {
    struct ew_graph *g;
    struct ew_plan *plans[EW_BENCH_STREAMS];
    int n;
    /* Inside: */
    struct ew_network network;
    struct ew_side side; /* of an engine */
    struct ew_context *contexts[EW_BENCH_STREAMS];
    bool is_engine;
    struct ew_beside beside;
};

/* Opens a network, which gets its plans, or an engine, whose streams share its weights.  Release
 * with close, also after a failure. */
ew_err ew_single_bench_open(const char *what, const struct ew_single_opts *o,
                            struct ew_single_bench *out);
void ew_single_bench_close(struct ew_single_bench *b);

struct ew_single_runs {
    struct ew_load_opts load;
    bool profile;
    ew_bench_tick *tick; /* NULL: silent */
    void *ctx;
};

struct ew_single_result {
    struct ew_bench_stats time;
    struct ew_load_result load;
    struct ew_plan_stats plan;
    int64_t batch; /* the one asked for, or the file's, where it is fixed */
    double images_per_s;
    double steps_ms; /* median without copies to and from the device; 0: there are none */
    int64_t resident, resident_peak;
    const char *isa;
    int threads, streams;
    /* With a profile: */
    int64_t *step_ns; /* median of each step of the first plan; else NULL */
    double peak_flops;
};

/* Release with fini, also after a failure. */
ew_err ew_single_bench_run(struct ew_single_bench *b, const struct ew_single_runs *r,
                           struct ew_single_result *out);
void ew_single_result_fini(struct ew_single_result *r);

#endif
