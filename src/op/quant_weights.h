/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as int8: what they are rounded to, for post-training quantisation and for training that
 * sees them rounded. */
#ifndef EW_OP_QUANT_WEIGHTS_H
#define EW_OP_QUANT_WEIGHTS_H

#include "graph/op.h"

/* How a layer's weights become integers: with one scale an output channel, in [-127, 127], or all
 * at a power of two, in [-128, 127]. */
struct ew_weight_rounding {
    int axis;       /* of the output channels */
    double x_scale; /* of the layer's input: biases are integers at the scale of the sums */
    bool pow2;
    int position; /* q stands for q * 2^-position */
};

/* Weights of a graph, or a bias of int8, which are rounded in training. */
struct ew_rounded_layer {
    int weights, bias; /* values; bias: which the scales of weights by channel need; -1: none */
    struct ew_weight_rounding how;
};

/* Where the elements of channel c are: `outer` runs of `inner`, `step` apart, from c * inner on. */
struct ew_weight_channels {
    int64_t count, outer, inner, step;
};
struct ew_weight_channels ew_weight_channels(const struct ew_shape *s, int axis);

/* The scale of a channel: max |w| / 127, or what its bias (NULL: none) needs to fit into 30 bits:
 * where inputs are tiny the bias is all that counts. */
float ew_weight_scale(const struct ew_tensor *w, const struct ew_tensor *bias,
                      const struct ew_weight_rounding *r, int64_t channel);

/* q of a weight at a power of two: rounds half away from zero, saturates. */
int8_t ew_pow2_round(float x, int position);
/* What the q of weights stand for; `to` may be x. */
void ew_pow2_there_and_back(const float *x, int64_t n, int position, float *to);

/* What the integers stand for; `to` may be the weights themselves. */
void ew_weight_round(const struct ew_tensor *w, const struct ew_tensor *bias,
                     const struct ew_weight_rounding *r, float *to);

/* ---- Training that sees rounded weights, and whose changes go to the float32 ones
 * (straight-through estimation): the calls of EW_TASK_ROUND and EW_TASK_RESTORE.  attr: struct
 * ew_weight_rounding.
 *
 *   round     kept = w,  w = rounded = what the integers of w stand for
 *   restore   w = kept + (w - rounded) */
enum { EW_ROUND_W, EW_ROUND_BIAS, EW_ROUND_KEPT, EW_ROUND_ROUNDED, EW_ROUND_INPUTS };

ew_err ew_weight_round_run(const struct ew_call *c);
ew_err ew_weight_restore_run(const struct ew_call *c);

#endif
