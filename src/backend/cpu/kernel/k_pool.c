/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pooling, forward and backward.  Lanes are channels. */
#include "backend/cpu/kernel/vec.h"

/* The part of an output's window that lies in the input: coordinates [from, to) by `step`. */
struct window {
    int64_t from[3], to[3], step[3];
    int64_t inside, whole; /* taps */
};

/* Steps that cover n; a division for each window costs as much as a small window itself. */
INLINE int64_t steps_of(int64_t n, int64_t step)
{
    return step == 1 ? n : div_up(n, step);
}

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

#define TAPS                                                                                       \
    64 /* of a window whose pixels are listed: more than any network has but the global            \
        */

#define EACH_PIXEL(w, z, y, x)                                                                     \
    for (int64_t z = (w).from[0]; z < (w).to[0]; z += (w).step[0])                                 \
        for (int64_t y = (w).from[1]; y < (w).to[1]; y += (w).step[1])                             \
            for (int64_t x = (w).from[2]; x < (w).to[2]; x += (w).step[2])

struct image {
    const struct ew_conv_shape *s;
    int64_t n;
    int64_t taps, offset[TAPS]; /* of a window's pixels from its first; 0: not listed */
    bool fresh; /* backward: each pixel is in one window, and is written there for the first time */
};

INLINE int64_t pixel_at(const struct image *i, int64_t z, int64_t y, int64_t x)
{
    const struct ew_conv_axis *a = i->s->axis;
    return (((i->n * a[0].in + z) * a[1].in + y) * a[2].in + x) * i->s->cin;
}

/* Lists the pixels of a window that lies within the image. */
static void list_taps(struct image *im)
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

/* The first pixel of a window of which all pixels are listed, or -1. */
INLINE int64_t listed_at(const struct image *im, const struct window *w)
{
    return im->taps && w->inside == w->whole ? pixel_at(im, w->from[0], w->from[1], w->from[2])
                                             : -1;
}

/* Outputs [from, to) of a row whose windows lie in the image, where their pixels are listed: they
 * need no window to be found.  `at` is the first pixel of output `from`. */
struct inner {
    int64_t from, to, at, step;
};

static struct inner find_inner(const struct image *im, const int64_t o[3])
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

/* Pixels of less than a vector may be loaded and stored as a whole one where what is written too
 * much is written anew later: until a vector's length before the end of the row.  Parts of vectors
 * are slow to store. */
INLINE int64_t loose_end(const struct inner *r, int64_t channels, int64_t all)
{
    return channels == all && channels < LANES ? r->to - div_up(LANES, channels) : r->from;
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
                v = vmax(v, load_n(p->x + at + im->offset[t] + c, n));
        } else if (p->max) {
            EACH_PIXEL(*w, z, y, x)
            v = vmax(v, load_n(p->x + pixel_at(im, z, y, x) + c, n));
        } else {
            EACH_PIXEL(*w, z, y, x)
            v += load_n(p->x + pixel_at(im, z, y, x) + c, n);
        }
        store_n(out + c, v * scale, n);
    }
}

