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
    const char *beside, *against;
    double max_slowdown;
    struct ew_image_opts images;
};

/* The recorded run that --against compares with. */
struct ew_baseline {
    int64_t run; /* 0: none */
    char started[32], version[32], cpu[96];
    double median_ms, min_ms, p99_ms, planned_bytes; /* nan: not recorded */
};

struct ew_bench_shown {
    const char *name;
    const struct ew_bench_args *o;
    struct ew_plan *p; /* the measured plan */
    struct ew_single_result r;
    struct ew_percentiles percentiles;
    struct ew_baseline baseline;
};

ew_err ew_bench_print(const struct ew_bench_shown *s);
ew_err ew_bench_print_json(const struct ew_bench_shown *s);

#endif
