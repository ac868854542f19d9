/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pooling, forward and backward.  Lanes are channels. */
#include "backend/cpu/kernel/vec.h"

/* The part of an output's window that lies in the input: coordinates [from, to) by `step`. */
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
        const int64_t skip = first < 0 ? div_up(-first, a->dilation) : 0;
        const int64_t room = first < a->in ? div_up(a->in - first, a->dilation) : 0;
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

struct image {
    const struct ew_conv_shape *s;
    int64_t n;
};

INLINE int64_t pixel_at(const struct image *i, int64_t z, int64_t y, int64_t x)
{
    const struct ew_conv_axis *a = i->s->axis;
    return (((i->n * a[0].in + z) * a[1].in + y) * a[2].in + x) * i->s->cin;
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
    for (int64_t c = 0; c < p->shape.cin; c += LANES) {
        const int64_t n = p->shape.cin - c;
        vec v = splat(p->max ? -INFINITY : 0.0f);
        if (p->max) {
            EACH_PIXEL(*w, z, y, x)
            v = vmax(v, load_n(p->x + pixel_at(im, z, y, x) + c, n));
        } else {
            EACH_PIXEL(*w, z, y, x)
            v += load_n(p->x + pixel_at(im, z, y, x) + c, n);
        }
        store_n(out + c, v * scale, n);
    }
}

void EW_K(pool_run)(const struct ew_pooling *p, int64_t begin, int64_t end)
{
    const struct ew_conv_shape *s = &p->shape;
    const struct ew_conv_axis *a = s->axis;
    for (int64_t row = begin; row < end; row++) {
        const struct image im = {.s = s, .n = row / a[1].out / a[0].out};
        int64_t o[3] = {row / a[1].out % a[0].out, row % a[1].out, 0};
        for (; o[2] < a[2].out; o[2]++) {
            struct window w;
            find_window(s, o, &w);
            pool_pixel(p, &im, &w, p->y + (row * a[2].out + o[2]) * s->cin);
        }
    }
}

/* ---- Backward: windows overlap, so a tile is an image and a band of channels ---- */

#define CHANNELS (4 * LANES)

int64_t EW_K(pool_back_tiles)(const struct ew_conv_shape *s)
{
    return s->batch * div_up(s->cin, CHANNELS);
}

/* The first of a window's largest takes the gradient. */
INLINE void max_back(const struct ew_pooling *p, const struct image *im, const struct window *w,
                     vec dy, int64_t c, int64_t n)
{
    vec best = splat(-INFINITY);
    EACH_PIXEL(*w, z, y, x)
    best = vmax(best, load_n(p->x + pixel_at(im, z, y, x) + c, n));
    vint open = (vint){0} == 0;
    EACH_PIXEL(*w, z, y, x)
    {
        const int64_t at = pixel_at(im, z, y, x) + c;
        const vint hit = (load_n(p->x + at, n) >= best) & open;
        open &= ~hit;
        store_n(p->dx + at, load_n(p->dx + at, n) + pick(hit, dy, (vec){0}), n);
    }
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
        {
            float *to = p->dx + pixel_at(im, z, y, x) + c;
            store_n(to, load_n(to, n) + dy, n);
        }
    }
}

void EW_K(pool_back_run)(const struct ew_pooling *p, int64_t begin, int64_t end)
{
    const struct ew_conv_axis *a = p->shape.axis;
    const int64_t bands = div_up(p->shape.cin, CHANNELS);
    const int64_t pixels = (int64_t)a[0].in * a[1].in * a[2].in;
    for (int64_t tile = begin; tile < end; tile++) {
        const struct image im = {.s = &p->shape, .n = tile / bands};
        const int64_t c0 = tile % bands * CHANNELS, c1 = min_i64(c0 + CHANNELS, p->shape.cin);
        for (int64_t i = 0; !p->add && i < pixels; i++)
            clear(p->dx + (im.n * pixels + i) * p->shape.cin + c0, c1 - c0);
        int64_t o[3];
        for (o[0] = 0; o[0] < a[0].out; o[0]++)
            for (o[1] = 0; o[1] < a[1].out; o[1]++)
                for (o[2] = 0; o[2] < a[2].out; o[2]++)
                    back_pixel(p, &im, o, c0, c1);
    }
}
