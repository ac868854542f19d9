/* SPDX-License-Identifier: Apache-2.0 */
/* Edgewise and ONNX Runtime on one file, in turns. */
#ifndef EW_MEASURE_PEER_BENCH_H
#define EW_MEASURE_PEER_BENCH_H

#include "bench/bench.h"
#include "network/network.h"

#define EW_PEER_TURNS 8

enum { EW_PEER_OURS, EW_PEER_THEIRS, EW_PEER_SIDES };

struct ew_peer_opts {
    struct ew_network_opts net;
    struct ew_bench_opts bench;
    int threads; /* 0: one for each CPU */
    struct ew_tuner *tuner;
};

struct ew_peer_result {
    char peer_version[32];
    int threads;
    int64_t runs; /* of each side */
    struct ew_bench_stats time[EW_PEER_SIDES];
    double speed_up;       /* median of the turns' ratios, their time by ours */
    double speed_up_min;   /* of the shortest runs */
    double worst, largest; /* of the outputs: difference, and value */
    double others;         /* share of the processors that other programs took */
};

/* Runs the same ONNX file (a network that is none is exported first) on the same input in both, in
 * turns. */
ew_err ew_peer_bench(const char *name, const struct ew_peer_opts *o, struct ew_peer_result *out);

#endif
