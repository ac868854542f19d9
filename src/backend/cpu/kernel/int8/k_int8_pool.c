/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit pooling; lanes are channels, a tile is a row of outputs. */
#include "backend/cpu/kernel/int8/int8_gemm.h"

int64_t EW_K(int8_pool_tiles)(const struct ew_conv_shape *s)
{
    return s->axis[2].out ? (int64_t)s->batch * s->axis[0].out * s->axis[1].out : 0;
}

/* The taps of one axis that are inside the input. */
struct tap_range {
    int64_t first, count; /* first input position, number of taps */
    int64_t step;
};

INLINE struct tap_range taps_inside(const struct ew_conv_axis *a, int64_t o)
{
    const int64_t at = o * a->stride - a->pad;
    if (at >= 0 && at + (int64_t)(a->taps - 1) * a->dilation < a->in) /* avoids most divisions */
        return (struct tap_range){at, a->taps, a->dilation};
    const int64_t skip = at < 0 ? div_up(-at, a->dilation) : 0;
    const int64_t first = at + skip * a->dilation;
    const int64_t fit = first < a->in ? div_up(a->in - first, a->dilation) : 0;
    return (struct tap_range){first, max_i64(min_i64(fit, a->taps - skip), 0), a->dilation};
}

/* One window: its taps along all three axes; x points at the channels of an image. */
struct window {
    struct tap_range p[3];
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

/* ---- Max pool 2x2 and 3x3 inside the image, along a row ---- */

/* Consecutive outputs of one row. */
struct span {
    const uint8_t *x;           /* at the first output's first tap */
    int64_t line, step, stride; /* bytes between lines, taps, outputs */
    int64_t channels, count;
    uint8_t *y;
    uint8_t flip;
};

INLINE vbig max_taps(const struct span *s, const uint8_t *x, int64_t n, const int taps)
{
    const vbig flip = s->flip - (vbig){0};
    vbig most = {0};
    UNROLL
    for (int i = 0; i < taps; i++) {
        UNROLL
        for (int j = 0; j < taps; j++)
            most = max_bytes(most, load_big(x + i * s->line + j * s->step, n) ^ flip);
    }
    return most ^ flip;
}

INLINE void max_span(const struct span *s, const int taps)
{
    const int64_t channels = s->channels, whole = channels / BIG * BIG;
    for (int64_t o = 0; o < s->count; o++) {
        const uint8_t *x = s->x + o * s->stride;
        uint8_t *y = s->y + o * channels;
        for (int64_t c = 0; c < whole; c += BIG)
            store_big(y + c, max_taps(s, x + c, BIG, taps), BIG);
        if (whole < channels)
            store_big(y + whole, max_taps(s, x + whole, channels - whole, taps), channels - whole);
    }
}

#if defined(__SSE2__)
/* For few channels: 8 or 16 bytes (`size`) are read and written for each output; the bytes beyond
 * its channels belong to the next pixel, which is written later. */
INLINE __m128i load_few(const uint8_t *p, const int size)
{
    return size == 8 ? _mm_loadl_epi64((const void *)p) : _mm_loadu_si128((const void *)p);
}

INLINE void max_span_few(const struct span *s, const int size, const int taps)
{
    const __m128i flip = _mm_set1_epi8((char)s->flip);
    for (int64_t o = 0; o < s->count; o++) {
        const uint8_t *x = s->x + o * s->stride;
        __m128i most = _mm_setzero_si128();
        UNROLL
        for (int i = 0; i < taps; i++) {
            UNROLL
            for (int j = 0; j < taps; j++)
                most = _mm_max_epu8(
                    most, _mm_xor_si128(load_few(x + i * s->line + j * s->step, size), flip));
        }
        most = _mm_xor_si128(most, flip);
        if (size == 8)
            _mm_storel_epi64((void *)(s->y + o * s->channels), most);
        else
            _mm_storeu_si128((void *)(s->y + o * s->channels), most);
    }
}
#endif

/* Computes those outputs of s for which reads stay below `x_end` and writes below `y_end`; returns
 * how many. */
static int64_t max_run(struct span *s, int64_t taps, const uint8_t *x_end, const uint8_t *y_end)
{
#if defined(__SSE2__)
    if (s->channels < 16) {
        const int64_t size = s->channels <= 8 ? 8 : 16;
        const int64_t reach = (taps - 1) * (s->line + s->step) + size;
        const int64_t reads = div_up(x_end - s->x - reach + 1, s->stride);
        const int64_t writes = div_up(y_end - s->y - size + 1, s->channels);
        s->count = max_i64(min_i64(s->count, min_i64(reads, writes)), 0);
        if (size == 8 && taps == 2)
            max_span_few(s, 8, 2);
        else if (size == 8)
            max_span_few(s, 8, 3);
        else if (taps == 2)
            max_span_few(s, 16, 2);
        else
            max_span_few(s, 16, 3);
        return s->count;
    }
#endif
    if (taps == 2)
        max_span(s, 2);
    else
        max_span(s, 3);
    return s->count;
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

/* Outputs [first_inside, last_inside) along an axis whose windows are inside the image. */
INLINE int64_t first_inside(const struct ew_conv_axis *a)
{
    return a->pad > 0 ? div_up(a->pad, a->stride) : 0;
}

INLINE int64_t last_inside(const struct ew_conv_axis *a)
{
    const int64_t room = (int64_t)a->in + a->pad - (int64_t)(a->taps - 1) * a->dilation - 1;
    return room < 0 ? 0 : min_i64(room / a->stride + 1, a->out);
}

/* True if there is a specialised loop for the window. */
static bool has_span(const struct ew_qpool *p)
{
    const struct ew_conv_axis *a = p->shape->axis;
    return p->max && a[0].taps == 1 && a[1].taps == a[2].taps && (a[2].taps == 2 || a[2].taps == 3);
}

/* Computes one row of outputs; w has the taps of the outer axes, `image` is the image's first
 * byte. */
static void pool_row(const struct ew_qpool *p, struct window *w, const uint8_t *image, uint8_t *y)
{
    const struct ew_conv_axis *a = p->shape->axis;
    const int64_t channels = p->shape->cin, out = a[2].out;
    const uint8_t *const x_end =
        p->x + (int64_t)p->shape->batch * a[0].in * a[1].in * a[2].in * channels;
    const int64_t first = first_inside(&a[2]), last = last_inside(&a[2]);
    const bool spans = has_span(p) && w->p[0].count == 1 && w->p[1].count == a[1].taps;
    for (int64_t o = 0; o < out; o++) {
        if (spans && o == first && last > first) {
            struct span s = {.x = image + (o * a[2].stride - a[2].pad) * channels,
                             .line = w->step[1],
                             .step = w->step[2],
                             .stride = a[2].stride * channels,
                             .channels = channels,
                             .count = last - first,
                             .y = y + o * channels,
                             .flip = p->of_x.flip};
            o += max_run(&s, a[2].taps, x_end, y + out * channels);
            if (o == out)
                break;
        }
        w->p[2] = taps_inside(&a[2], o);
        w->x = image + w->p[2].first * channels;
        (p->max ? max_pixel : mean_pixel)(p, w, y + o * channels);
    }
}

void EW_K(int8_pool_run)(const struct ew_qpool *p, int64_t begin, int64_t end)
{
    const struct ew_conv_axis *a = p->shape->axis;
    const int64_t channels = p->shape->cin;
    const int64_t line = a[2].in * channels, plane = a[1].in * line;
    for (int64_t row = begin; row < end; row++) {
        const int64_t o1 = row % a[1].out, o0 = row / a[1].out % a[0].out;
        struct window w = {
            .p = {taps_inside(&a[0], o0), taps_inside(&a[1], o1)},
            .step = {plane * a[0].dilation, line * a[1].dilation, channels * a[2].dilation}};
        const uint8_t *image = p->x + row / a[1].out / a[0].out * a[0].in * plane +
                               w.p[0].first * plane + w.p[1].first * line;
        pool_row(p, &w, image, p->y + row * a[2].out * channels);
    }
}
