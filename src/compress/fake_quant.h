/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation-aware training: a graph that learns for integers.
 *
 * Activations go through fake_quant nodes, at the places and with the scales at which ew_quantize
 * puts quantisers.  Weights and biases stay float32 parameters; a layer whose input comes from
 * fake_quant is trained with both rounded (plan/plan.h), and gets integers when the graph is
 * settled (ew_pass_settle_quant).  In the power-of-two scheme the positions of a layer's weights
 * and bias are notes of the graph; otherwise scales by channel follow the weights. */
#ifndef EW_COMPRESS_FAKE_QUANT_H
#define EW_COMPRESS_FAKE_QUANT_H

#include "compress/quantize_weights.h"
#include "graph/graph.h"
#include "op/quant_weights.h"

/* True where the graph has fake_quant nodes. */
bool ew_fake_quant_any(const struct ew_graph *g);
/* The weights and biases that are to be rounded, for the caller to free; *n 0: there are none.
 * Those that two layers share are there once. */
ew_err ew_fake_quant_values(const struct ew_graph *g, struct ew_rounded_value **out, int *n);
/* Notes the position of a layer's weights, and where its bias is then; the fake_quant of its input
 * is there already. */
ew_err ew_fake_quant_note(struct ew_graph *g, const struct ew_node *layer, int weights);

#endif
