/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation-aware training: a graph that learns for integers.
 *
 * Activations go through fake_quant nodes, at the places and with the scales at which ew_quantize
 * puts quantisers.  Weights stay float32 parameters; a layer whose input comes from fake_quant is
 * run with its weights rounded (train/learner.h), and gets integer weights when the graph is
 * settled (ew_pass_settle_quant).  The position of a layer's weights in the power-of-two scheme is
 * a note of the graph. */
#ifndef EW_COMPRESS_FAKE_QUANT_H
#define EW_COMPRESS_FAKE_QUANT_H

#include "compress/quantize_weights.h"
#include "graph/graph.h"

/* A layer that is run with rounded weights. */
struct ew_fake_layer {
    struct ew_quantize_layer of;
    bool pow2;
    int position; /* of its weights, where pow2 */
};

/* True where the graph has fake_quant nodes. */
bool ew_fake_quant_any(const struct ew_graph *g);
/* True where the node's weights are to be rounded. */
bool ew_fake_quant_layer(const struct ew_graph *g, int node, struct ew_fake_layer *out);
/* Its weights as the integers have them; `to` may be the weights themselves. */
void ew_fake_quant_round(const struct ew_graph *g, const struct ew_fake_layer *l, float *to);
/* Notes the position of weights. */
ew_err ew_fake_quant_note(struct ew_graph *g, const char *weights, int position);

#endif
