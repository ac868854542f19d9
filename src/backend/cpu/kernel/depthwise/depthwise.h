/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the depthwise kernels: the table of input pixels that one row of outputs reads.
 *
 * Entry [plane][row][column] points at the channels of one input pixel, or at zeros outside the
 * image, so that loops need no edge handling.  Column o * stride + t * dilation is output o's tap
 * t. */
#ifndef EW_BACKEND_CPU_KERNEL_DEPTHWISE_DEPTHWISE_H
#define EW_BACKEND_CPU_KERNEL_DEPTHWISE_DEPTHWISE_H

#include "backend/cpu/kernel/norm/norm_rows.h"

INLINE int64_t taps_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->axis[0].taps * s->axis[1].taps * s->axis[2].taps;
}

#define SAME_SET 512 /* floats: addresses a multiple of this apart share two sets of L1 */

/* Floats between taps of a packed filter: the channels in whole vectors, plus a cache line if the
 * taps of a channel would share cache sets. */
INLINE int64_t padded_channels(const struct ew_conv_shape *s)
{
    const int64_t wide = div_up(s->cin, LANES) * LANES;
    return wide % SAME_SET ? wide : wide + 16;
}

/* With a fused batch norm, forward or backward, each input line is computed once, when it is first
 * read, into a ring buffer of as many lines as one row of outputs reads. */
struct lines {
    int64_t channels, columns;
    const float **at; /* [planes][rows][columns] */
    float *zero;      /* [channels] */
    const struct ew_batch_norm *norm;
    const struct ew_batch_norm *back; /* instead of norm: lines are the gradient of this norm's
                                       * input */
    int64_t rings, *held;             /* lines of the ring; the line of x in each, or -1 */
    float *ring;
    bool far; /* prefetch the next line while one is computed: with stride 2 there are two for each
               * row of outputs, and prefetching both at once would stall */
};

INLINE int64_t lines_columns(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = &s->axis[2];
    return max_i64((int64_t)(a->out - 1) * a->stride + (int64_t)(a->taps - 1) * a->dilation + 1, 1);
}

/* Bands of rows need the registers of AVX-512. */
#define BANDS (LANES == 16)

/* Rows of outputs in a band; 1: no band.  None if pixels are a multiple of 4 KiB apart, because
 * they share a set of L1 and prefetched lines would be evicted before they are used; none for 5x5
 * filters on images so small that half of the taps read padding. */
INLINE int64_t band_rows(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    if (!BANDS)
        return 1;
    const bool square = a[1].taps == a[2].taps && a[1].stride == a[2].stride;
    if (s->input_norm || a[0].taps != 1 || !square || a[2].stride > 2 || a[2].out < 4 ||
        a[1].dilation != 1 || a[2].dilation != 1 || (a[2].taps != 3 && a[2].taps != 5) ||
        a[1].pad < 0 || a[2].pad < 0 || s->cin * a[2].stride % (2 * SAME_SET) == 0 ||
        (a[2].taps == 5 && a[1].out < 8))
        return 1;
    return a[2].taps == 3 && a[2].stride == 1 ? 3 : 2;
}

INLINE int64_t lines_entries(const struct ew_conv_shape *s)
{
    const int64_t more = (band_rows(s) - 1) * s->axis[1].stride; /* more lines for a band */
    return div_up(((int64_t)s->axis[0].taps * s->axis[1].taps + more) * lines_columns(s), 8) * 8;
}

INLINE int64_t lines_rings(const struct ew_conv_shape *s)
{
    return s->input_norm ? (int64_t)(s->axis[1].taps - 1) * s->axis[1].dilation + 1 : 0;
}

/* Bytes of scratch for struct lines. */
INLINE size_t lines_bytes(const struct ew_conv_shape *s)
{
    const int64_t rings = lines_rings(s);
    return (size_t)padded_channels(s) * sizeof(float) + (size_t)lines_entries(s) * sizeof(float *) +
           (size_t)div_up(rings, 8) * 8 * sizeof(int64_t) +
           (size_t)(rings * s->axis[2].in * s->cin) * sizeof(float);
}

/* True if tensors exceed a core's own cache, so that prefetching is worth it. */
INLINE bool lines_far(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    const int64_t in = (int64_t)a[0].in * a[1].in * a[2].in;
    const int64_t out = (int64_t)a[0].out * a[1].out * a[2].out;
    return (int64_t)s->batch * s->cin * (in + out) > 1 << 18; /* 1 MiB */
}

