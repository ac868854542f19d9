/* SPDX-License-Identifier: Apache-2.0 */
/* Small dense layers in training: partitioning of forward and backward.
 *
 * A piece is up to DENSE_VECS vectors of inputs, with all images and outputs.  Backward, a tile is
 * a piece; forward, DENSE_SUMS tiles divide the pieces.  So each thread works on the same inputs in
 * both directions and at each step, and weights and optimiser state stay in its core's cache.
 * Pieces have about equal size and an even number, so that no thread steals another's. */
#ifndef EW_BACKEND_CPU_KERNEL_UNPACKED_SMALL_DENSE_H
#define EW_BACKEND_CPU_KERNEL_UNPACKED_SMALL_DENSE_H

#include "backend/cpu/kernel/common/vec.h"

#define DENSE_VECS (LANES == 8 ? 2 : 4) /* most vectors of a piece */
#define DENSE_WIDE (DENSE_VECS * LANES)
#define DENSE_SUMS 4 /* partial sums forward; each is written, and later read by one core */

/* Layers with MACs in [DENSE_LEAST, DENSE_MOST) are divided by outputs, into two parts: their rows
 * are short and unaligned, so that threads that divide inputs would write to the same cache lines.
 * Backward then has partial sums of dx.  Smaller layers run on one thread (tap_pairs_step.c). */
#define DENSE_LEAST (128 << 10)
#define DENSE_MOST  (256 << 10)

INLINE bool dense_by_outputs(const struct ew_conv_shape *s)
{
    const int64_t macs = (int64_t)s->batch * s->cin * s->cout;
    return macs >= DENSE_LEAST && macs < DENSE_MOST && s->cout > 1;
}

/* The first output of a part. */
INLINE int64_t dense_output(const struct ew_conv_shape *s, int64_t part)
{
    return s->cout * part / 2;
}

INLINE int64_t dense_pieces(const struct ew_conv_shape *s)
{
    const int64_t n = div_up(s->cin, DENSE_WIDE);
    return n > 1 ? n + n % 2 : n;
}

/* The first input of a piece. */
INLINE int64_t dense_first(const struct ew_conv_shape *s, int64_t piece)
{
    const int64_t vecs = div_up(s->cin, LANES);
    return min_i64(vecs * piece / dense_pieces(s) * LANES, s->cin);
}

#endif
