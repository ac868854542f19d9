/* SPDX-License-Identifier: Apache-2.0 */
/* From a float graph to one in QDQ form, by the ranges of its values.  Where the ranges come from,
 * and which nodes are better left alone, is left to others. */
#ifndef EW_COMPRESS_QUANTIZE_H
#define EW_COMPRESS_QUANTIZE_H

#include "graph/graph.h"

/* Of one value, over all of its elements; lo > hi: not known, the value is not quantised. */
struct ew_range {
    float lo, hi;
};

struct ew_quantize_opts {
    const struct ew_range *ranges; /* one for each value of the graph */
    const bool *keep;              /* one for each node: it stays float32; NULL: none does */
    bool is_signed;                /* activations are int8, else uint8 */
};

/* What must be done before ranges are measured: batch norms go into convolutions, and what would
 * only hand values on goes. */
ew_err ew_quantize_prepare(struct ew_graph *g);

/* Puts quantize_linear and dequantize_linear round every float32 activation that a quantised node
 * reads or makes, and gives convolutions and dense layers int8 weights (one scale a channel, zero
 * point 0) and int32 biases.  Values that only move, or are put together, share one scale.  relu
 * and clip stay right behind what makes their input.  Values are renumbered. */
ew_err ew_quantize(struct ew_graph *g, const struct ew_quantize_opts *o);

#endif
