/* SPDX-License-Identifier: Apache-2.0 */
/* Max pooling in training: forward also stores the index of each maximum in its window, and
 * backward reads only that and dy.
 *
 * If windows do not overlap, backward runs window by window.  If they overlap, it runs pixel by
 * pixel over the windows that contain the pixel (gather): each gradient is written once, in order,
 * by one thread.  Lanes are channels. */
#include "backend/cpu/kernel/pool/argmax.h"
#include "backend/cpu/kernel/pool/pool_window.h"

#define LIST 256 /* most elements of a window: indices are bytes */

/* The pixels of one window, or the windows of one pixel, with their offsets and taps. */
struct window_range {
    int64_t n, at[LIST];
    int32_t tap[LIST];
};

/* Lists the pixels of an output's window that are inside the image. */
static void list_window(const struct image *im, const int64_t o[3], struct window_range *out)
{
    const struct ew_conv_axis *a = im->s->axis;
    int64_t at[3];
    int32_t tap = 0;
    out->n = 0;
    for (int32_t z = 0; z < a[0].taps; z++)
        for (int32_t y = 0; y < a[1].taps; y++)
            for (int32_t x = 0; x < a[2].taps; x++, tap++) {
                const int32_t t[3] = {z, y, x};
                bool inside = true;
                for (int i = 0; i < 3; i++) {
                    at[i] = o[i] * a[i].stride - a[i].pad + (int64_t)t[i] * a[i].dilation;
                    inside = inside && at[i] >= 0 && at[i] < a[i].in;
                }
                if (!inside)
                    continue;
                out->at[out->n] = pixel_at(im, at[0], at[1], at[2]);
                out->tap[out->n++] = tap;
            }
}

/* ---- Forward ---- */

/* One output of any window. */
static void max_pixel(const struct ew_pooling *p, const struct window_range *w, int64_t out)
{
    for (int64_t c = 0; c < p->shape.cin; c += LANES) {
        const int64_t n = p->shape.cin - c;
        struct best b = {.v = splat(-INFINITY)};
        for (int64_t i = 0; i < w->n; i++) {
            const vec next = load_n(p->x + w->at[i] + c, n);
            if (i == 0)
                b = (struct best){next, w->tap[0] - (vint){0}};
            else
                take_larger(&b, next, w->tap[i]);
        }
        if (p->relu)
            take_positive(&b, EW_POOL_NO_GRAD);
        store_n(p->y + out + c, b.v, n);
        store_index(p->index + out + c, b.tap, n);
    }
}

INLINE void max_listed(const struct ew_pooling *p, const struct image *im, int64_t x, int64_t out,
                       int64_t n, const int64_t taps)
{
    struct best b = {.v = load_n(p->x + x + im->offset[0], n)};
    for (int32_t t = 1; t < taps; t++)
        take_larger(&b, load_n(p->x + x + im->offset[t], n), t);
    if (p->relu)
        take_positive(&b, EW_POOL_NO_GRAD);
    store_n(p->y + out, b.v, n);
    store_index(p->index + out, b.tap, n);
}

/* The inner outputs of a row, whose first one is at offset `out`. */
INLINE void max_inner(const struct ew_pooling *p, const struct image *im, const struct inner *r,
                      int64_t out, const int64_t taps)
{
    const int64_t channels = p->shape.cin;
    int64_t x = r->at, o = r->from;
    for (; o < loose_end(r, channels, channels); o++, x += r->step, out += channels)
        max_listed(p, im, x, out, LANES, taps);
    for (; o < r->to; o++, x += r->step, out += channels) {
        int64_t c = 0;
        for (; c + LANES <= channels; c += LANES)
            max_listed(p, im, x + c, out + c, LANES, taps);
        if (c < channels)
            max_listed(p, im, x + c, out + c, channels - c, taps);
    }
}

static void max_inner_any(const struct ew_pooling *p, const struct image *im, const struct inner *r,
                          int64_t out)
{
    if (im->taps == 4)
        max_inner(p, im, r, out, 4);
    else if (im->taps == 9)
        max_inner(p, im, r, out, 9);
    else
        max_inner(p, im, r, out, im->taps);
}

