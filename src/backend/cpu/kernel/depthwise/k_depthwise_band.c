/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution, forward: a band of two or three rows of outputs at once.
 *
 * A row of all channels exceeds L1, so row by row each input line is read from L2 once for each row
 * of taps.  A band of `rows` rows of outputs reads rows + taps - 1 lines instead of rows * taps,
 * and each weight once.  That takes 32 registers: 3x3 filters with stride 1 have 21 accumulators, 9
 * weights and an input. */
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/depthwise/depthwise.h"

#if BANDS

#define PIXELS 7 /* divides the widths of ImageNet networks; narrower rows use FEWER */
#define FEWER  4
#define ROWS   3

/* Consecutive outputs of a few rows. */
struct span {
    const struct ew_conv *conv;
    const float *const *at; /* table entry of the first output's first tap, in the first line */
    int64_t columns;        /* table entries between lines */
    int64_t wide;           /* floats between taps of the filter */
    int64_t y, down;        /* offset of the first output; floats between rows */
    bool clamp;             /* the epilogue is a clamp alone */
    float lo, hi;
};

/* Constants of an instance. */
struct form {
    int taps, stride, rows, pixels;
    bool clamp;
};

INLINE void put_as(enum ew_act act, const struct span *s, const vec *sum, const struct form f,
                   int64_t c, int64_t n)
{
    for (int q = 0; q < f.rows; q++) {
        float *y = s->conv->y + s->y + q * s->down + c;
        for (int p = 0; p < f.pixels; p++, y += s->conv->shape.cout)
            store_n(y, vact_end(act, *sum++, s->conv->end.lo, s->conv->end.hi), n);
    }
}

/* Any other epilogue, as a call: inlined it would be most of this file's code. */
static __attribute__((noinline)) void put_any(const struct span *s, const vec *sum,
                                              const struct form f, int64_t c, int64_t n)
{
    const enum ew_act act = s->conv->end.act;
    if (act == EW_ACT_HARD_SWISH)
        put_as(EW_ACT_HARD_SWISH, s, sum, f, c, n);
    else if (act == EW_ACT_SILU)
        put_as(EW_ACT_SILU, s, sum, f, c, n);
    else
        put_as(act, s, sum, f, c, n);
}

INLINE void put_sums(const struct span *s, vec sum[ROWS][PIXELS], const struct form f, int64_t c,
                     int64_t n)
{
    if (!f.clamp) {
        vec all[ROWS * PIXELS];
        UNROLL
        for (int i = 0; i < f.rows * f.pixels; i++)
            all[i] = sum[i / f.pixels][i % f.pixels];
        put_any(s, all, f, c, n);
        return;
    }
    const vec lo = splat(s->lo), hi = splat(s->hi);
    UNROLL
    for (int q = 0; q < f.rows; q++) {
        float *y = s->conv->y + s->y + q * s->down + c;
        UNROLL
        for (int p = 0; p < f.pixels; p++, y += s->conv->shape.cout)
            store_n(y, vmin(vmax(sum[q][p], lo), hi), n);
    }
}

/* n channels from c on.  Each sum adds its taps in the same order as row by row: results are
 * bitwise equal. */
INLINE void span_vector(const struct span *s, const struct form f, int64_t c, int64_t n)
{
    const int taps = f.taps, stride = f.stride;
    const int lines = (f.rows - 1) * stride + taps, reach = (f.pixels - 1) * stride + taps;
    const float *filter = s->conv->w + c;
    const float *bias = s->conv->end.bias;
    const vec first = bias ? load_n(bias + c, n) : (vec){0};
    vec sum[ROWS][PIXELS];
    UNROLL
    for (int q = 0; q < f.rows; q++)
        UNROLL
    for (int p = 0; p < f.pixels; p++)
        sum[q][p] = first;
    UNROLL
    for (int l = 0; l < lines; l++) {
        const float *const *at = s->at + l * s->columns;
        vec w[ROWS][5];
        UNROLL
        for (int q = 0; q < f.rows; q++)
            UNROLL
        for (int u = 0; u < taps; u++) {
            const int t = l - q * stride;
            w[q][u] = t < 0 || t >= taps ? (vec){0} : load(filter + (t * taps + u) * s->wide);
        }
        UNROLL
        for (int i = 0; i < reach; i++) {
            const vec x = load_n(at[i] + c, n);
            UNROLL
            for (int q = 0; q < f.rows; q++) {
                if (l < q * stride || l - q * stride >= taps)
                    continue;
                UNROLL
                for (int u = 0; u < taps; u++) /* output (i - u) / stride reads input i through tap
                                                * u */
                    if (i >= u && (i - u) % stride == 0 && (i - u) / stride < f.pixels)
                        sum[q][(i - u) / stride] += x * w[q][u];
            }
        }
    }
    put_sums(s, sum, f, c, n);
}

