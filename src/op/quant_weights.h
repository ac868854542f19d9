/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding of weights to int8 and biases to int32, for post-training quantisation and
 * quantisation-aware training. */
#ifndef EW_OP_QUANT_WEIGHTS_H
#define EW_OP_QUANT_WEIGHTS_H

#include "graph/op.h"

/* How a layer's weights or bias are rounded: per output channel (weights in [-127, 127]), or at one
 * power of two, in [-128, 127]. */
struct ew_weight_rounding {
    int axis;       /* of the output channels */
    double x_scale; /* of the layer's input: a bias has the scale of the sums */
    bool is_bias;   /* a bias: int32 at the scales of the sums */
    bool pow2;      /* one power of two (weights or bias) */
    int position;   /* q stands for q * 2^-position */
};

/* A weight or bias of a graph that is rounded in training. */
struct ew_fake_quant_weight {
    int value;
    int other; /* the other value that per-channel scales depend on: the bias of weights, or the
                * weights of a bias, which precede it in the list; -1: none */
    struct ew_weight_rounding how;
};

/* Elements of channel c: `outer` runs of `inner` elements, with stride `step`, from c * inner on.
 */
struct ew_weight_channels {
    int64_t count, outer, inner, step;
};
struct ew_weight_channels ew_weight_channels(const struct ew_shape *s, int axis);

/* The scale of a channel: max |w| / 127, but at least what its bias (NULL: none) needs to fit 30
 * bits, which matters where inputs are tiny. */
float ew_weight_scale(const struct ew_tensor *w, const struct ew_tensor *bias,
                      const struct ew_weight_rounding *r, int64_t channel);

/* The scale of a channel's sums, and its bias rounded at that scale. */
float ew_bias_scale(double x_scale, float w_scale);
int32_t ew_bias_round(float bias, float scale);

/* Rounds a weight at a power of two: half away from zero, saturating. */
int8_t ew_pow2_round(float x, int position);
/* to = dequantised rounding of x; `to` may be x. */
void ew_pow2_there_and_back(const float *x, int64_t n, int position, float *to);

/* to = dequantised rounding of weights or a bias; `other` as in struct ew_fake_quant_weight,
 * unrounded; `to` may be x. */
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