void EW_K(max_pool_run)(const struct ew_pooling *p, int64_t begin, int64_t end)
{
    const struct ew_conv_axis *a = p->shape.axis;
    struct image im = {.s = &p->shape};
    list_taps(&im);
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t row = row_of_tile(&p->shape, tile);
        im.n = row / a[1].out / a[0].out;
        int64_t o[3] = {row / a[1].out % a[0].out, row % a[1].out, 0};
        const struct inner inner = find_inner(&im, o);
        const int64_t out = row * a[2].out * p->shape.cin;
        if (inner.from < inner.to)
            max_inner_any(p, &im, &inner, out + inner.from * p->shape.cin);
        for (; o[2] < a[2].out; o[2]++) {
            if (o[2] >= inner.from && o[2] < inner.to)
                continue;
            struct window_range w;
            list_window(&im, o, &w);
            max_pixel(p, &w, out + o[2] * p->shape.cin);
        }
    }
}

/* ---- Backward, windows without overlap ---- */

INLINE void add_gradient(const struct image *im, float *to, mask hit, vec dy, int64_t n)
{
    const vec v = where(hit, dy);
    store_n(to, im->fresh ? v : load_n(to, n) + v, n);
}

INLINE void back_listed(const struct ew_pooling *p, const struct image *im, int64_t at, int64_t out,
                        int64_t n, const int64_t taps)
{
    const vec dy = load_n(p->dy + out, n);
    const vint index = load_index(p->index + out, n);
    for (int32_t t = 0; t < taps; t++)
        add_gradient(im, p->dx + at + im->offset[t], is_tap(index, t), dy, n);
}

INLINE void back_inner(const struct ew_pooling *p, const struct image *im, const struct inner *r,
                       int64_t out, const int64_t taps)
{
    const int64_t channels = p->shape.cin;
    int64_t at = r->at, o = r->from;
    if (im->fresh)
        for (; o < loose_end(r, channels, channels); o++, at += r->step, out += channels)
            back_listed(p, im, at, out, LANES, taps);
    for (; o < r->to; o++, at += r->step, out += channels) {
        int64_t c = 0;
        for (; c + LANES <= channels; c += LANES)
            back_listed(p, im, at + c, out + c, LANES, taps);
        if (c < channels)
            back_listed(p, im, at + c, out + c, channels - c, taps);
    }
}

static void back_window(const struct ew_pooling *p, const struct image *im,
                        const struct window_range *w, int64_t out)
{
    for (int64_t c = 0; c < p->shape.cin; c += LANES) {
        const int64_t n = p->shape.cin - c;
        const vec dy = load_n(p->dy + out + c, n);
        const vint index = load_index(p->index + out + c, n);
        for (int64_t i = 0; i < w->n; i++)
            add_gradient(im, p->dx + w->at[i] + c, is_tap(index, w->tap[i]), dy, n);
    }
}

/* Backward of one row of windows. */
static void back_windows(const struct ew_pooling *p, struct image *im, int64_t row)
{
    const struct ew_conv_axis *a = p->shape.axis;
    im->n = row / a[1].out / a[0].out;
    int64_t o[3] = {row / a[1].out % a[0].out, row % a[1].out, 0};
    const struct inner inner = find_inner(im, o);
    const int64_t out = row * a[2].out * p->shape.cin;
    if (inner.from < inner.to && im->taps == 4)
        back_inner(p, im, &inner, out + inner.from * p->shape.cin, 4);
    else if (inner.from < inner.to)
        back_inner(p, im, &inner, out + inner.from * p->shape.cin, im->taps);
    for (; o[2] < a[2].out; o[2]++) {
        if (o[2] >= inner.from && o[2] < inner.to)
            continue;
        struct window_range w;
        list_window(im, o, &w);
        back_window(p, im, &w, out + o[2] * p->shape.cin);
    }
}

/* ---- Backward, overlapping windows ---- */

/* Windows along one axis that contain coordinate i: i + pad = out * stride + tap * dilation. */
struct hits {
    int32_t out, tap, n;        /* the first window and tap, number of windows */
    int32_t out_step, tap_step; /* to the next: outputs decrease, taps increase */
};

static struct hits find_hits(const struct ew_conv_axis *a, int32_t i)
{
    const int32_t at = i + a->pad, common = gcd(a->stride, a->dilation);
    struct hits h = {.out_step = a->dilation / common, .tap_step = a->stride / common};
    while (h.tap < h.tap_step && (at - h.tap * a->dilation) % a->stride != 0)
        h.tap++;
    if (h.tap == h.tap_step)
        return h;
    h.out = (at - h.tap * a->dilation) / a->stride;
    const int32_t skip = h.out >= a->out ? (h.out - a->out) / h.out_step + 1 : 0;
    h.out -= skip * h.out_step;
    h.tap += skip * h.tap_step;
    if (h.out >= 0 && h.tap < a->taps) {
        const int32_t taps = (a->taps - 1 - h.tap) / h.tap_step + 1;
        h.n = h.out / h.out_step + 1 < taps ? h.out / h.out_step + 1 : taps;
    }
    return h;
}

