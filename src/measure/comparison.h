/* SPDX-License-Identifier: Apache-2.0 */
/* Networks and engines compared in memory, time (interleaved trials), power and accuracy. */
#ifndef EW_MEASURE_COMPARISON_H
#define EW_MEASURE_COMPARISON_H

#include <stdio.h>

#include "base/regress.h"
#include "measure/side.h"

#define EW_COMPARISON_SIDES 16 /* at most */

struct ew_compare_opts {
    struct ew_side_opts side;
    struct ew_bench_opts bench;
    const char *eval; /* data set; NULL: none */
    struct ew_image_opts images;
    const char *power_from;
    double power_s; /* 0: power is not measured */
    bool quick;     /* protocols: no tuning */
    FILE *talk;     /* where progress is shown; NULL: nowhere */
};

/* Results of one network. */
struct ew_measured_side {
    struct ew_side side;
    struct ew_bench_side time;
    int64_t resident; /* resident bytes of a separate process; 0: not known */
    double accuracy;  /* below 0: not evaluated */
    struct ew_bench_power power;
};

struct ew_side_comparison {
    struct ew_measured_side *sides;
    int n;
    struct ew_power_meter *meter; /* NULL: none */
    double others;                /* CPU share used by other programs; nan: not known */
};

/* Loads and measures the networks; call it before any thread exists.  Release with fini, also after
 * a failure. */
ew_err ew_comparison_run(const char *const *what, int n, const struct ew_compare_opts *o,
                         struct ew_side_comparison *out);
void ew_comparison_fini(struct ew_side_comparison *m);

/* ---- The engine study's protocol ----
 * The reference runs the network like an eager framework: operator by operator, in plain C.
 * "Before" is the same with kernels: one step per operator, no folding, fusion or tuning, kernels
 * by rules.  "After" is the engine of the same weights, tuned on this machine.  Before and after
 * run in interleaved trials in one process; the reference, hundreds of times slower, runs only a
 * few times. */

/* Table 1 of the study (a Jetson Nano, PyTorch against TensorRT). */
struct ew_engine_study {
    const char *name, *called;                /* name here, and in the study */
    double before_s, after_s, speedup, flops; /* as published */
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

/* Measures r->study. */
ew_err ew_engine_protocol_measure(const struct ew_compare_opts *o, struct ew_engine_result *r);
/* The geometric mean of n speed-ups. */
double ew_engine_protocol_mean(const struct ew_engine_result *r, int n);
/* Regression of the speed-up on log10 of the FLOPs, of our results or the published ones.  Fails
 * for fewer than two networks. */
ew_err ew_engine_protocol_trend(const struct ew_engine_result *r, int n, bool theirs,
                                struct ew_line *out);

/* ---- The scaling study's protocol ----
 * Three networks on 32x32 images at four widths, batch 1, 20 warm-up runs and 80 timed ones, 50
 * trials, interleaved over the networks so that all see the same state of the machine. */

#define EW_SCALE_SIDES        12
#define EW_SCALE_REAL_TIME_MS 16.67 /* one frame at 60 frames/s */

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
/* Images per second and watt at peak load, as the study defines it. */
double ew_scale_per_watt(const struct ew_scale_result *r, int side);

#endif
