/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution, forward.  Lanes are channels; PIXELS outputs of a row are made at once, so
 * that a loaded input pixel serves all taps that meet it.  3x3 and 5x5 with strides 1 and 2 are
 * unrolled, all else goes tap by tap. */
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/depthwise/depthwise.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

/* 7 divides the widths of all ImageNet networks; 7 sums, the weights of a row of taps, at most 5,
 * and an input are in registers, of which AVX2 has 16. */
#define PIXELS   7
#define BY_LINES (LANES == 8) /* two vectors are a cache line */

bool EW_K(depthwise_fits)(const struct ew_conv_shape *s)
{
    return s->groups == s->cin && s->cin == s->cout;
}

/* One plane of taps: its lines follow each other in the ring. */
bool EW_K(depthwise_norms)(const struct ew_conv_shape *s)
{
    return EW_K(depthwise_fits)(s) && s->axis[0].taps == 1 && s->axis[1].taps > 0;
}

/* [taps][channels, rounded up to whole vectors] */
size_t EW_K(depthwise_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(taps_of(s) * wide_of(s));
}

void EW_K(depthwise_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const int64_t taps = taps_of(s), wide = wide_of(s);
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < wide; c++)
            packed[t * wide + c] = c < s->cin ? w[c * taps + t] : 0;
}

int64_t EW_K(depthwise_tiles)(const struct ew_conv_shape *s)
{
    return s->axis[2].out ? (int64_t)s->batch * s->axis[0].out * s->axis[1].out : 0;
}

/* Lines of outputs of a split of statistics, for one thread. */
static int64_t split_of(const struct ew_conv_shape *s)
{
    const int64_t lines = EW_K(depthwise_tiles)(s);
    const int64_t splits = stats_splits(lines * s->axis[2].out);
    return splits ? div_up(lines, splits) : 1;
}

struct ew_stats_split EW_K(depthwise_stats_split)(const struct ew_conv_shape *s)
{
    const int64_t lines = EW_K(depthwise_tiles)(s), split = split_of(s);
    if (!stats_splits(lines * s->axis[2].out))
        return (struct ew_stats_split){0};
    return (struct ew_stats_split){.rows = split * s->axis[2].out,
                                   .tiles = split,
                                   .size = (size_t)(div_up(lines, split) * stats_size(s->cout))};
}

size_t EW_K(depthwise_scratch)(const struct ew_conv_shape *s)
{
    return lines_bytes(s);
}

/* What is done to the sums. */
enum end { END_ANY, END_CLAMP, END_HARD_SWISH, END_STATS };

/* A run of outputs of one row. */
struct span {
    const struct ew_conv *conv;
    const float *const *at; /* column of the first output's first tap, first line */
    int64_t columns;        /* between lines */
    const float *w;
    int64_t wide;       /* between taps of w */
    int64_t y;          /* offset of the first output */
    float *to;          /* where that is */
    const float *bias;  /* NULL: none */
    int64_t channels;   /* between outputs */
    struct stats stats; /* to: NULL: not wanted */
    enum end end;
    bool even; /* see form */
    float lo, hi;
};

/* A span's loops, as constants. */
struct form {
    int taps, stride, pixels;
    enum end end;
    bool even; /* no edge of the image is in the span: pixels of a line lie one step apart */
};

/* One of the ends, as a constant. */
INLINE void put_end(const struct span *s, const vec *sum, const enum end end, int pixels, int64_t c,
                    int64_t n)
{
    const bool stats = end == END_STATS || (end == END_ANY && s->stats.to);
    struct stats_sums all;
    if (stats)
        all = stats_load(&s->stats, c, sum[0], n);
    UNROLL
    for (int p = 0; p < pixels; p++) {
        float *y = s->to + c + p * s->channels;
        if (stats)
            stats_add(&all, sum[p]);
        if (end == END_STATS)
            store_n(y, sum[p], n);
        else if (end == END_CLAMP)
            store_n(y, vmin(vmax(sum[p], splat(s->lo)), splat(s->hi)), n);
        else if (end == END_HARD_SWISH)
            store_n(y, vact(EW_ACT_HARD_SWISH, sum[p], 0, 0), n);
        else
            put(&s->conv->end, s->conv->y, s->y + p * s->channels + c, sum[p], n);
    }
    if (stats)
        stats_store(&s->stats, c, &all, n);
}

