/* SPDX-License-Identifier: Apache-2.0 */
/* A split of a batch norm's statistics, for kernels that take them of what they write.
 *
 * A split is some pixels in a row: each channel's first value, the sum of the others' differences
 * from it, and the sum of their squares, in three rows of stats_wide floats.  They are taken of
 * registers, for what was just stored is slow to read: its line may still be on the way. */
#ifndef EW_BACKEND_CPU_KERNEL_NORM_NORM_STATS_H
#define EW_BACKEND_CPU_KERNEL_NORM_NORM_STATS_H

#include "backend/cpu/kernel/common/vec.h"

#define STATS_SPLITS 64  /* at most: more take long to add up */
#define STATS_LEAST  8   /* fewer are hard to share out */
#define STATS_PIXELS 128 /* of a split, about: the split itself is three */

/* Rows begin at whole lines: what is split between two is slow to update. */
INLINE int64_t stats_wide(int64_t channels)
{
    return div_up(channels, 16) * 16;
}

INLINE int64_t stats_size(int64_t channels)
{
    return 3 * stats_wide(channels);
}

/* Splits of that many pixels; 0: so few are as well read again. */
INLINE int64_t stats_splits(int64_t pixels)
{
    if (pixels < STATS_LEAST * STATS_PIXELS / 2)
        return 0;
    return max_i64(min_i64(pixels / STATS_PIXELS, STATS_SPLITS), STATS_LEAST);
}

struct stats {
    float *to;    /* of the first channel at hand */
    int64_t step; /* stats_wide */
    bool begins;  /* there is nothing in it yet */
};

/* Sums of n channels while a kernel has them in registers. */
struct stats_sums {
    vec first, sum, squares;
};

/* `y`: the first pixel, where it begins. */
INLINE struct stats_sums stats_load(const struct stats *t, int64_t c, vec y, int64_t n)
{
    float *at = t->to + c;
    if (t->begins) {
        store_n(at, y, n);
        store_n(at + t->step, (vec){0}, n);
        store_n(at + 2 * t->step, (vec){0}, n);
    }
    return (struct stats_sums){.first = load_n(at, n)};
}

INLINE void stats_add(struct stats_sums *s, vec y)
{
    const vec d = y - s->first;
    s->sum += d;
    s->squares += d * d;
}

/* Few pixels are added up by themselves, which keeps the error of long sums small. */
INLINE void stats_store(const struct stats *t, int64_t c, const struct stats_sums *s, int64_t n)
{
    float *sum = t->to + c + t->step, *squares = sum + t->step;
    store_n(sum, load_n(sum, n) + s->sum, n);
    store_n(squares, load_n(squares, n) + s->squares, n);
}

#endif
