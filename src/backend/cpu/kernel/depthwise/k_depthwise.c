/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution, forward.  Lanes are channels; PIXELS outputs of a row are computed at
 * once, so that a loaded input pixel serves all taps that use it.  3x3 and 5x5 with strides 1 and 2
 * are unrolled; other shapes run tap by tap. */
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/depthwise/depthwise.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

/* 7 divides the widths of all ImageNet networks, and 7 accumulators, up to 5 weights of a row of
 * taps and an input fit into the 16 registers of AVX2. */
#define PIXELS   7
#define BY_LINES (LANES == 8) /* two vectors are a cache line */

bool EW_K(depthwise_fits)(const struct ew_conv_shape *s)
{
    return s->groups == s->cin && s->cin == s->cout;
}

/* One plane of taps only: its lines are consecutive in the ring buffer. */
bool EW_K(depthwise_norms)(const struct ew_conv_shape *s)
{
    return EW_K(depthwise_fits)(s) && s->axis[0].taps == 1 && s->axis[1].taps > 0;
}

/* Packed filter: [taps][padded_channels] */
size_t EW_K(depthwise_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(taps_of(s) * padded_channels(s));
}

void EW_K(depthwise_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const int64_t taps = taps_of(s), wide = padded_channels(s);
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < wide; c++)
            packed[t * wide + c] = c < s->cin ? w[c * taps + t] : 0;
}

int64_t EW_K(depthwise_tiles)(const struct ew_conv_shape *s)
{
    return s->axis[2].out ? (int64_t)s->batch * s->axis[0].out * s->axis[1].out : 0;
}

/* Rows of outputs in a split of the statistics, which one thread computes. */
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

/* The epilogue. */
enum end { END_ANY, END_CLAMP, END_HARD_SWISH, END_SILU, END_STATS };

/* Consecutive outputs of one row. */
struct span {
    const struct ew_conv *conv;
    const float *const *at; /* table entry of the first output's first tap, in the first line */
    int64_t columns;        /* table entries between lines */
    const float *w;
    int64_t wide;       /* floats between taps of w */
    int64_t y;          /* offset of the first output */
    float *to;          /* y + that offset */
    const float *bias;  /* NULL: none */
    int64_t channels;   /* floats between outputs */
    struct stats stats; /* stats.to NULL: not wanted */
    enum end end;
    bool even; /* see struct form */
    float lo, hi;
};

/* Constants of an instance. */
struct form {
    int taps, stride, pixels;
    enum end end;
    bool even; /* the span touches no edge of the image: pixels of a line have a constant stride */
};

/* Output p; adds it to the statistics `all` if there are any. */
INLINE void put_output(const struct span *s, enum end end, vec sum, int p, int64_t c, int64_t n,
                       struct stats_sums *all)
{
    float *y = s->to + c + p * s->channels;
    if (all)
        stats_add(all, sum);
    if (end == END_STATS)
        store_n(y, sum, n);
    else if (end == END_CLAMP)
        store_n(y, vmin(vmax(sum, splat(s->lo)), splat(s->hi)), n);
    else if (end == END_HARD_SWISH)
        store_n(y, vact(EW_ACT_HARD_SWISH, sum, 0, 0), n);
    else if (end == END_SILU)
        store_n(y, vact_end(EW_ACT_SILU, sum, 0, 0), n);
    else
        put(&s->conv->end, s->conv->y, s->y + p * s->channels + c, sum, n);
}
/* The epilogue `end`, a constant. */
INLINE void put_end(const struct span *s, const vec *sum, const enum end end, int pixels, int64_t c,
                    int64_t n)
{
    const bool stats = end == END_STATS;
    struct stats_sums all;
    if (stats)
        all = stats_load(&s->stats, c, sum[0], n);
    UNROLL
    for (int p = 0; p < pixels; p++)
        put_output(s, end, sum[p], p, c, n, stats ? &all : NULL);
    if (stats)
        stats_store(&s->stats, c, &all, n);
}

/* Any epilogue and number of pixels: a loop, since unrolled it would be most of this file's code.
 */
static __attribute__((noinline, noclone)) void put_loop(const struct span *s, const vec *sum,
                                                        int pixels, int64_t c, int64_t n)
{
    struct stats_sums all;
    const bool stats = s->stats.to;
    if (stats)
        all = stats_load(&s->stats, c, sum[0], n);
    for (int p = 0; p < pixels; p++)
        put_output(s, s->end, sum[p], p, c, n, stats ? &all : NULL);
    if (stats)
        stats_store(&s->stats, c, &all, n);
}

/* Any epilogue, as a call for each number of pixels. */
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
    case END_SILU:
        put_end(s, sum, END_SILU, pixels, c, n);
        break;
    case END_STATS:
        put_end(s, sum, END_STATS, pixels, c, n);
        break;
    default:
        put_loop(s, sum, pixels, c, n);
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

/* n channels from c on; n = LANES except for the last. */
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
        vec w[5] = {{0}}; /* initialised for compilers, which prove it only for constant forms */
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
                __asm__ volatile(""
                                 : "+r"(at)); /* forces one addition instead of a register for
                                               * each pixel */
            }
            UNROLL
            for (int u = 0; u < taps; u++) /* output (i - u) / stride reads input i through tap u */
                if (i >= u && (i - u) % stride == 0 && (i - u) / stride < pixels)
                    sum[(i - u) / stride] += x * w[u];
        }
    }
    put_sums(s, sum, f, c, n);
}

