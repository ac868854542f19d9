/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise bench NET --compare-with onnxruntime`. */
#ifndef EW_CLI_BENCH_PEER_H
#define EW_CLI_BENCH_PEER_H

#include "bench/bench.h"
#include "cli/cmd.h"
#include "network/network.h"

struct ew_peer_opts {
    struct ew_network_opts net;
    struct ew_bench_opts bench;
    int threads; /* 0: one for each CPU */
    struct ew_tuner *tuner;
};

/* Runs the same ONNX file (a network that is none is exported first) on the same input in both, in
 * turns, and prints times, their ratio, and how far the outputs differ. */
ew_err ew_bench_peer(struct ew_cmd_call *c, const struct ew_peer_opts *o);

#endif
