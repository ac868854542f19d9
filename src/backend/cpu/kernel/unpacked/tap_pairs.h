/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on small feature maps: the geometry that both directions share.
 *
 * On images of 2x2 pixels a 3x3 filter meets padding with five of its nine taps at every output.
 * What is left are 16 pairs of an output and an input position, each a product of its own between
 * the images' channels and one tap of the filter:
 *
 *   y[out] [images x O] += x[in] [images x I] w[tap] [I x O]
 *
 * Those 16 are a matrix of matrices that are constant along diagonals,
 *
 *   y0 = w1 x0 + w2 x1        M0 = (w0 - w1) x0      y0 = M1 + M2
 *   y1 = w0 x0 + w1 x1        M1 = w1 (x0 + x1)      y1 = M1 + M0
 *                             M2 = (w2 - w1) x1
 *
 * along both axes, for which 9 products suffice: positions and taps are folded into three a line,
 * and a pair is one of each.  Both gradients are the same sums, with dy folded the other way round.
 *
 * A dense layer is the case of one pair.  Filters take all the time there is: they are larger than
 * anything else and change at each step, so that packing them costs as much as multiplying. */
#ifndef EW_BACKEND_CPU_KERNEL_UNPACKED_TAP_PAIRS_H
#define EW_BACKEND_CPU_KERNEL_UNPACKED_TAP_PAIRS_H

#include "backend/cpu/kernel/common/fetch.h"

#define TAP_PAIRS_TAPS  32
#define TAP_PAIRS_PAIRS 64
#define TAP_PAIRS_ROWS  1024 /* images x positions, at most, of either side */

struct tap_pair {
    int tap, out, in;
};

struct tap_pairs {
    int64_t batch, cin, cout, taps, outs, ins;
    int count;
    struct tap_pair pair[TAP_PAIRS_PAIRS]; /* by tap */
    int first[TAP_PAIRS_TAPS + 1];         /* pairs of tap t: [first[t], first[t + 1]) */
    int used;                              /* taps that have any */
    bool folded;                           /* outs and ins are FOLDED, of SQUARE pixels */
};

/* False where there are too many of anything. */
bool EW_K(tap_pairs_init)(struct tap_pairs *p, const struct ew_conv_shape *s);

/* Folds 3x3 filters on 2x2 pixels; leaves others alone. */
void EW_K(tap_pairs_fold)(struct tap_pairs *p, const struct ew_conv_shape *s);

#define SQUARE 4 /* pixels */
#define FOLDED 9 /* positions made of them, and taps */

/* Positions as x and y have them, of n as they are laid out. */
INLINE int64_t pixels_of(const struct tap_pairs *s, int64_t n)
{
    return s->folded ? SQUARE : n;
}

/* Pixels to positions: x as it is, dy from the end. */
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

/* Products to pixels: y as it is, dx from the end. */
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

/* Gradients of what fold_taps makes to those of the taps. */
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
