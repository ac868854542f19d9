/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit pools, lanes being channels.  A tile is a row of outputs. */
#include "backend/cpu/kernel/int8/int8_gemm.h"

int64_t EW_K(int8_pool_tiles)(const struct ew_conv_shape *s)
{
    return s->axis[2].out ? (int64_t)s->batch * s->axis[0].out * s->axis[1].out : 0;
}

/* The part of one axis's taps that lies in the input. */
struct part {
    int64_t first, count; /* input position, taps */
    int64_t step;
};

INLINE struct part part_of(const struct ew_conv_axis *a, int64_t o)
{
    const int64_t at = o * a->stride - a->pad;
    if (at >= 0 && at + (int64_t)(a->taps - 1) * a->dilation < a->in) /* no division for most */
        return (struct part){at, a->taps, a->dilation};
    const int64_t skip = at < 0 ? div_up(-at, a->dilation) : 0;
    const int64_t first = at + skip * a->dilation;
    const int64_t fit = first < a->in ? div_up(a->in - first, a->dilation) : 0;
    return (struct part){first, max_i64(min_i64(fit, a->taps - skip), 0), a->dilation};
}

/* One window: parts of all three axes, over the channels of the pixel at `x`. */
struct window {
    struct part p[3];
    int64_t step[3]; /* bytes between input positions */
    const uint8_t *x;
};

INLINE int64_t window_count(const struct window *w)
{
    return w->p[0].count * w->p[1].count * w->p[2].count;
}

#define EACH_TAP(w, from, body)                                                                    \
    for (int64_t i0 = 0; i0 < (w)->p[0].count; i0++)                                               \
        for (int64_t i1 = 0; i1 < (w)->p[1].count; i1++) {                                         \
            const uint8_t *from = (w)->x + i0 * (w)->step[0] + i1 * (w)->step[1];                  \
            for (int64_t i2 = 0; i2 < (w)->p[2].count; i2++, from += (w)->step[2])                 \
                body;                                                                              \
        }

INLINE void max_big(const struct window *w, uint8_t *y, int64_t c, int64_t n, vbig flip)
{
    vbig most = {0};
    EACH_TAP(w, from, most = max_bytes(most, load_big(from + c, n) ^ flip))
    store_big(y + c, most ^ flip, n);
}

static void max_pixel(const struct ew_qpool *p, const struct window *w, uint8_t *y)
{
    const vbig flip = p->of_x.flip - (vbig){0};
    const int64_t channels = p->shape->cin;
    int64_t c = 0;
    for (; c + BIG <= channels; c += BIG)
        max_big(w, y, c, BIG, flip);
    if (c < channels)
        max_big(w, y, c, channels - c, flip);
}

INLINE void mean_wide(const struct ew_qpool *p, const struct window *w, uint8_t *y, int64_t c,
                      int64_t n)
{
    const vbytes x_flip = p->of_x.flip - (vbytes){0}, y_flip = p->of_y.flip - (vbytes){0};
    const int64_t inside = window_count(w);
    const struct ew_conv_axis *a = p->shape->axis;
    const int64_t all = (int64_t)a[0].taps * a[1].taps * a[2].taps;
    const float size = p->scale_y * (float)(p->count_pads ? all : inside);
    const vec ratio = splat(size > 0 ? p->scale_x / size : 0);
    vint sum_a = (int32_t)(-inside * p->of_x.zero) - (vint){0}, sum_b = sum_a;
    EACH_TAP(w, from, {
        const v16 x = widen(load_bytes(from + c, n) ^ x_flip);
        sum_a += widen_a(x);
        sum_b += widen_b(x);
    })
    const float lo = (float)-p->of_y.zero, hi = (float)(255 - p->of_y.zero);
    const v16 q = narrow2(round_int(clamp(to_float(sum_a) * ratio, lo, hi)),
                          round_int(clamp(to_float(sum_b) * ratio, lo, hi)));
    store_bytes(y + c, bytes_of(q + splat16(p->of_y.zero)) ^ y_flip, n);
}

static void mean_pixel(const struct ew_qpool *p, const struct window *w, uint8_t *y)
{
    const int64_t channels = p->shape->cin;
    int64_t c = 0;
    for (; c + WIDE <= channels; c += WIDE)
        mean_wide(p, w, y, c, WIDE);
    if (c < channels)
        mean_wide(p, w, y, c, channels - c);
}

void EW_K(int8_pool_run)(const struct ew_qpool *p, int64_t begin, int64_t end)
{
    const struct ew_conv_axis *a = p->shape->axis;
    const int64_t channels = p->shape->cin;
    const int64_t line = a[2].in * channels, plane = a[1].in * line;
    for (int64_t row = begin; row < end; row++) {
        const int64_t o1 = row % a[1].out, o0 = row / a[1].out % a[0].out;
        struct window w = {
            .p = {part_of(&a[0], o0), part_of(&a[1], o1)},
            .step = {plane * a[0].dilation, line * a[1].dilation, channels * a[2].dilation}};
        const uint8_t *image = p->x + row / a[1].out / a[0].out * a[0].in * plane +
                               w.p[0].first * plane + w.p[1].first * line;
        for (int64_t o = 0; o < a[2].out; o++) {
            w.p[2] = part_of(&a[2], o);
            w.x = image + w.p[2].first * channels;
            (p->max ? max_pixel : mean_pixel)(p, &w, p->y + (row * a[2].out + o) * channels);
        }
    }
}