FORMED void span_fixed(const struct span *span, const struct form f)
{
    const struct span own = *span, *s = &own; /* a copy, which stores to y cannot alias */
    const int64_t channels = s->conv->shape.cout;
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES)
        span_vector(s, f, c, LANES);
    if (c < channels && channels - c < LANES)
        span_vector(s, f, c, channels - c);
}

typedef void span_fn(const struct span *s);

/* Each instance is a function of its own: in one function they take twice the compile time. */
#define FORM(taps, stride, rows, n)                                                                \
    static __attribute__((noinline)) void clamp_##taps##_##stride##_##rows##_##n(                  \
        const struct span *s)                                                                      \
    {                                                                                              \
        span_fixed(s, (struct form){taps, stride, rows, n, true});                                 \
    }                                                                                              \
    static                                                                                         \
        __attribute__((noinline)) void any_##taps##_##stride##_##rows##_##n(const struct span *s)  \
    {                                                                                              \
        span_fixed(s, (struct form){taps, stride, rows, n, false});                                \
    }

#define FORMS(taps, stride, rows)                                                                  \
    FORM(taps, stride, rows, 7)                                                                    \
    FORM(taps, stride, rows, 4)                                                                    \
    static void span_##taps##_##stride##_##rows(const struct span *s, int64_t pixels)              \
    {                                                                                              \
        if (pixels == PIXELS)                                                                      \
            (s->clamp ? clamp_##taps##_##stride##_##rows##_7                                       \
                      : any_##taps##_##stride##_##rows##_7)(s);                                    \
        else                                                                                       \
            (s->clamp ? clamp_##taps##_##stride##_##rows##_4                                       \
                      : any_##taps##_##stride##_##rows##_4)(s);                                    \
    }

FORMS(3, 1, 2)
FORMS(3, 1, 3)
FORMS(3, 2, 2)
FORMS(5, 1, 2)
FORMS(5, 2, 2)

static void band_span(const struct span *s, int64_t rows, int64_t pixels)
{
    const struct ew_conv_axis *a = &s->conv->shape.axis[2];
    if (a->taps == 3 && a->stride == 1)
        (rows == 3 ? span_3_1_3 : span_3_1_2)(s, pixels);
    else if (a->taps == 3)
        span_3_2_2(s, pixels);
    else
        (a->stride == 1 ? span_5_1_2 : span_5_2_2)(s, pixels);
}

void EW_KF(depthwise_band)(const struct ew_conv *c, struct lines *l, int64_t row, int64_t rows)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *a = s->axis;
    const enum ew_act act = c->end.act;
    const bool clip = act == EW_ACT_CLIP, relu = act == EW_ACT_RELU, far = lines_far(s);
    const int64_t out = a[2].out;
    struct span span = {.conv = c,
                        .columns = l->columns,
                        .wide = padded_channels(s),
                        .down = out * s->cout,
                        .clamp = clip || relu || act == EW_ACT_NONE,
                        .lo = clip   ? c->end.lo
                              : relu ? 0.0f
                                     : -INFINITY,
                        .hi = clip ? c->end.hi : INFINITY};
    lines_find(l, s, c->x, row, (rows - 1) * a[1].stride + a[1].taps);
    for (int64_t o = 0; o < out;) {
        /* Recompute some of the previous outputs rather than use a shorter span. */
        const int64_t pixels = out - o > FEWER && out >= PIXELS ? PIXELS : FEWER;
        const int64_t from = min_i64(o, out - pixels);
        span.at = l->at + from * a[2].stride;
        span.y = (row * out + from) * s->cout;
        for (int64_t i = 0; far && i < rows; i++)
            lines_fetch(s, c->x, row + rows - 1 + i, o / PIXELS, div_up(out, PIXELS));
        band_span(&span, rows, pixels);
        o = from + pixels;
    }
}

#endif
