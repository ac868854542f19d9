/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation-aware training.
 *
 * Activations pass through fake_quant nodes, at the places and with the scales at which ew_quantize
 * puts quantisers.  Weights and biases stay float32 parameters; a layer whose input comes from
 * fake_quant is trained with both rounded (plan/plan.h), and gets integers when the graph is
 * converted to QDQ form (ew_pass_convert_fake_quant).  In the power-of-two scheme the positions of
 * a layer's weights and bias are notes of the graph; otherwise per-channel scales follow the
 * weights.
 */
#ifndef EW_COMPRESS_FAKE_QUANT_H
#define EW_COMPRESS_FAKE_QUANT_H

#include "compress/quantize_weights.h"
#include "graph/graph.h"
#include "op/quant_weights.h"

/* Lists the weights and biases to round in training, each once; the caller frees *out.  *n 0: none.
 */
ew_err ew_fake_quant_weights(const struct ew_graph *g, struct ew_fake_quant_weight **out, int *n);
/* Stores the position of a layer's weights, and the resulting one of its bias, as notes; the
 * fake_quant of its input must exist. */
ew_err ew_fake_quant_note(struct ew_graph *g, const struct ew_node *layer, int weights);

#endif
