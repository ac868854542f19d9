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

/* Where a layer's weights and bias are, and the scale of its input. */
struct ew_quantize_layer {
    int weights, bias; /* values; bias -1: none */
    double x_scale;
    int axis; /* of the output channels */
};

struct ew_quantize_layer ew_quantize_layer_of(const struct ew_node *n, const int *in,
                                              double x_scale);

#endif
