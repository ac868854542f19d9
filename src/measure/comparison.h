/* SPDX-License-Identifier: Apache-2.0 */
/* Networks and engines measured against each other: memory, time in turns, power, accuracy. */
#ifndef EW_MEASURE_COMPARISON_H
#define EW_MEASURE_COMPARISON_H

#include <stdio.h>

#include "base/regress.h"
#include "measure/side.h"

#define EW_COMPARISON_SIDES 16 /* at most */

struct ew_compare_opts {
    struct ew_side_opts side;
    struct ew_bench_opts bench;
    const char *eval; /* data; NULL: none */
    struct ew_image_opts images;
    const char *power_from;
    double power_s; /* 0: power is not measured */
    bool quick;     /* protocols: no tuning */
    FILE *talk;     /* where progress is shown; NULL: nowhere */
};

/* What was measured of one of them. */
struct ew_measured_side {
    struct ew_side side;
    struct ew_bench_side time;
    int64_t resident; /* bytes of a process of its own; 0: not known */
    double accuracy;  /* below 0: not evaluated */
    struct ew_bench_power power;
};

struct ew_side_comparison {
    struct ew_measured_side *sides;
    int n;
    struct ew_power_meter *meter; /* NULL: none */
    double others;                /* share of the CPUs that other programs took; nan: not known */
};

/* Loads and measures them; call it before any thread is there.  Release with fini, also after a
 * failure. */
ew_err ew_comparison_run(const char *const *what, int n, const struct ew_compare_opts *o,
                         struct ew_side_comparison *out);
void ew_comparison_fini(struct ew_side_comparison *m);

/* ---- The engine study's protocol ----
 * The reference goes through the network as an eager framework does: operator by operator, each in
 * plain C.  Before is the same with kernels: every operator a step of its own, no folding, no
 * fusing, no tuning, kernels by rules.  After is the engine of the same weights, tuned on this
 * machine.  Before and after run in turns in one process; the reference, which is hundreds of times
 * slower, only a few times. */

/* Table 1 of the study (a Jetson Nano, PyTorch against TensorRT). */
struct ew_engine_study {
    const char *name, *called;                /* here, there */
    double before_s, after_s, speedup, flops; /* as it gives them */
};

#define EW_ENGINE_STUDY_NETWORKS 11
/* Fills out[EW_ENGINE_STUDY_NETWORKS] from the published values. */
ew_err ew_engine_study_load(struct ew_engine_study *out);

struct ew_engine_result {
    const struct ew_engine_study *study;
    struct ew_bench_stats reference;
    struct ew_bench_side before, after;
    struct ew_facts facts;
    int64_t engine_bytes, activation_bytes, plain_activation_bytes, threads;
    const char *isa;
};

/* Fills in what is measured of r->study. */
ew_err ew_engine_protocol_measure(const struct ew_compare_opts *o, struct ew_engine_result *r);
/* The geometric mean of n speed-ups. */
double ew_engine_protocol_mean(const struct ew_engine_result *r, int n);
/* The speed-up by the logarithm (base ten) of FLOPs: how much is gained for ten times as many, here
 * and in the study.  Fails below two networks. */
ew_err ew_engine_protocol_trend(const struct ew_engine_result *r, int n, bool theirs,
                                struct ew_line *out);

/* ---- The scaling study's protocol ----
 * Three networks on 32x32 images at four widths, batch 1, 20 runs to warm up and 80 that count, 50
 * trials; a trial of each takes its turn, so that all see the same machine. */

#define EW_SCALE_SIDES        12
#define EW_SCALE_REAL_TIME_MS 16.67 /* as 60 images a second ask for */

struct ew_scale_result {
    const char *name[EW_SCALE_SIDES], *called[EW_SCALE_SIDES];
    double width[EW_SCALE_SIDES];
    struct ew_side sides[EW_SCALE_SIDES];
    struct ew_bench_side times[EW_SCALE_SIDES];
    struct ew_bench_power power[EW_SCALE_SIDES];
    struct ew_power_meter *meter; /* NULL: none */
};

/* Release with fini, also after a failure. */
ew_err ew_scale_protocol_run(const struct ew_compare_opts *o, struct ew_scale_result *out);
void ew_scale_protocol_fini(struct ew_scale_result *r);
/* Images per second and watt at the peak of the load, as the study defines it. */
double ew_scale_per_watt(const struct ew_scale_result *r, int side);

#endif
