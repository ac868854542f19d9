/* SPDX-License-Identifier: Apache-2.0 */
/* Networks as XIR (.xmodel): what AMD's compiler for its DPU takes, float operators with a `fix`
 * node after each value that is int8 with a power-of-two scale.  docs/fpga.md lists the operators.
 */
#ifndef EW_FORMAT_XIR_H
#define EW_FORMAT_XIR_H

#include "graph/graph.h"

/* Six times the DPU's sixth, 2731 / 2^14: what files have after a hard sigmoid. */
#define EW_XIR_GATE_FACTOR (6 * 2731.0 / 16384)

/* Writes a network in QDQ form with power-of-two scales; fails where a node has no counterpart in
 * XIR.  Its shapes have the batch, which XIR cannot leave open.  Images are [N, H, W, C]. */
ew_err ew_xir_save(const struct ew_graph *g, const char *path, int64_t batch);

/* Reads a network that is not compiled yet: `fix` becomes a pair of quantize_linear and
 * dequantize_linear, of constants int8 and dequantize_linear.  Release with ew_graph_free. */
ew_err ew_xir_load(const char *path, struct ew_graph **out);
/* The same from bytes; `name` is for messages. */
ew_err ew_xir_parse(const void *bytes, size_t size, const char *name, struct ew_graph **out);

#endif