/* Any of them: a call, since in place the rarer ones would be most of this file's code. */
static __attribute__((noinline)) void put_any(const struct span *s, const vec *sum, int pixels,
                                              int64_t c, int64_t n)
{
    switch (s->end) {
    case END_CLAMP:
        put_end(s, sum, END_CLAMP, pixels, c, n);
        break;
    case END_HARD_SWISH:
        put_end(s, sum, END_HARD_SWISH, pixels, c, n);
        break;
    case END_STATS:
        put_end(s, sum, END_STATS, pixels, c, n);
        break;
    default:
        put_end(s, sum, END_ANY, pixels, c, n);
    }
}

INLINE void put_sums(const struct span *s, const vec sum[PIXELS], const struct form f, int64_t c,
                     int64_t n)
{
    if (f.end == END_ANY)
        put_any(s, sum, f.pixels, c, n);
    else
        put_end(s, sum, f.end, f.pixels, c, n);
}

/* n channels from c on, n = LANES but for the last. */
INLINE void span_vector(const struct span *s, const struct form f, int64_t c, int64_t n)
{
    const int taps = f.taps, stride = f.stride, pixels = f.pixels;
    const int reach = (pixels - 1) * stride + taps;
    vec sum[PIXELS];
    UNROLL
    for (int p = 0; p < pixels; p++)
        sum[p] = s->bias ? load_n(s->bias + c, n) : (vec){0};
    UNROLL
    for (int t = 0; t < taps; t++) {
        vec w[5] = {
            {0}}; /* all are set that are read: compilers see that of constant forms alone */
        UNROLL
        for (int u = 0; u < taps; u++)
            w[u] = load(s->w + (t * taps + u) * s->wide + c);
        const float *at = s->at[t * s->columns] + c;
        const int64_t step = f.even ? s->at[t * s->columns + 1] - s->at[t * s->columns] : 0;
        UNROLL
        for (int i = 0; i < reach; i++) {
            if (!f.even)
                at = s->at[t * s->columns + i] + c;
            const vec x = load_n(at, n);
            if (f.even) {
                at += step;
                __asm__ volatile("" : "+r"(at)); /* one addition, not a register for each pixel */
            }
            UNROLL
            for (int u = 0; u < taps; u++) /* output (i - u) / stride meets input i by tap u */
                if (i >= u && (i - u) % stride == 0 && (i - u) / stride < pixels)
                    sum[(i - u) / stride] += x * w[u];
        }
    }
    put_sums(s, sum, f, c, n);
}

/* Two vectors of channels, a cache line of each pixel, where vectors are half of one and a row has
 * 3 taps: 14 sums, a weight and an input take 16 registers.  A vector at a time, pixels that lie a
 * multiple of 2 KiB apart (512 channels, 256 with stride 2) have pushed each other out of L1 before
 * the second half of their lines is read. */
INLINE void span_line(const struct span *s, const struct form f, int64_t c)
{
    vec sum[2][PIXELS];
    UNROLL
    for (int p = 0; p < f.pixels; p++) {
        sum[0][p] = s->bias ? load(s->bias + c) : (vec){0};
        sum[1][p] = s->bias ? load(s->bias + c + LANES) : (vec){0};
    }
    UNROLL
    for (int t = 0; t < f.taps; t++)
        UNROLL
    for (int u = 0; u < f.taps; u++) {
        const float *w = s->w + (t * f.taps + u) * s->wide + c;
        const float *const *at = s->at + t * s->columns + u;
        const vec w0 = load(w), w1 = load(w + LANES);
        UNROLL
        for (int p = 0; p < f.pixels; p++) {
            const float *x = at[p * f.stride] + c;
            __asm__ volatile(""
                             : "+r"(x)); /* or inputs are kept for the next tap, and sums are not */
            sum[0][p] += load(x) * w0;
            sum[1][p] += load(x + LANES) * w1;
        }
    }
    put_sums(s, sum[0], f, c, LANES);
    put_sums(s, sum[1], f, c + LANES, LANES);
}

/* Whole vectors of channels; the first channel that is left. */
FORMED int64_t span_fixed(const struct span *span, const struct form f)
{
    const struct span own = *span, *s = &own; /* which the outputs that are stored cannot change */
    const int64_t channels = s->channels;
    int64_t c = 0;
    for (; BY_LINES && f.taps == 3 && channels * f.stride % SAME_SET == 0 && c < channels;
         c += 2 * LANES)
        span_line(s, f, c);
    for (; c + LANES <= channels; c += LANES)
        span_vector(s, f, c, LANES);
    return c;
}

/* The last channels, from c on: less than a vector. */
ENDING void span_rest(const struct span *span, const struct form f, int64_t c)
{
    const struct span own = *span;
    const int64_t n = own.channels - c;
    if (n > 0 && n < LANES) /* or compilers make code for whole vectors too */
        span_vector(&own, f, c, n);
}

