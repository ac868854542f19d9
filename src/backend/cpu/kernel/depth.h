/* SPDX-License-Identifier: Apache-2.0 */
/* What the depthwise kernels share: the table of pixels that one row of outputs reads.
 *
 * Entry [plane][row][column] points at the channels of one input pixel, or at zeros where the taps
 * hang over the edge: the loops that follow know no edges.  Column o * stride + t * dilation is
 * output o's tap t. */
#ifndef EW_BACKEND_CPU_KERNEL_DEPTH_H
#define EW_BACKEND_CPU_KERNEL_DEPTH_H

#include "backend/cpu/kernel/vec.h"

INLINE int64_t taps_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->axis[0].taps * s->axis[1].taps * s->axis[2].taps;
}

/* Channels, rounded up to whole vectors: the distance between taps of a packed filter. */
INLINE int64_t wide_of(const struct ew_conv_shape *s)
{
    return div_up(s->cin, LANES) * LANES;
}

struct lines {
    int64_t channels, columns;
    const float **at; /* [planes][rows][columns] */
    float *zero;      /* [channels] */
};

INLINE int64_t lines_columns(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = &s->axis[2];
    return max_i64((int64_t)(a->out - 1) * a->stride + (int64_t)(a->taps - 1) * a->dilation + 1, 1);
}

/* Bytes of scratch behind it. */
INLINE size_t lines_bytes(const struct ew_conv_shape *s)
{
    const int64_t entries = (int64_t)s->axis[0].taps * s->axis[1].taps * lines_columns(s);
    return (size_t)wide_of(s) * sizeof(float) + (size_t)div_up(entries, 8) * 8 * sizeof(float *);
}

INLINE void lines_init(struct lines *l, const struct ew_conv_shape *s, void *scratch)
{
    l->channels = s->cin;
    l->columns = lines_columns(s);
    l->zero = scratch;
    l->at = (const float **)(void *)(l->zero + wide_of(s));
    clear(l->zero, s->cin);
}

/* Points the table at the inputs of output row `row` (counted over images, planes and rows). */
static inline void lines_find(struct lines *l, const struct ew_conv_shape *s, const float *x,
                              int64_t row)
{
    const struct ew_conv_axis *a = s->axis;
    const int64_t n = row / a[1].out / a[0].out;
    const int64_t z0 = (int64_t)(row / a[1].out % a[0].out) * a[0].stride - a[0].pad;
    const int64_t y0 = (int64_t)(row % a[1].out) * a[1].stride - a[1].pad;
    const float **out = l->at;
    for (int64_t i = 0; i < a[0].taps * a[1].taps; i++) {
        const int64_t z = z0 + i / a[1].taps * a[0].dilation;
        const int64_t y = y0 + i % a[1].taps * a[1].dilation;
        const bool inside = z >= 0 && z < a[0].in && y >= 0 && y < a[1].in;
        const float *line = x + ((n * a[0].in + z) * a[1].in + y) * a[2].in * l->channels;
        for (int64_t c = 0; c < l->columns; c++) {
            const int64_t at = c - a[2].pad;
            *out++ = inside && at >= 0 && at < a[2].in ? line + at * l->channels : l->zero;
        }
    }
}

#endif
