/* SPDX-License-Identifier: Apache-2.0 */
/* Networks as XIR (.xmodel), the input of AMD's DPU compiler: float operators, with a `fix` node
 * after each value that is int8 with a power-of-two scale.  docs/fpga.md lists the operators. */
#ifndef EW_FORMAT_XIR_H
#define EW_FORMAT_XIR_H

#include "graph/graph.h"

/* 6 x 2731 / 2^14, the factor after a hard sigmoid in files: the DPU approximates 1/6 by 2731 /
 * 2^14. */
#define EW_XIR_GATE_FACTOR (6 * 2731.0 / 16384)

/* Writes a network in QDQ form with power-of-two scales; fails if a node has no counterpart in XIR.
 * The batch is fixed, since XIR has no symbolic dimensions.  Images are [N, H, W, C]. */
ew_err ew_xir_save(const struct ew_graph *g, const char *path, int64_t batch);

/* Reads an uncompiled network: `fix` becomes quantize_linear and dequantize_linear, or for a
 * constant int8 data and dequantize_linear.  Free with ew_graph_free. */
ew_err ew_xir_load(const char *path, struct ew_graph **out);
/* The same from memory; `name` is for messages. */
ew_err ew_xir_parse(const void *bytes, size_t size, const char *name, struct ew_graph **out);

#endif
