/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pooling, and the gradient of the average; k_max_pool.c has that of the maximum.
 * Lanes are channels. */
#include "backend/cpu/kernel/pool/larger.h"
#include "backend/cpu/kernel/pool/pool_window.h"

/* The part of an output's window inside the input: coordinates [from, to) by `step`. */
struct window {
    int64_t from[3], to[3], step[3];
    int64_t inside, whole; /* taps */
};

static void find_window(const struct ew_conv_shape *s, const int64_t o[3], struct window *w)
{
    w->inside = 1;
    w->whole = 1;
    for (int i = 0; i < 3; i++) {
        const struct ew_conv_axis *a = &s->axis[i];
        const int64_t first = o[i] * a->stride - a->pad;
        const int64_t skip = first < 0 ? steps_of(-first, a->dilation) : 0;
        const int64_t room = first < a->in ? steps_of(a->in - first, a->dilation) : 0;
        const int64_t last = min_i64(a->taps, room);
        w->step[i] = a->dilation;
        w->from[i] = first + skip * a->dilation;
        w->to[i] = skip < last ? first + (last - 1) * a->dilation + 1 : w->from[i];
        w->inside *= max_i64(last - skip, 0);
        w->whole *= a->taps;
    }
}

#define EACH_PIXEL(w, z, y, x)                                                                     \
    for (int64_t z = (w).from[0]; z < (w).to[0]; z += (w).step[0])                                 \
        for (int64_t y = (w).from[1]; y < (w).to[1]; y += (w).step[1])                             \
            for (int64_t x = (w).from[2]; x < (w).to[2]; x += (w).step[2])

/* Offset of a window's first pixel if the window is inside the image and its pixels are listed;
 * else -1. */
INLINE int64_t listed_at(const struct image *im, const struct window *w)
{
    return im->taps && w->inside == w->whole ? pixel_at(im, w->from[0], w->from[1], w->from[2])
                                             : -1;
}

static float divisor(const struct ew_pooling *p, const struct window *w)
{
    const int64_t n = p->count_pads ? w->whole : w->inside;
    return n ? 1.0f / (float)n : 0;
}

int64_t EW_K(pool_tiles)(const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->axis[0].out * s->axis[1].out;
}

static void pool_pixel(const struct ew_pooling *p, const struct image *im, const struct window *w,
                       float *out)
{
    const float scale = p->max ? 1.0f : divisor(p, w);
    const int64_t at = listed_at(im, w);
    for (int64_t c = 0; c < p->shape.cin; c += LANES) {
        const int64_t n = p->shape.cin - c;
        vec v = splat(p->max ? -INFINITY : 0.0f);
        if (at >= 0 && p->max) {
            for (int64_t t = 0; t < im->taps; t++)
                v = larger(v, load_n(p->x + at + im->offset[t] + c, n));
        } else if (p->max) {
            EACH_PIXEL(*w, z, y, x)
            v = larger(v, load_n(p->x + pixel_at(im, z, y, x) + c, n));
        } else {
            EACH_PIXEL(*w, z, y, x)
            v += load_n(p->x + pixel_at(im, z, y, x) + c, n);
        }
        store_n(out + c, v * scale, n);
    }
}

/* Sum or maximum of `taps` listed pixels, n channels. */
INLINE vec reduce_listed(const float *x, const struct image *im, const int64_t taps, const bool max,
                         int64_t n)
{
    vec v = load_n(x + im->offset[0], n);
    for (int64_t t = 1; t < taps; t++) {
        const vec next = load_n(x + im->offset[t], n);
        v = max ? larger(v, next) : v + next;
    }
    return v;
}

INLINE void pool_inner(const struct ew_pooling *p, const struct image *im, const struct inner *r,
                       float *y, const int64_t taps)
{
    const int64_t channels = p->shape.cin;
    const float scale = 1.0f / (float)taps;
    const float *x = p->x + r->at;
    int64_t o = r->from;
    for (; o < loose_end(r, channels, channels); o++, x += r->step, y += channels)
        store(y, p->max ? reduce_listed(x, im, taps, true, LANES)
                        : reduce_listed(x, im, taps, false, LANES) * scale);
    for (; o < r->to; o++, x += r->step, y += channels)
        for (int64_t c = 0; c < channels; c += LANES) {
            const int64_t n = channels - c;
            store_n(y + c,
                    p->max ? reduce_listed(x + c, im, taps, true, n)
                           : reduce_listed(x + c, im, taps, false, n) * scale,
                    n);
        }
}

static void pool_inner_any(const struct ew_pooling *p, const struct image *im,
                           const struct inner *r, float *y)
{
    if (im->taps == 4)
        pool_inner(p, im, r, y, 4);
    else if (im->taps == 9)
        pool_inner(p, im, r, y, 9);
    else
        pool_inner(p, im, r, y, im->taps);
}

