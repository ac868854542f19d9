/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as integers: int8 with one scale an output channel, int32 biases. */
#ifndef EW_COMPRESS_QUANTIZE_WEIGHTS_H
#define EW_COMPRESS_QUANTIZE_WEIGHTS_H

#include "graph/graph.h"

/* True where the node's weights and bias are float32 constants of shapes that can be quantised.
 * batch_norm counts: lowering makes a layer of it, its parameters stay float32. */
bool ew_quantize_has_weights(const struct ew_graph *g, int node);

/* in[0] of the node being dequantised already: replaces in[1] and in[2] by dequantised integers. */
ew_err ew_quantize_weights(struct ew_graph *g, const struct ew_node *n, int *in);

#endif