INLINE void lines_init(struct lines *l, const struct ew_conv_shape *s,
                       const struct ew_batch_norm *norm, void *scratch)
{
    l->channels = s->cin;
    l->columns = lines_columns(s);
    l->zero = scratch;
    l->at = (const float **)(void *)(l->zero + padded_channels(s));
    l->norm = s->input_norm ? norm : NULL;
    l->back = NULL;
    l->rings = lines_rings(s);
    l->far = lines_far(s) && s->axis[1].stride > 1;
    l->held = (int64_t *)(void *)(l->at + lines_entries(s));
    l->ring = (float *)(void *)(l->held + div_up(l->rings, 8) * 8);
    clear(l->zero, s->cin);
    for (int64_t i = 0; i < l->rings; i++)
        l->held[i] = -1;
}

/* Line `line` of the input, counted over images, planes and rows; `pixels` is the width. */
static inline const float *lines_at(struct lines *l, const float *x, int64_t line, int64_t pixels)
{
    const int64_t floats = pixels * l->channels;
    if (!l->norm && !l->back)
        return x + line * floats;
    const int64_t i = line % l->rings;
    float *to = l->ring + i * floats;
    if (l->held[i] == line)
        return to;
    if (l->back)
        norm_back_rows(l->back, line * pixels, pixels, to, l->far ? floats : 0);
    else
        norm_rows(l->norm, line * pixels, pixels, to, l->far ? floats : 0);
    l->held[i] = line;
    return to;
}

/* Prefetches n floats that will be read or written: hardware prefetchers miss accesses of one
 * vector for each pixel. */
INLINE void fetch(const float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16)
        __builtin_prefetch(p + i, 0, 2);
}

/* Prefetches share `part` of `parts` of the input that row + 1 reads and `row` does not. */
INLINE void lines_fetch(const struct ew_conv_shape *s, const float *x, int64_t row, int64_t part,
                        int64_t parts)
{
    const struct ew_conv_axis *h = &s->axis[1];
    const int64_t floats = (int64_t)s->axis[2].in * s->cin;
    const int64_t last = row % h->out * h->stride - h->pad + (int64_t)(h->taps - 1) * h->dilation;
    const int64_t from = max_i64(last + 1, 0), to = min_i64(last + 1 + h->stride, h->in);
    const int64_t n = (to - from) * floats, image = row / h->out * h->in;
    if (n > 0)
        fetch(x + (image + from) * floats + n * part / parts,
              n * (part + 1) / parts - n * part / parts);
}

/* Fills the table for output row `row` (counted over images, planes and rows): `lines` lines of
 * each plane, the taps of axis 1, or more for a band. */
static inline void lines_find(struct lines *l, const struct ew_conv_shape *s, const float *x,
                              int64_t row, int64_t lines)
{
    const struct ew_conv_axis *a = s->axis;
    const int64_t n = row / a[1].out / a[0].out;
    const int64_t z0 = (int64_t)(row / a[1].out % a[0].out) * a[0].stride - a[0].pad;
    const int64_t y0 = (int64_t)(row % a[1].out) * a[1].stride - a[1].pad;
    /* Columns [first, last) are inside the image. */
    const int64_t first = min_i64(max_i64(a[2].pad, 0), l->columns);
    const int64_t last = max_i64(min_i64((int64_t)a[2].in + a[2].pad, l->columns), first);
    const float **out = l->at;
    for (int64_t i = 0; i < a[0].taps * lines; i++) {
        const int64_t z = z0 + i / lines * a[0].dilation;
        const int64_t y = y0 + i % lines * a[1].dilation;
        const bool inside = z >= 0 && z < a[0].in && y >= 0 && y < a[1].in;
        const float *line =
            inside ? lines_at(l, x, (n * a[0].in + z) * a[1].in + y, a[2].in) : NULL;
        for (int64_t c = 0; c < first; c++)
            out[c] = l->zero;
        for (int64_t c = first; c < last && inside; c++)
            out[c] = line + (c - a[2].pad) * l->channels;
        for (int64_t c = inside ? last : first; c < l->columns; c++)
            out[c] = l->zero;
        out += l->columns;
    }
}

/* k_depthwise_band.c: computes `rows` rows of outputs of one image, band_rows or 2. */
void EW_KF(depthwise_band)(const struct ew_conv *c, struct lines *l, int64_t row, int64_t rows);

/* k_depthwise.c: computes one row of outputs with the table `l`. */
void EW_KF(depthwise_row)(const struct ew_conv *c, struct lines *l, int64_t row);

/* k_depthwise_wgrad.c: accumulates one row of outputs into sums [taps][channels, in whole
 * vectors]. */
struct filter_row {
    const struct ew_conv_shape *s;
    struct lines *l;
    const float *x;  /* the whole tensor */
    int64_t row;     /* row of outputs */
    const float *dy; /* of the row's first output */
    float *sum;
    const float *prefetch[2]; /* rows of dy's size to prefetch; NULL: none */
};

void EW_KF(depthwise_wgrad_row)(const struct filter_row *r);

#endif
