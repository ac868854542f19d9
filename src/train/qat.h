/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation-aware training of weights: each step runs with rounded weights, and what it changes
 * them by goes to the float32 ones (straight-through estimation).
 *
 *   begin   w -> kept;  w = rounded(w)
 *   step    forward, backward and update, on the rounded weights
 *   end     w = kept + (w - rounded)
 *
 * Between steps the graph holds the float32 weights, so that checkpoints, evaluation and the
 * optimiser's state need to know nothing of it.  Activations are the graph's (fake_quant). */
#ifndef EW_TRAIN_QAT_H
#define EW_TRAIN_QAT_H

#include "compress/fake_quant.h"

struct ew_qat {
    const struct ew_graph *g; /* whose weights learn; borrowed */
    struct ew_fake_layer *layers;
    int n;
    float *kept, *rounded; /* of all layers, one after the other */
    int64_t count;         /* floats in each */
};

/* Finds the layers that learn for integers; n is 0 where the graph has none. */
ew_err ew_qat_open(const struct ew_graph *g, struct ew_qat *out);
void ew_qat_close(struct ew_qat *q);

void ew_qat_begin(struct ew_qat *q);
void ew_qat_end(struct ew_qat *q);

#endif
