/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as int8 and biases as integers: what they are rounded to, for post-training quantisation
 * and for training that sees them rounded. */
#ifndef EW_OP_QUANT_WEIGHTS_H
#define EW_OP_QUANT_WEIGHTS_H

#include "graph/op.h"

/* How a layer's weights or bias become integers: with one scale an output channel (weights in
 * [-127, 127]), or all at a power of two, in [-128, 127]. */
struct ew_weight_rounding {
    int axis;       /* of the output channels */
    double x_scale; /* of the layer's input: biases are integers at the scale of the sums */
    bool is_bias;   /* int32 at the scales of the sums instead, which `axis` of the weights has */
    bool pow2;      /* weights or a bias */
    int position;   /* q stands for q * 2^-position */
};

/* Weights of a graph, or a bias, which are rounded in training. */
struct ew_rounded_value {
    int value;
    int other; /* what scales by channel depend on beside it: the bias of weights, the weights of a
                * bias, which are in the list before it; -1: nothing */
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

/* The scale of the sums of a channel, and q of its bias there. */
float ew_bias_scale(double x_scale, float w_scale);
int32_t ew_bias_round(float bias, float scale);

/* q of a weight at a power of two: rounds half away from zero, saturates. */
int8_t ew_pow2_round(float x, int position);
/* What the q of weights stand for; `to` may be x. */
void ew_pow2_there_and_back(const float *x, int64_t n, int position, float *to);

/* What the integers of weights, or of a bias, stand for; `other` as in struct ew_rounded_value, not
 * rounded; `to` may be x itself. */
void ew_weight_round(const struct ew_tensor *x, const struct ew_tensor *other,
                     const struct ew_weight_rounding *r, float *to);

/* ---- Training that sees rounded weights and biases, and whose changes go to the float32 ones
 * (straight-through estimation): the calls of EW_TASK_ROUND and EW_TASK_RESTORE.  attr: struct
 * ew_weight_rounding.
 *
 *   round     kept = x,  x = rounded = what the integers of x stand for
 *   restore   x = kept + (x - rounded) */
enum { EW_ROUND_X, EW_ROUND_OTHER, EW_ROUND_KEPT, EW_ROUND_ROUNDED, EW_ROUND_INPUTS };

ew_err ew_weight_round_run(const struct ew_call *c);
ew_err ew_weight_restore_run(const struct ew_call *c);

#endif