/* Instances are functions of their own: in one, they take compilers twice the time. */
#define WHOLE(taps, stride, n, end, even)                                                          \
    static __attribute__((noinline))                                                               \
    int64_t whole_##taps##_##stride##_##n##_##end##_##even(const struct span *s)                   \
    {                                                                                              \
        return span_fixed(s, (struct form){taps, stride, n, END_##end, even});                     \
    }

#define REST(taps, stride, n, end)                                                                 \
    static __attribute__((noinline)) void rest_##taps##_##stride##_##n##_##end(                    \
        const struct span *s, int64_t c)                                                           \
    {                                                                                              \
        span_rest(s, (struct form){taps, stride, n, END_##end}, c);                                \
    }

/* Those ends that whole networks use are chosen here, all others vector by vector; the last
 * channels have the most common one. */
#define SPAN_FULL(taps, stride)                                                                    \
    WHOLE(taps, stride, 7, CLAMP, 0)                                                               \
    WHOLE(taps, stride, 7, CLAMP, 1)                                                               \
    WHOLE(taps, stride, 7, HARD_SWISH, 0)                                                          \
    WHOLE(taps, stride, 7, HARD_SWISH, 1)                                                          \
    WHOLE(taps, stride, 7, STATS, 0)                                                               \
    WHOLE(taps, stride, 7, ANY, 0)                                                                 \
    REST(taps, stride, 7, CLAMP)                                                                   \
    REST(taps, stride, 7, ANY)                                                                     \
    static int64_t whole_##taps##_##stride(const struct span *s)                                   \
    {                                                                                              \
        if (BY_LINES && s->end == END_CLAMP && s->even)                                            \
            return whole_##taps##_##stride##_7_CLAMP_1(s);                                         \
        if (s->end == END_CLAMP)                                                                   \
            return whole_##taps##_##stride##_7_CLAMP_0(s);                                         \
        if (BY_LINES && s->end == END_HARD_SWISH && s->even)                                       \
            return whole_##taps##_##stride##_7_HARD_SWISH_1(s);                                    \
        if (s->end == END_HARD_SWISH)                                                              \
            return whole_##taps##_##stride##_7_HARD_SWISH_0(s);                                    \
        if (s->end == END_STATS)                                                                   \
            return whole_##taps##_##stride##_7_STATS_0(s);                                         \
        return whole_##taps##_##stride##_7_ANY_0(s);                                               \
    }

#define SPAN_SHORT(taps, stride, n)                                                                \
    WHOLE(taps, stride, n, ANY, 0)                                                                 \
    REST(taps, stride, n, ANY)

#define SPAN_CASE(taps, stride, n)                                                                 \
    case n:                                                                                        \
        c = whole_##taps##_##stride##_##n##_ANY_0(s);                                              \
        if (c < s->channels)                                                                       \
            rest_##taps##_##stride##_##n##_ANY(s, c);                                              \
        break;

#define SHORTS(X, taps, stride)                                                                    \
    X(taps, stride, 1)                                                                             \
    X(taps, stride, 2)                                                                             \
    X(taps, stride, 3)                                                                             \
    X(taps, stride, 4)                                                                             \
    X(taps, stride, 5)                                                                             \
    X(taps, stride, 6)

#define SPAN(taps, stride)                                                                         \
    SPAN_FULL(taps, stride)                                                                        \
    SHORTS(SPAN_SHORT, taps, stride)                                                               \
    static void span_##taps##_##stride(const struct span *s, int64_t pixels)                       \
    {                                                                                              \
        int64_t c;                                                                                 \
        switch (pixels) {                                                                          \
            SHORTS(SPAN_CASE, taps, stride)                                                        \
        default:                                                                                   \
            c = whole_##taps##_##stride(s);                                                        \
            if (c < s->channels && s->end == END_CLAMP)                                            \
                rest_##taps##_##stride##_7_CLAMP(s, c);                                            \
            else if (c < s->channels)                                                              \
                rest_##taps##_##stride##_7_ANY(s, c);                                              \
        }                                                                                          \
    }

SPAN(3, 1)
SPAN(3, 2)
SPAN(5, 1)
SPAN(5, 2)

/* Any taps, strides and dilations. */
static void span_any(const struct span *s, int64_t pixels)
{
    const struct ew_conv_shape *shape = &s->conv->shape;
    const struct ew_conv_axis *a = &shape->axis[2];
    const int64_t lines = (int64_t)shape->axis[0].taps * shape->axis[1].taps;
    for (int64_t p = 0; p < pixels; p++) {
        for (int64_t c = 0; c < shape->cin; c += LANES) {
            const int64_t n = shape->cin - c;
            vec sum = bias_at(&s->conv->end, c, n);
            for (int64_t i = 0; i < lines * a->taps; i++) {
                const int64_t column = p * a->stride + i % a->taps * a->dilation;
                const float *from = s->at[i / a->taps * s->columns + column] + c;
                sum += (load_n(from, n)) * load(s->w + i * s->wide + c);
            }
            put(&s->conv->end, s->conv->y, s->y + p * shape->cout + c, sum, n);
            if (s->stats.to) {
                const struct stats to = {s->stats.to, s->stats.step, s->stats.begins && p == 0};
                struct stats_sums all = stats_load(&to, c, sum, n);
                stats_add(&all, sum);
                stats_store(&to, c, &all, n);
            }
        }
    }
}

typedef void span_fn(const struct span *s, int64_t pixels);

static span_fn *span_for(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    const int taps = a[2].taps, stride = a[2].stride;
    if (a[0].taps != 1 || a[1].taps != taps || a[2].dilation != 1 || stride > 2)
        return span_any;
    if (taps == 3)
        return stride == 1 ? span_3_1 : span_3_2;
    if (taps == 5)
        return stride == 1 ? span_5_1 : span_5_2;
    return span_any;
}

/* Where a row of outputs goes. */
static struct stats stats_of(const struct ew_conv *c, int64_t row)
{
    if (!c->stats)
        return (struct stats){NULL};
    const int64_t split = split_of(&c->shape), channels = c->shape.cout;
    return (struct stats){c->stats + row / split * stats_size(channels), stats_wide(channels),
                          row % split == 0};
}

static enum end end_of(const struct ew_conv *c)
{
    const struct ew_epilogue *e = &c->end;
    if (e->add || e->mask)
        return END_ANY;
    if (c->stats)
        return e->act == EW_ACT_NONE ? END_STATS : END_ANY;
    if (e->act == EW_ACT_NONE || e->act == EW_ACT_RELU || e->act == EW_ACT_CLIP)
        return END_CLAMP;
    return e->act == EW_ACT_HARD_SWISH ? END_HARD_SWISH : END_ANY;
}

/* No pixel of the span that begins with output o hangs over an edge. */
static bool is_even(const struct ew_conv_axis *a, int64_t o)
{
    const int64_t first = o * a->stride - a->pad;
    return first >= 0 && first + (PIXELS - 1) * (int64_t)a->stride + a->taps <= a->in;
}

void EW_K(depthwise_row)(const struct ew_conv *c, struct lines *l, int64_t row)
{
    const struct ew_conv_shape *s = &c->shape;
    const int64_t out = s->axis[2].out, parts = div_up(out, PIXELS);
    span_fn *const run = span_for(s);
    const bool far = lines_far(s);
    struct stats stats = stats_of(c, row);
    const enum end end = end_of(c);
    const bool clip = c->end.act == EW_ACT_CLIP;
    lines_find(l, s, c->x, row, s->axis[1].taps);
    for (int64_t o = 0; o < out; o += PIXELS) {
        const struct span span = {.conv = c,
                                  .at = l->at + o * s->axis[2].stride,
                                  .columns = l->columns,
                                  .w = c->w,
                                  .wide = wide_of(s),
                                  .y = (row * out + o) * s->cout,
                                  .to = c->y + (row * out + o) * s->cout,
                                  .bias = c->end.bias,
                                  .channels = s->cout,
                                  .stats = stats,
                                  .end = end,
                                  .even = is_even(&s->axis[2], o),
                                  .lo = clip                        ? c->end.lo
                                        : c->end.act == EW_ACT_RELU ? 0.0f
                                                                    : -INFINITY,
                                  .hi = clip ? c->end.hi : INFINITY};
        if (far) {
            if (!l->far || (!l->norm && !l->back))
                lines_fetch(s, c->x, row, o / PIXELS, parts);
            if (!l->far && l->back)
                lines_fetch(s, l->back->x, row, o / PIXELS, parts);
            fetch(c->y + span.y + PIXELS * s->cout, PIXELS * s->cout); /* the next span's */
        }
        run(&span, min_i64(PIXELS, out - o));
        stats.begins = false;
    }
}

void EW_K(depthwise_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct lines l;
    lines_init(&l, &c->shape, c->norm, scratch);
    const int64_t band = c->stats || c->end.add || c->end.mask ? 1 : band_rows(&c->shape);
    const int64_t high = c->shape.axis[1].out;
    int64_t rows;
    for (int64_t row = begin; row < end; row += rows) {
        rows = min_i64(band, min_i64(end - row, high - row % high));
        if (BANDS && rows > 1)
            EW_K(depthwise_band)(c, &l, row, rows);
        else
            EW_K(depthwise_row)(c, &l, row), rows = 1;
    }
}
