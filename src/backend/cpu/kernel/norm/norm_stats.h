/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics for a batch norm, for kernels that accumulate them from their output.
 *
 * A split covers consecutive pixels.  It is three rows of stats_wide floats: each channel's first
 * value, the sum of differences from it, and the sum of their squares.  They are accumulated from
 * registers, since reading back what was just stored would wait for its cache line. */
#ifndef EW_BACKEND_CPU_KERNEL_NORM_NORM_STATS_H
#define EW_BACKEND_CPU_KERNEL_NORM_NORM_STATS_H

#include "backend/cpu/kernel/common/vec.h"

#define STATS_SPLITS 64  /* most splits: more take long to add */
#define STATS_LEAST  8   /* fewest splits: fewer are hard to divide among threads */
#define STATS_PIXELS 128 /* pixels of a split, about; the split itself is as large as three */

/* Floats of a row, in whole cache lines: vectors that cross lines are slow to update. */
INLINE int64_t stats_wide(int64_t channels)
{
    return div_up(channels, 16) * 16;
}

INLINE int64_t stats_size(int64_t channels)
{
    return 3 * stats_wide(channels);
}

/* Splits for that many pixels; 0: so few that a separate pass is as fast. */
INLINE int64_t stats_splits(int64_t pixels)
{
    if (pixels < STATS_LEAST * STATS_PIXELS / 2)
        return 0;
    return max_i64(min_i64(pixels / STATS_PIXELS, STATS_SPLITS), STATS_LEAST);
}

struct stats {
    float *to;    /* at the kernel's first channel */
    int64_t step; /* stats_wide */
    bool begins;  /* the split is not initialised */
};

/* Accumulators of some channels in registers. */
struct stats_sums {
    vec first, sum, squares;
};

/* `y`: the first pixel, which initialises a new split. */
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

/* Adds the accumulators of a few pixels to the split: partial sums limit rounding errors. */
INLINE void stats_store(const struct stats *t, int64_t c, const struct stats_sums *s, int64_t n)
{
    float *sum = t->to + c + t->step, *squares = sum + t->step;
    store_n(sum, load_n(sum, n) + s->sum, n);
    store_n(squares, load_n(squares, n) + s->squares, n);
}

#endif
