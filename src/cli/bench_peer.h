/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise bench NET --compare-with onnxruntime`. */
#ifndef EW_CLI_BENCH_PEER_H
#define EW_CLI_BENCH_PEER_H

#include "cli/cmd.h"
#include "measure/peer_bench.h"

/* Runs both alternately; prints times, their ratio, and the largest difference of the outputs. */
ew_err ew_bench_peer(struct ew_cmd_call *c, const struct ew_peer_opts *o);

#endif