/* Sum or maximum of `taps` pixels, n channels. */
INLINE vec reduce_listed(const float *x, const struct image *im, const int64_t taps, const bool max,
                         int64_t n)
{
    vec v = load_n(x + im->offset[0], n);
    for (int64_t t = 1; t < taps; t++) {
        const vec next = load_n(x + im->offset[t], n);
        v = max ? vmax(v, next) : v + next;
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
    for (int64_t row = begin; row < end; row++) {
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

/* ---- Backward: windows overlap, so a tile is an image and a band of channels ---- */

#define CHANNELS (4 * LANES)

int64_t EW_K(pool_back_tiles)(const struct ew_conv_shape *s)
{
    return s->batch * div_up(s->cin, CHANNELS);
}

/* Windows side by side: no pixel is in two of them, or in none. */
static bool windows_tile(const struct ew_conv_shape *s)
{
    bool tile = true;
    for (int i = 0; i < 3; i++) {
        const struct ew_conv_axis *a = &s->axis[i];
        tile = tile && a->taps == a->stride && a->dilation == 1 && a->pad >= 0 &&
               (int64_t)a->out * a->stride - a->pad >= a->in;
    }
    return tile;
}

INLINE void give(const struct image *im, float *to, vec v, int64_t n)
{
    store_n(to, im->fresh ? v : load_n(to, n) + v, n);
}

struct peak {
    vec best, dy;
    vint open; /* lanes whose largest has not been met yet */
};

/* The first of a window's largest takes the gradient. */
INLINE void max_give(const struct ew_pooling *p, const struct image *im, struct peak *k, int64_t at,
                     int64_t n)
{
    const vint hit = (load_n(p->x + at, n) >= k->best) & k->open;
    k->open &= ~hit;
    give(im, p->dx + at, pick(hit, k->dy, (vec){0}), n);
}

INLINE void max_back(const struct ew_pooling *p, const struct image *im, const struct window *w,
                     vec dy, int64_t c, int64_t n)
{
    const int64_t first = listed_at(im, w);
    struct peak k = {.best = splat(-INFINITY), .dy = dy, .open = (vint){0} == 0};
    if (first >= 0) {
        for (int64_t t = 0; t < im->taps; t++)
            k.best = vmax(k.best, load_n(p->x + first + im->offset[t] + c, n));
        for (int64_t t = 0; t < im->taps; t++)
            max_give(p, im, &k, first + im->offset[t] + c, n);
        return;
    }
    EACH_PIXEL(*w, z, y, x)
    k.best = vmax(k.best, load_n(p->x + pixel_at(im, z, y, x) + c, n));
    EACH_PIXEL(*w, z, y, x)
    max_give(p, im, &k, pixel_at(im, z, y, x) + c, n);
}

/* The same for windows whose pixels are listed, all inside: the largest is found first, and no
 * pixel is looked at twice. */
INLINE void back_listed(const struct ew_pooling *p, const struct image *im, int64_t at, vec dy,
                        int64_t n, const int64_t taps)
{
    if (!p->max) {
        for (int64_t t = 0; t < taps; t++)
            give(im, p->dx + at + im->offset[t], dy, n);
        return;
    }
    vec x[9];
    struct peak k = {.dy = dy, .open = (vint){0} == 0};
    UNROLL
    for (int64_t t = 0; t < taps; t++)
        x[t] = load_n(p->x + at + im->offset[t], n);
    k.best = x[0];
    UNROLL
    for (int64_t t = 1; t < taps; t++)
        k.best = vmax(k.best, x[t]);
    UNROLL
    for (int64_t t = 0; t < taps; t++) {
        const vint hit = (x[t] >= k.best) & k.open;
        k.open &= ~hit;
        give(im, p->dx + at + im->offset[t], pick(hit, dy, (vec){0}), n);
    }
}

INLINE void back_inner(const struct ew_pooling *p, const struct image *im, const struct inner *r,
                       const float *dy, int64_t channels, const int64_t taps)
{
    const float scale = p->max ? 1.0f : 1.0f / (float)taps;
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

/* Inner outputs of a row, channels [c0, c1); false: their number of taps has no loop of its own. */
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
    const float scale = p->max ? 1.0f : divisor(p, &w);
    for (int64_t c = c0; c < c1; c += LANES) {
        const int64_t n = c1 - c;
        const vec dy = load_n(p->dy + out * p->shape.cin + c, n) * scale;
        if (p->max) {
            max_back(p, im, &w, dy, c, n);
            continue;
        }
        EACH_PIXEL(w, z, y, x)
        give(im, p->dx + pixel_at(im, z, y, x) + c, dy, n);
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
    const int64_t bands = div_up(p->shape.cin, CHANNELS);
    const int64_t pixels = (int64_t)a[0].in * a[1].in * a[2].in;
    const bool fresh = !p->add && windows_tile(&p->shape);
    struct image im = {.s = &p->shape, .fresh = fresh};
    list_taps(&im);
    for (int64_t tile = begin; tile < end; tile++) {
        im.n = tile / bands;
        const int64_t c0 = tile % bands * CHANNELS, c1 = min_i64(c0 + CHANNELS, p->shape.cin);
        for (int64_t i = 0; !p->add && !fresh && i < pixels; i++)
            clear(p->dx + (im.n * pixels + i) * p->shape.cin + c0, c1 - c0);
        int64_t o[3];
        for (o[0] = 0; o[0] < a[0].out; o[0]++)
            for (o[1] = 0; o[1] < a[1].out; o[1]++)
                back_row(p, &im, o, c0, c1);
    }
}
