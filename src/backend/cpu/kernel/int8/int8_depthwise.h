/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the 8-bit depthwise kernels: the table of input pixels that one row of outputs
 * reads.
 *
 * Entry [line][column] points at the channels of one input pixel, or at zero points outside the
 * image.  A line is a row of taps; column o * stride + t * dilation is output o's tap t. */
#ifndef EW_BACKEND_CPU_KERNEL_INT8_INT8_DEPTHWISE_H
#define EW_BACKEND_CPU_KERNEL_INT8_INT8_DEPTHWISE_H

#include "backend/cpu/kernel/int8/int8_gemm.h"

struct qlines {
    int64_t lines, columns;
    const uint8_t **at; /* [lines][columns] */
    uint8_t *pad;       /* [channels] */
};

INLINE int64_t qlines_columns(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = &s->axis[2];
    return max_i64((int64_t)(a->out - 1) * a->stride + (int64_t)(a->taps - 1) * a->dilation + 1, 1);
}

INLINE int64_t qlines_pad(const struct ew_conv_shape *s)
{
    return div_up(s->cin, 64) * 64;
}

/* Bytes of scratch for struct qlines. */
INLINE size_t qlines_bytes(const struct ew_conv_shape *s)
{
    const int64_t entries = (int64_t)s->axis[0].taps * s->axis[1].taps * qlines_columns(s);
    return (size_t)qlines_pad(s) + (size_t)div_up(entries, 8) * 8 * sizeof(uint8_t *);
}

INLINE void qlines_init(struct qlines *l, const struct ew_qconv *q, void *scratch)
{
    const struct ew_conv_shape *s = q->shape;
    l->lines = (int64_t)s->axis[0].taps * s->axis[1].taps;
    l->columns = qlines_columns(s);
    l->pad = scratch;
    l->at = (const uint8_t **)(void *)(l->pad + qlines_pad(s));
    memset(l->pad, q->of_x.zero ^ q->of_x.flip, (size_t)qlines_pad(s));
}

/* Fills the table for output row `row` (counted over images, planes and rows). */
static inline void qlines_find(struct qlines *l, const struct ew_qconv *q, int64_t row)
{
    const struct ew_conv_axis *a = q->shape->axis;
    const int64_t channels = q->shape->cin, n = row / a[1].out / a[0].out;
    const int64_t z0 = row / a[1].out % a[0].out * a[0].stride - a[0].pad;
    const int64_t y0 = row % a[1].out * a[1].stride - a[1].pad;
    const uint8_t **out = l->at;
    for (int64_t i = 0; i < l->lines; i++) {
        const int64_t z = z0 + i / a[1].taps * a[0].dilation;
        const int64_t y = y0 + i % a[1].taps * a[1].dilation;
        const bool inside = z >= 0 && z < a[0].in && y >= 0 && y < a[1].in;
        const uint8_t *line = q->x + ((n * a[0].in + z) * a[1].in + y) * a[2].in * channels;
        for (int64_t c = 0; c < l->columns; c++) {
            const int64_t at = c - a[2].pad;
            *out++ = inside && at >= 0 && at < a[2].in ? line + at * channels : l->pad;
        }
    }
}

INLINE int64_t qdepth_taps(const struct ew_conv_shape *s)
{
    return (int64_t)s->axis[0].taps * s->axis[1].taps * s->axis[2].taps;
}

#endif
