/* SPDX-License-Identifier: Apache-2.0 */
/* Benchmark of one network or engine: times of single runs or of several concurrent streams, and a
 * profile.  comparison.h compares several networks. */
#ifndef EW_MEASURE_SINGLE_BENCH_H
#define EW_MEASURE_SINGLE_BENCH_H

#include "bench/bench_load.h"
#include "measure/beside.h"
#include "measure/power_meter.h"

#define EW_BENCH_STREAMS 64

struct ew_single_opts {
    struct ew_network_opts net;
    bool train;             /* training steps: forward, backward, SGD */
    bool reference, plain;  /* reference kernels; no folding or fusion */
    bool keep_weights;      /* keep unpacked weights beside packed ones */
    bool dry;               /* the plan is not executed */
    int streams;            /* 0: 1 */
    const char *beside;     /* "a,b": networks that run concurrently, in turn; NULL: none */
    int threads;            /* per stream; 0: the machine's, divided among all */
    size_t memory_limit;    /* 0: none */
    struct ew_tuner *tuner; /* NULL: kernels by rules */
};

/* The concurrent plans; the first is the one reported. */
struct ew_single_bench {
    struct ew_graph *g;
    struct ew_plan *plans[EW_BENCH_STREAMS];
    int n;
    /* Private: */
    struct ew_network network;
    struct ew_side side; /* for an engine */
    struct ew_context *contexts[EW_BENCH_STREAMS];
    bool is_engine;
    struct ew_beside beside;
};

/* Opens a network and compiles its plans, or an engine, whose streams share weights.  Release with
 * close, also after a failure. */
ew_err ew_single_bench_open(const char *what, const struct ew_single_opts *o,
                            struct ew_single_bench *out);
void ew_single_bench_close(struct ew_single_bench *b);

struct ew_single_runs {
    struct ew_load_opts load;
    bool profile;
    ew_bench_tick *tick; /* NULL: no progress */
    void *ctx;
};

struct ew_single_result {
    struct ew_bench_stats time;
    struct ew_load_result load;
    struct ew_plan_stats plan;
    int64_t batch; /* as requested, or fixed by the file */
    double images_per_s;
    double steps_ms; /* median without copies to and from the device; 0: no copies */
    int64_t resident, resident_peak;
    const char *isa;
    int threads, streams;
    /* With a profile: */
    int64_t *step_ns; /* median of each step of the first plan; else NULL */
    double peak_flops;
    struct ew_bench_power power;  /* by ew_single_bench_power; until then absent */
    struct ew_power_meter *meter; /* NULL: none */
};

/* Release with fini, also after a failure. */
ew_err ew_single_bench_run(struct ew_single_bench *b, const struct ew_single_runs *r,
                           struct ew_single_result *out);
/* Measures idle power, then that of the same load, each for this many seconds.  Without a sensor
 * `r->power.absent` is the reason. */
ew_err ew_single_bench_power(struct ew_single_bench *b, const struct ew_load_opts *load,
                             const char *power_from, double seconds, struct ew_single_result *r);
void ew_single_result_fini(struct ew_single_result *r);

#endif
