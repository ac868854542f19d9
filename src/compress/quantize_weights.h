/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation of weights: int8 with one scale per output channel, int32 biases. */
#ifndef EW_COMPRESS_QUANTIZE_WEIGHTS_H
#define EW_COMPRESS_QUANTIZE_WEIGHTS_H

#include "graph/graph.h"

/* True if the node's weights and bias are float32 constants that can be quantised.  True for
 * batch_norm, which lowering turns into a layer; its parameters stay float32. */
bool ew_quantize_has_weights(const struct ew_graph *g, int node);

/* Replaces in[1] and in[2] by dequantised integers; in[0] must be dequantised already. */
ew_err ew_quantize_weights(struct ew_graph *g, const struct ew_node *n, int *in);

/* A layer's weights and bias, and the scale of its input. */
struct ew_quantize_layer {
    int weights, bias; /* values; bias -1: none */
    double x_scale;
    int axis; /* of the output channels */
};

struct ew_quantize_layer ew_quantize_layer_of(const struct ew_node *n, const int *in,
                                              double x_scale);

#endif