void EW_K(pool_run)(const struct ew_pooling *p, int64_t begin, int64_t end)
{
    const struct ew_conv_shape *s = &p->shape;
    const struct ew_conv_axis *a = s->axis;
    struct image im = {.s = s};
    list_taps(&im);
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t row = row_of_tile(s, tile);
        im.n = row / a[1].out / a[0].out;
        int64_t o[3] = {row / a[1].out % a[0].out, row % a[1].out, 0};
        const struct inner inner = find_inner(&im, o);
        float *const y = p->y + row * a[2].out * s->cin;
        if (inner.from < inner.to)
            pool_inner_any(p, &im, &inner, y + inner.from * s->cin);
        for (; o[2] < a[2].out; o[2]++) {
            if (o[2] == inner.from && inner.from < inner.to)
                o[2] = inner.to;
            if (o[2] >= a[2].out)
                break;
            struct window w;
            find_window(s, o, &w);
            pool_pixel(p, &im, &w, y + o[2] * s->cin);
        }
    }
}

/* ---- Backward: windows overlap, so a tile is an image and a block of channels ---- */

#define CHANNELS (4 * LANES)

int64_t EW_K(pool_back_tiles)(const struct ew_conv_shape *s)
{
    return s->batch * div_up(s->cin, CHANNELS);
}

INLINE void add_gradient(const struct image *im, float *to, vec v, int64_t n)
{
    store_n(to, im->fresh ? v : load_n(to, n) + v, n);
}

/* Backward of a window inside the image, whose pixels are listed. */
INLINE void back_listed(const struct ew_pooling *p, const struct image *im, int64_t at, vec dy,
                        int64_t n, const int64_t taps)
{
    for (int64_t t = 0; t < taps; t++)
        add_gradient(im, p->dx + at + im->offset[t], dy, n);
}

INLINE void back_inner(const struct ew_pooling *p, const struct image *im, const struct inner *r,
                       const float *dy, int64_t channels, const int64_t taps)
{
    const float scale = 1.0f / (float)taps;
    int64_t at = r->at, o = r->from;
    if (im->fresh)
        for (; o < loose_end(r, channels, p->shape.cin); o++, at += r->step, dy += p->shape.cin)
            back_listed(p, im, at, load(dy) * scale, LANES, taps);
    for (; o < r->to; o++, at += r->step, dy += p->shape.cin) {
        int64_t c = 0;
        for (; c + LANES <= channels; c += LANES)
            back_listed(p, im, at + c, load(dy + c) * scale, LANES, taps);
        if (c < channels)
            back_listed(p, im, at + c, load_n(dy + c, channels - c) * scale, channels - c, taps);
    }
}

/* Backward of the inner outputs of a row; false: no loop is specialised for this number of taps. */
static bool back_inner_any(const struct ew_pooling *p, const struct image *im, struct inner *r,
                           const float *dy, int64_t channels)
{
    if (im->taps == 4)
        back_inner(p, im, r, dy, channels, 4);
    else if (im->taps == 9)
        back_inner(p, im, r, dy, channels, 9);
    else
        return false;
    return true;
}

static void back_pixel(const struct ew_pooling *p, const struct image *im, const int64_t o[3],
                       int64_t c0, int64_t c1)
{
    const struct ew_conv_axis *a = p->shape.axis;
    const int64_t out = ((im->n * a[0].out + o[0]) * a[1].out + o[1]) * a[2].out + o[2];
    struct window w;
    find_window(&p->shape, o, &w);
    const float scale = divisor(p, &w);
    for (int64_t c = c0; c < c1; c += LANES) {
        const int64_t n = c1 - c;
        const vec dy = load_n(p->dy + out * p->shape.cin + c, n) * scale;
        EACH_PIXEL(w, z, y, x)
        add_gradient(im, p->dx + pixel_at(im, z, y, x) + c, dy, n);
    }
}

static void back_row(const struct ew_pooling *p, const struct image *im, int64_t o[3], int64_t c0,
                     int64_t c1)
{
    const struct ew_conv_axis *a = p->shape.axis;
    o[2] = 0;
    struct inner r = find_inner(im, o);
    r.at += c0;
    const int64_t row = (im->n * a[0].out + o[0]) * a[1].out + o[1];
    const float *dy = p->dy + (row * a[2].out + r.from) * p->shape.cin + c0;
    if (r.from >= r.to || !back_inner_any(p, im, &r, dy, c1 - c0))
        r.from = r.to = -1;
    for (; o[2] < a[2].out; o[2]++) {
        if (o[2] == r.from)
            o[2] = r.to;
        if (o[2] < a[2].out)
            back_pixel(p, im, o, c0, c1);
    }
}

void EW_K(pool_back_run)(const struct ew_pooling *p, int64_t begin, int64_t end)
{
    const struct ew_conv_axis *a = p->shape.axis;
    const int64_t channel_blocks = div_up(p->shape.cin, CHANNELS);
    const int64_t pixels = (int64_t)a[0].in * a[1].in * a[2].in;
    const bool fresh = !p->add && windows_tile(&p->shape);
    struct image im = {.s = &p->shape, .fresh = fresh};
    list_taps(&im);
    for (int64_t tile = begin; tile < end; tile++) {
        im.n = tile / channel_blocks;
        const int64_t c0 = tile % channel_blocks * CHANNELS,
                      c1 = min_i64(c0 + CHANNELS, p->shape.cin);
        for (int64_t i = 0; !p->add && !fresh && i < pixels; i++)
            clear(p->dx + (im.n * pixels + i) * p->shape.cin + c0, c1 - c0);
        int64_t o[3];
        for (o[0] = 0; o[0] < a[0].out; o[0]++)
            for (o[1] = 0; o[1] < a[1].out; o[1]++)
                back_row(p, &im, o, c0, c1);
    }
}
