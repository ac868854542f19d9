/* SPDX-License-Identifier: Apache-2.0 */
/* Pool windows: their pixels, and which outputs need no padding. */
#ifndef EW_BACKEND_CPU_KERNEL_POOL_POOL_WINDOW_H
#define EW_BACKEND_CPU_KERNEL_POOL_POOL_WINDOW_H

#include "backend/cpu/kernel/common/vec.h"

/* Steps that cover n.  Avoids a division, which costs as much as a small window. */
INLINE int64_t steps_of(int64_t n, int64_t step)
{
    return step == 1 ? n : div_up(n, step);
}

#define TAPS 64 /* most pixels of a window that are listed: all but global pools have fewer */

/* One image of the input. */
struct image {
    const struct ew_conv_shape *s;
    int64_t n;
    int64_t taps, offset[TAPS]; /* taps: pixels of a window, 0: not listed; offset: of each from the
                                 * first */
    bool fresh; /* backward: each pixel is in exactly one window, so dx is written, not
                 * accumulated */
};

INLINE int64_t pixel_at(const struct image *i, int64_t z, int64_t y, int64_t x)
{
    const struct ew_conv_axis *a = i->s->axis;
    return (((i->n * a[0].in + z) * a[1].in + y) * a[2].in + x) * i->s->cin;
}

/* Lists the pixels of a window inside the image. */
INLINE void list_taps(struct image *im)
{
    const struct ew_conv_axis *a = im->s->axis;
    im->taps = (int64_t)a[0].taps * a[1].taps * a[2].taps;
    if (im->taps > TAPS)
        im->taps = 0;
    for (int64_t t = 0; t < im->taps; t++) {
        const int64_t x = t % a[2].taps, y = t / a[2].taps % a[1].taps,
                      z = t / a[2].taps / a[1].taps;
        const int64_t line = z * a[0].dilation * a[1].in + y * a[1].dilation;
        im->offset[t] = (line * a[2].in + x * a[2].dilation) * im->s->cin;
    }
}

/* Outputs [from, to) of a row whose windows are inside the image, if pixels are listed; empty
 * otherwise.  `at`: offset of the first pixel of output `from`; `step`: between outputs. */
struct inner {
    int64_t from, to, at, step;
};

INLINE struct inner find_inner(const struct image *im, const int64_t o[3])
{
    const struct ew_conv_axis *a = im->s->axis;
    int64_t first[3];
    struct inner r = {0};
    for (int i = 0; i < 3; i++) {
        first[i] = o[i] * a[i].stride - a[i].pad;
        if (i < 2 &&
            (first[i] < 0 || first[i] + (int64_t)(a[i].taps - 1) * a[i].dilation >= a[i].in))
            return r;
    }
    const int64_t room = a[2].in - 1 - (int64_t)(a[2].taps - 1) * a[2].dilation + a[2].pad;
    r.from = min_i64(max_i64(steps_of(a[2].pad, a[2].stride), 0), a[2].out);
    r.to = im->taps && room >= 0 ? min_i64(room / a[2].stride + 1, a[2].out) : 0;
    r.at = pixel_at(im, first[0], first[1], r.from * a[2].stride - a[2].pad);
    r.step = (int64_t)a[2].stride * im->s->cin;
    return r;
}

/* With fewer channels than lanes, pixels may be stored as whole vectors as long as later pixels
 * overwrite the excess; returns the end of those outputs.  Partial stores are slow. */
INLINE int64_t loose_end(const struct inner *r, int64_t channels, int64_t all)
{
    return channels == all && channels < LANES ? r->to - div_up(LANES, channels) : r->from;
}

/* The row of outputs, counted over all images, of tile `index`.  Convolutions with the batch in
 * lanes (batch_lanes.h) have tiles of rows of all images; pools next to them use the same order, so
 * that threads find their own results in their caches. */
INLINE int64_t row_of_tile(const struct ew_conv_shape *s, int64_t index)
{
    const int64_t rows = (int64_t)s->axis[0].out * s->axis[1].out;
    if (s->cin >= LANES || s->batch < LANES)
        return index;
    return index % s->batch * rows + index / s->batch;
}

/* True if windows tile the image: each pixel is in exactly one. */
INLINE bool windows_tile(const struct ew_conv_shape *s)
{
    bool tile = true;
    for (int i = 0; i < 3; i++) {
        const struct ew_conv_axis *a = &s->axis[i];
        tile = tile && a->taps == a->stride && a->dilation == 1 && a->pad >= 0 &&
               (int64_t)a->out * a->stride - a->pad >= a->in;
    }
    return tile;
}

#endif
