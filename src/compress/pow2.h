/* SPDX-License-Identifier: Apache-2.0 */
/* Power-of-two quantisation: int8 q stands for q * 2^-position, with zero point 0 and one position
 * per tensor.  The position is the number of fractional bits; it may be negative.  This is the
 * arithmetic of DPU accelerators (docs/fpga.md). */
#ifndef EW_COMPRESS_POW2_H
#define EW_COMPRESS_POW2_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"
#include "op/quant_weights.h"

enum {
    EW_POW2_MOST = 12,   /* limit of the hardware */
    EW_POW2_LEAST = -19, /* so that there are 32 positions; ranges beyond 2^26 are clipped */
    EW_POW2_POSITIONS = EW_POW2_MOST - EW_POW2_LEAST + 1,
    EW_POW2_GATE = 7,       /* position of hard sigmoids */
    EW_POW2_TRIED = 5,      /* the first position without clipping and four finer ones */
    EW_POW2_SHIFT = 16,     /* largest right shift from sums to outputs */
    EW_POW2_BIAS_SHIFT = 23 /* largest left shift of biases, so that they fit int32 */
};

/* The finest position that clips nothing in [lo, hi]. */
int ew_pow2_first(float lo, float hi);
/* Of that position and the four finer ones, the one with the least squared error; the coarser on a
 * tie. */
int ew_pow2_best(const float *x, int64_t n);

/* True if the scale is a power of two with a position in the range above. */
bool ew_pow2_position(double scale, int *position);

static inline float ew_pow2_scale(int position)
{
    return ldexpf(1, -position);
}

/* Positions of a layer's input, weights and bias. */
struct ew_pow2_layer {
    int input, weights;
    int bias; /* where has_bias; otherwise it is chosen by its values */
    bool has_bias;
};

/* The position of a layer's bias: it is shifted left to the position of the sums, so it may not be
 * finer than these, and the shift is limited. */
int ew_pow2_bias(const struct ew_tensor *bias, const struct ew_pow2_layer *l);

/* in[0] of the layer being dequantised already: replaces in[1] and in[2] by dequantised int8 with
 * scalar scales and explicit zero points. */
ew_err ew_pow2_weights(struct ew_graph *g, const struct ew_pow2_layer *l, int n_in, int *in);

#endif
