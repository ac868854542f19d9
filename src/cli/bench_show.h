/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise bench` for one network. */
#ifndef EW_CLI_BENCH_SHOW_H
#define EW_CLI_BENCH_SHOW_H

#include "cli/bench_times.h"
#include "measure/single_bench.h"

/* The options of the command. */
struct ew_bench_args {
    const char *device;
    int precision;
    bool fast;
    struct ew_network_opts net;
    bool train, profile, reference, plain, tune, quick, sweep;
    int64_t threads, warmup, iters, trials, memory_limit, streams;
    double power_seconds, duration, qps;
    int protocol, peer;
    const char *db, *eval, *power_from, *why, *simulate, *percentiles, *csv, *picture, *html;
    const char *beside;
    struct ew_image_opts images;
};

struct ew_bench_shown {
    const char *name;
    const struct ew_bench_args *o;
    struct ew_plan *p; /* the measured plan */
    struct ew_single_result r;
    struct ew_percentiles percentiles;
};

ew_err ew_bench_print(const struct ew_bench_shown *s);
ew_err ew_bench_print_json(const struct ew_bench_shown *s);

#endif
