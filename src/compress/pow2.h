/* SPDX-License-Identifier: Apache-2.0 */
/* Power-of-two quantisation: int8 q stands for q * 2^-position, zero point 0, one position a
 * tensor.  The position is how many of the bits lie after the binary point; it may be negative.
 * This is what DPU accelerators compute with (docs/fpga.md). */
#ifndef EW_COMPRESS_POW2_H
#define EW_COMPRESS_POW2_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"
#include "op/quant_weights.h"

enum {
    EW_POW2_MOST = 12,   /* the hardware's limit */
    EW_POW2_LEAST = -19, /* so that there are 32 positions; ranges beyond 2^26 are clipped */
    EW_POW2_POSITIONS = EW_POW2_MOST - EW_POW2_LEAST + 1,
    EW_POW2_GATE = 7,       /* of hard sigmoids */
    EW_POW2_TRIED = 5,      /* the first position without clipping and four finer ones */
    EW_POW2_SHIFT = 16,     /* the most by which sums are shifted to outputs */
    EW_POW2_BIAS_SHIFT = 23 /* the most by which biases are shifted to sums: they stay in int32 */
};

/* The finest position at which nothing between lo and hi is clipped. */
int ew_pow2_first(float lo, float hi);
/* Of the first position and the four finer ones, that of the least squared error; a tie keeps the
 * wider range. */
int ew_pow2_best(const float *x, int64_t n);

/* True where a float is a power of two between the positions above: which one. */
bool ew_pow2_position(double scale, int *position);

static inline float ew_pow2_scale(int position)
{
    return ldexpf(1, -position);
}

/* The positions round a layer: of its input, weights and bias. */
struct ew_pow2_layer {
    int input, weights;
    int bias; /* where has_bias; otherwise it is chosen by its values */
    bool has_bias;
};

/* Where the layer's bias is an integer: a bias is shifted left to the position of the sums, so its
 * own may not be finer, and shifts are limited. */
int ew_pow2_bias(const struct ew_tensor *bias, const struct ew_pow2_layer *l);

/* in[0] of the layer being dequantised already: replaces in[1] and in[2] by dequantised int8 with
 * scalar scales and explicit zero points. */
ew_err ew_pow2_weights(struct ew_graph *g, const struct ew_pow2_layer *l, int n_in, int *in);

#endif
