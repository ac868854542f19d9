/* SPDX-License-Identifier: Apache-2.0 */
/* Runs Edgewise and ONNX Runtime alternately on one file. */
#ifndef EW_MEASURE_PEER_BENCH_H
#define EW_MEASURE_PEER_BENCH_H

#include "bench/bench.h"
#include "network/network.h"

#define EW_PEER_TURNS 8

enum { EW_PEER_OURS, EW_PEER_THEIRS, EW_PEER_SIDES };

struct ew_peer_opts {
    struct ew_network_opts net;
    struct ew_bench_opts bench;
    int threads; /* 0: one per CPU */
    struct ew_tuner *tuner;
};

struct ew_peer_result {
    char peer_version[32];
    int threads;
    int64_t runs; /* of each library */
    struct ew_bench_stats time[EW_PEER_SIDES];
    double speed_up;       /* median over turns of their time / ours */
    double speed_up_min;   /* by the shortest runs */
    double worst, largest; /* largest difference and largest value of the outputs */
    double others;         /* CPU share used by other programs */
};

/* Runs the same ONNX file (other networks are exported first) on the same input alternately in
 * both. */
ew_err ew_peer_bench(const char *name, const struct ew_peer_opts *o, struct ew_peer_result *out);

#endif
