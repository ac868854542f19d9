/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on small feature maps: geometry of forward and backward.
 *
 * On images of 2x2 pixels, five of the nine taps of a 3x3 filter read padding at every output.  The
 * other taps make 16 pairs of an output and an input position, each a GEMM over channels with one
 * tap of the filter:
 *
 *   y[out] [images x O] += x[in] [images x I] w[tap] [I x O]
 *
 * These 16 form a block Toeplitz matrix,
 *
 *   y0 = w1 x0 + w2 x1        M0 = (w0 - w1) x0      y0 = M1 + M2
 *   y1 = w0 x0 + w1 x1        M1 = w1 (x0 + x1)      y1 = M1 + M0
 *                             M2 = (w2 - w1) x1
 *
 * along each axis, so that 3 x 3 = 9 products suffice.  "Folding" is this transform of positions
 * and of taps to three for each axis; then pair i is tap i, input i and output i.  Both gradients
 * have the same form, with dy folded in reverse order.
 *
 * A dense layer is a single pair.  Filters dominate the time: they are the largest operand and
 * change at each step, so that packing them costs as much as multiplying. */
#ifndef EW_BACKEND_CPU_KERNEL_UNPACKED_TAP_PAIRS_H
#define EW_BACKEND_CPU_KERNEL_UNPACKED_TAP_PAIRS_H

#include "backend/cpu/kernel/common/fetch.h"

#define TAP_PAIRS_TAPS  32
#define TAP_PAIRS_PAIRS 64
#define TAP_PAIRS_ROWS  1024 /* most images x positions of x and of y */

struct tap_pair {
    int tap, out, in;
};

struct tap_pairs {
    int64_t batch, cin, cout, taps, outs, ins;
    int count;
    struct tap_pair pair[TAP_PAIRS_PAIRS]; /* sorted by tap */
    int first[TAP_PAIRS_TAPS + 1];         /* pairs of tap t: [first[t], first[t + 1]) */
    int used;                              /* taps with any pair */
    bool folded;                           /* outs and ins are FOLDED positions of SQUARE pixels */
};

/* False: a limit above is exceeded. */
bool EW_K(tap_pairs_init)(struct tap_pairs *p, const struct ew_conv_shape *s);

/* Sets up folding for 3x3 filters on 2x2 pixels; others are unchanged. */
void EW_K(tap_pairs_fold)(struct tap_pairs *p, const struct ew_conv_shape *s);

#define SQUARE 4 /* pixels of a 2x2 image */
#define FOLDED 9 /* folded positions, and taps */

/* Positions in x or y for n positions in the transposed layout. */
INLINE int64_t pixels_of(const struct tap_pairs *s, int64_t n)
{
    return s->folded ? SQUARE : n;
}

/* Folds pixels to positions, for dy in reverse order. */
INLINE void fold_pixels(const vec p[SQUARE], vec out[FOLDED], const bool from_end)
{
    const vec line[2][3] = {{p[0], p[0] + p[1], p[1]}, {p[2], p[2] + p[3], p[3]}};
    UNROLL
    for (int i = 0; i < 3; i++) {
        out[from_end ? 8 - i : i] = line[0][i];
        out[from_end ? 5 - i : 3 + i] = line[0][i] + line[1][i];
        out[from_end ? 2 - i : 6 + i] = line[1][i];
    }
}

/* Unfolds products to pixels, for dx in reverse order. */
INLINE void unfold_pixels(const vec m[FOLDED], vec out[SQUARE], const bool from_end)
{
    vec line[2][3];
    UNROLL
    for (int i = 0; i < 3; i++) {
        const vec middle = m[from_end ? 5 - i : 3 + i];
        line[0][i] = middle + m[from_end ? 2 - i : 6 + i];
        line[1][i] = middle + m[from_end ? 8 - i : i];
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        out[2 * i] = line[i][1] + line[i][2];
        out[2 * i + 1] = line[i][1] + line[i][0];
    }
}

INLINE void fold_taps(const vec w[FOLDED], vec out[FOLDED])
{
    vec t[FOLDED];
    UNROLL
    for (int i = 0; i < FOLDED; i += 3) {
        t[i] = w[i] - w[i + 1];
        t[i + 1] = w[i + 1];
        t[i + 2] = w[i + 2] - w[i + 1];
    }
    UNROLL
    for (int i = 0; i < 3; i++) {
        out[i] = t[i] - t[i + 3];
        out[i + 3] = t[i + 3];
        out[i + 6] = t[i + 6] - t[i + 3];
    }
}

/* Gradients of folded taps to gradients of taps (the transpose of fold_taps). */
INLINE void unfold_taps(const vec g[FOLDED], vec out[FOLDED])
{
    vec t[FOLDED];
    UNROLL
    for (int i = 0; i < 3; i++) {
        t[i] = g[i];
        t[i + 3] = g[i + 3] - g[i] - g[i + 6];
        t[i + 6] = g[i + 6];
    }
    UNROLL
    for (int i = 0; i < FOLDED; i += 3) {
        out[i] = t[i];
        out[i + 1] = t[i + 1] - t[i] - t[i + 2];
        out[i + 2] = t[i + 2];
    }
}

#endif