#define LINE 512 /* pixels of a line whose windows are precomputed */

struct lines {
    const struct ew_pooling *p;
    struct hits x[LINE];
    struct window_range
        rows; /* rows of windows that contain the current row, and their first tap in it */
};

/* A window that contains the current pixel. */
struct source {
    const float *dy;
    const uint8_t *index;
    int64_t tap;
};

/* Gathers channels [c, c + n) of a pixel's gradient from its windows. */
INLINE void gather_part(const struct ew_pooling *p, const struct source *from, const int64_t count,
                        float *dx, int64_t c, int64_t n)
{
    vec sum = p->add ? load_n(dx + c, n) : (vec){0};
    for (int64_t i = 0; i < count; i++) {
        const vint index = load_index(from[i].index + c, n);
        sum += where(is_tap(index, (int32_t)from[i].tap), load_n(from[i].dy + c, n));
    }
    store_n(dx + c, sum, n);
}

INLINE void gather_from(const struct ew_pooling *p, const struct source *from, const int64_t count,
                        float *dx)
{
    const int64_t channels = p->shape.cin, whole = channels - channels % LANES;
    for (int64_t c = 0; c < whole; c += LANES)
        gather_part(p, from, count, dx, c, LANES);
    if (whole < channels)
        gather_part(p, from, count, dx, whole, channels % LANES);
}

static void gather_pixel(const struct lines *l, const struct hits *x, float *dx)
{
    const struct ew_pooling *p = l->p;
    struct source from[LIST];
    int64_t n = 0;
    for (int64_t r = 0; r < l->rows.n; r++)
        for (int64_t i = 0; i < x->n; i++) {
            const int64_t out = (x->out - i * x->out_step) * p->shape.cin + l->rows.at[r];
            from[n++] = (struct source){p->dy + out, p->index + out,
                                        l->rows.tap[r] + x->tap + i * x->tap_step};
        }
    if (n == 1)
        gather_from(p, from, 1, dx);
    else if (n == 2)
        gather_from(p, from, 2, dx);
    else if (n == 4)
        gather_from(p, from, 4, dx);
    else
        gather_from(p, from, n, dx);
}

static void list_rows(struct lines *l, int64_t row)
{
    const struct ew_conv_shape *s = &l->p->shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t n = row / a[1].in / a[0].in;
    const struct hits z = find_hits(&a[0], (int32_t)(row / a[1].in % a[0].in));
    const struct hits y = find_hits(&a[1], (int32_t)(row % a[1].in));
    struct window_range *out = &l->rows;
    out->n = 0;
    for (int32_t i = 0; i < z.n; i++)
        for (int32_t j = 0; j < y.n; j++) {
            const int64_t oz = z.out - i * z.out_step, oy = y.out - j * y.out_step;
            out->at[out->n] = ((n * a[0].out + oz) * a[1].out + oy) * a[2].out * s->cin;
            out->tap[out->n++] =
                ((z.tap + i * z.tap_step) * a[1].taps + y.tap + j * y.tap_step) * a[2].taps;
        }
}

/* Computes rows [begin, end) of dx. */
static void gather_rows(const struct ew_pooling *p, int64_t begin, int64_t end)
{
    const struct ew_conv_axis *a = &p->shape.axis[2];
    struct lines l = {.p = p};
    for (int32_t x = 0; x < a->in && x < LINE; x++)
        l.x[x] = find_hits(a, x);
    for (int64_t row = begin; row < end; row++) {
        list_rows(&l, row);
        float *dx = p->dx + row * a->in * p->shape.cin;
        for (int32_t x = 0; x < a->in; x++, dx += p->shape.cin) {
            const struct hits hits = x < LINE ? l.x[x] : find_hits(a, x);
            gather_pixel(&l, &hits, dx);
        }
    }
}

int64_t EW_K(max_pool_back_tiles)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    const bool tile = windows_tile(s);
    return (int64_t)s->batch * (tile ? a[0].out : a[0].in) * (tile ? a[1].out : a[1].in);
}

void EW_K(max_pool_back_run)(const struct ew_pooling *p, int64_t begin, int64_t end)
{
    struct image im = {.s = &p->shape, .fresh = !p->add};
    if (!windows_tile(&p->shape)) {
        gather_rows(p, begin, end);
        return;
    }
    list_taps(&im);
    for (int64_t tile = begin; tile < end; tile++)
        back_windows(p, &im, row_of_tile(&p->shape, tile));
}