/* Two vectors of channels at once, a whole cache line (AVX2, 3 taps in a row): 14 accumulators, a
 * weight and an input take 16 registers.  With one vector at a time, pixels a multiple of 2 KiB
 * apart (512 channels, 256 with stride 2) evict each other from L1 before the second half of their
 * lines is read. */
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
                             : "+r"(x)); /* keeps compilers from holding inputs in registers and
                                          * spilling accumulators */
            sum[0][p] += load(x) * w0;
            sum[1][p] += load(x + LANES) * w1;
        }
    }
    put_sums(s, sum[0], f, c, LANES);
    put_sums(s, sum[1], f, c + LANES, LANES);
}

/* Computes whole vectors of channels; returns the first remaining channel. */
FORMED int64_t span_fixed(const struct span *span, const struct form f)
{
    const struct span own = *span, *s = &own; /* a copy, which stores to y cannot alias */
    const int64_t channels = s->channels;
    int64_t c = 0;
    for (; BY_LINES && f.taps == 3 && channels * f.stride % SAME_SET == 0 && c < channels;
         c += 2 * LANES)
        span_line(s, f, c);
    for (; c + LANES <= channels; c += LANES)
        span_vector(s, f, c, LANES);
    return c;
}

/* The last channels, fewer than a vector, from c on. */
ENDING void span_rest(const struct span *span, const struct form f, int64_t c)
{
    const struct span own = *span;
    const int64_t n = own.channels - c;
    if (n > 0 && n < LANES) /* tells compilers that n < LANES */
        span_vector(&own, f, c, n);
}

/* Each instance is a function of its own: in one function they take twice the compile time. */
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

/* Common epilogues have instances, others are selected for each vector; the last channels have one
 * instance for the most common epilogue. */
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

/* Any taps, strides and dilations.
 * A line's taps are taken up to MOST at a time, with their weights in registers; with stride 1 and
 * no dilation an input then serves all of them. */
#define MOST 7

/* A position in a span's filter: taps [tap, tap + taps) of a line. */
struct taps {
    const float *const *at; /* table entry of the first output's first tap of these */
    const float *w;
    int64_t last; /* outputs of the span but one */
};

/* n channels from c on of PIXELS outputs; those beyond the span read its last pixels again. */
INLINE void add_near(const struct taps *t, int64_t wide, const int taps, const bool whole,
                     int64_t c, int64_t n, vec sum[PIXELS])
{
    vec w[MOST];
    UNROLL
    for (int u = 0; u < taps; u++)
        w[u] = load(t->w + u * wide);
    UNROLL
    for (int i = 0; i < PIXELS + taps - 1; i++) {
        const vec x = load_n(t->at[whole ? i : min_i64(i, t->last + taps - 1)] + c, n);
        UNROLL
        for (int u = 0; u < taps; u++)
            if (i >= u && i - u < PIXELS)
                sum[i - u] += x * w[u];
    }
}

/* One tap, with any stride. */
INLINE void add_tap(const struct taps *t, int64_t stride, const bool whole, int64_t c, int64_t n,
                    vec sum[PIXELS])
{
    const vec w = load(t->w);
    UNROLL
    for (int p = 0; p < PIXELS; p++)
        sum[p] += load_n(t->at[(whole ? p : min_i64(p, t->last)) * stride] + c, n) * w;
}

INLINE void any_vector(const struct span *s, int64_t pixels, const bool whole, int64_t c, int64_t n)
{
    const struct ew_conv_axis *a = s->conv->shape.axis;
    const int64_t lines = (int64_t)a[0].taps * a[1].taps, stride = a[2].stride;
    const bool near = stride == 1 && a[2].dilation == 1;
    vec sum[PIXELS];
    UNROLL
    for (int p = 0; p < PIXELS; p++)
        sum[p] = s->bias ? load_n(s->bias + c, n) : (vec){0};
    for (int64_t i = 0; i < lines * a[2].taps;) {
        const int64_t tap = i % a[2].taps, left = near ? a[2].taps - tap : 1;
        const struct taps t = {.at = s->at + i / a[2].taps * s->columns + tap * a[2].dilation,
                               .w = s->w + i * s->wide + c,
                               .last = pixels - 1};
        if (left == 7 || left >= 10) {
            add_near(&t, s->wide, 7, whole, c, n, sum);
            i += 7;
        } else if (left >= 8 || left == 5) {
            add_near(&t, s->wide, 5, whole, c, n, sum);
            i += 5;
        } else if (left == 4) {
            add_near(&t, s->wide, 4, whole, c, n, sum);
            i += 4;
        } else if (left >= 3) {
            add_near(&t, s->wide, 3, whole, c, n, sum);
            i += 3;
        } else {
            add_tap(&t, stride, whole, c, n, sum);
            i++;
        }
    }
    put_loop(s, sum, (int)pixels, c, n);
}

FORMED void any_span(const struct span *span, int64_t pixels, const bool whole)
{
    const struct span own = *span; /* a copy, which stores to y cannot alias */
    int64_t c = 0;
    for (; c + LANES <= own.channels; c += LANES)
        any_vector(&own, pixels, whole, c, LANES);
    if (c < own.channels && own.channels - c < LANES)
        any_vector(&own, pixels, whole, c, own.channels - c);
}

static void span_any(const struct span *s, int64_t pixels)
{
    if (pixels == PIXELS)
        any_span(s, PIXELS, true);
    else
        any_span(s, pixels, false);
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

/* The statistics of a row of outputs. */
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
    if (e->act == EW_ACT_HARD_SWISH)
        return END_HARD_SWISH;
    return e->act == EW_ACT_SILU ? END_SILU : END_ANY;
}

/* True if the span that begins with output o touches no edge. */
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
                                  .wide = padded_channels(s),
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
            /* The next span's outputs. */
            fetch(c->y + span.y + PIXELS * s->cout, PIXELS * s->cout);
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
