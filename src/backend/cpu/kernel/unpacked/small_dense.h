/* SPDX-License-Identifier: Apache-2.0 */
/* Small dense layers in training: how both directions are cut.
 *
 * A piece is some DENSE_VECS vectors of inputs of all images and outputs; backward a tile is a
 * piece, forward DENSE_SUMS tiles share them out.  Both begin a thread's range with the same
 * inputs, so that a core meets the same filters and their state at each step: they stay in its
 * cache, and no line of them crosses to another core.  Hence pieces are of about one size and of an
 * even number: who has finished would take over others' filters. */
#ifndef EW_BACKEND_CPU_KERNEL_UNPACKED_SMALL_DENSE_H
#define EW_BACKEND_CPU_KERNEL_UNPACKED_SMALL_DENSE_H

#include "backend/cpu/kernel/common/vec.h"

#define DENSE_VECS (LANES == 8 ? 2 : 4) /* of a piece, at most */
#define DENSE_WIDE (DENSE_VECS * LANES)
#define DENSE_SUMS 4 /* parts of a sum forward: each is written, and read by one core */

/* Multiply-adds of layers that are cut by outputs, in two: their rows seldom begin cache lines, and
 * threads that share rows would write into each other's.  Backward leaves parts of dx.  Smaller
 * ones are for one thread, which takes all tiles (see tap_pairs_step.c). */
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
