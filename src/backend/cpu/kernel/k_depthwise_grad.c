/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the depthwise convolution.  For data with stride 1 it is the forward kernel on the
 * reversed filter; with strides each input pixel collects the few taps that meet it.  For the
 * filter sums run over rows of outputs, split in a fixed way. */
#include "backend/cpu/kernel/act.h"
#include "backend/cpu/kernel/depth.h"

/* ---- Data ---- */

static bool unit_stride(const struct ew_conv_shape *s)
{
    return s->axis[0].stride == 1 && s->axis[1].stride == 1 && s->axis[2].stride == 1;
}

/* The convolution of dy with the reversed filter. */
static struct ew_conv_shape reversed(const struct ew_conv_shape *s)
{
    struct ew_conv_shape r = *s;
    for (int i = 0; i < 3; i++) {
        const struct ew_conv_axis *a = &s->axis[i];
        r.axis[i].in = a->out;
        r.axis[i].out = a->in;
        r.axis[i].pad = (a->taps - 1) * a->dilation - a->pad;
    }
    return r;
}

void EW_K(depthwise_data_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const int64_t taps = taps_of(s), wide = wide_of(s);
    const bool turn = unit_stride(s);
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < wide; c++)
            packed[t * wide + c] = c < s->cin ? w[c * taps + (turn ? taps - 1 - t : t)] : 0;
}

/* A tile is a row of dx. */
int64_t EW_K(depthwise_data_tiles)(const struct ew_conv_shape *s)
{
    return s->axis[2].in ? (int64_t)s->batch * s->axis[0].in * s->axis[1].in : 0;
}

/* A tap that meets a pixel: its dy and its weights. */
struct meet {
    const float *dy, *w;
};

size_t EW_K(depthwise_data_scratch)(const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = reversed(s);
    return unit_stride(s) ? lines_bytes(&r) : (size_t)taps_of(s) * sizeof(struct meet);
}

/* The output that tap t brings to input `at`; -1: none. */
INLINE int64_t meets(const struct ew_conv_axis *a, int64_t at, int64_t t)
{
    const int64_t o = at + a->pad - t * a->dilation;
    return o >= 0 && o % a->stride == 0 && o / a->stride < a->out ? o / a->stride : -1;
}

static int64_t find_meets(const struct ew_conv *c, const int64_t at[4], struct meet *out)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t wide = wide_of(s);
    int64_t n = 0;
    for (int64_t t0 = 0; t0 < a[0].taps; t0++) {
        const int64_t o0 = meets(&a[0], at[1], t0);
        for (int64_t t1 = 0; o0 >= 0 && t1 < a[1].taps; t1++) {
            const int64_t o1 = meets(&a[1], at[2], t1);
            for (int64_t t2 = 0; o1 >= 0 && t2 < a[2].taps; t2++) {
                const int64_t o2 = meets(&a[2], at[3], t2);
                if (o2 < 0)
                    continue;
                const int64_t pixel = ((at[0] * a[0].out + o0) * a[1].out + o1) * a[2].out + o2;
                out[n].dy = c->x + pixel * s->cout;
                out[n++].w = c->w + ((t0 * a[1].taps + t1) * a[2].taps + t2) * wide;
            }
        }
    }
    return n;
}

static void data_row(const struct ew_conv *c, int64_t row, struct meet *list)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *a = s->axis;
    int64_t at[4] = {row / a[1].in / a[0].in, row / a[1].in % a[0].in, row % a[1].in, 0};
    for (; at[3] < a[2].in; at[3]++) {
        const int64_t n = find_meets(c, at, list), y = (row * a[2].in + at[3]) * s->cin;
        for (int64_t i = 0; i < s->cin; i += LANES) {
            const int64_t part = s->cin - i;
            vec sum = {0};
            for (int64_t t = 0; t < n; t++) {
                const vec dy = load_n(list[t].dy + i, part);
                sum += dy * load(list[t].w + i);
            }
            put(&c->end, c->y, y + i, sum, part);
        }
    }
}

void EW_K(depthwise_data_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    if (unit_stride(&c->shape)) {
        struct ew_conv r = *c;
        r.shape = reversed(&c->shape);
        EW_K(depthwise_run)(&r, begin, end, scratch);
        return;
    }
    for (int64_t row = begin; row < end; row++)
        data_row(c, row, scratch);
}

/* ---- Filter ---- */

#define SPLITS 16 /* of the rows of outputs, at most */

static int64_t rows_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->axis[0].out * s->axis[1].out;
}

int64_t EW_K(depthwise_filter_tiles)(const struct ew_conv_shape *s)
{
    return max_i64(min_i64(rows_of(s), SPLITS), 1);
}

/* [tile][taps][channels, in whole vectors] */
size_t EW_K(depthwise_filter_partial)(const struct ew_conv_shape *s)
{
    return (size_t)(EW_K(depthwise_filter_tiles)(s) * taps_of(s) * wide_of(s));
}

size_t EW_K(depthwise_filter_scratch)(const struct ew_conv_shape *s)
{
    return lines_bytes(s);
}

struct row {
    const struct ew_conv_shape *s;
    const struct lines *l;
    const float *dy; /* of the row's first output */
    float *sum;      /* [taps][wide] */
    int64_t wide;
};

/* Sums of `count` taps of one line of the filter, n channels from c on, over a row of outputs. */
INLINE void filter_taps(const struct row *r, int64_t line, int64_t tap, const int count, int64_t c,
                        int64_t n)
{
    const struct ew_conv_axis *a = &r->s->axis[2];
    const float *const *at = r->l->at + line * r->l->columns + tap * a->dilation;
    float *to = r->sum + (line * a->taps + tap) * r->wide + c;
    vec sum[5];
    UNROLL
    for (int t = 0; t < count; t++)
        sum[t] = load(to + t * r->wide);
    for (int64_t o = 0; o < a->out; o++) {
        const float *from = r->dy + o * r->s->cout + c;
        const vec dy = load_n(from, n);
        UNROLL
        for (int t = 0; t < count; t++) {
            const float *x = at[o * a->stride + t * a->dilation] + c;
            sum[t] += dy * (load_n(x, n));
        }
    }
    UNROLL
    for (int t = 0; t < count; t++)
        store(to + t * r->wide, sum[t]);
}

static void filter_line(const struct row *r, int64_t line, int64_t c, int64_t n)
{
    const int64_t taps = r->s->axis[2].taps;
    int64_t t = 0;
    if (taps == 3 && n >= LANES)
        filter_taps(r, line, 0, 3, c, LANES);
    else if (taps == 5 && n >= LANES)
        filter_taps(r, line, 0, 5, c, LANES);
    else
        for (; t < taps; t++)
            filter_taps(r, line, t, 1, c, n);
}

void EW_K(depthwise_filter_run)(const struct ew_conv_filter *f, int64_t begin, int64_t end,
                                void *scratch)
{
    const struct ew_conv_shape *s = &f->shape;
    const int64_t tiles = EW_K(depthwise_filter_tiles)(s), rows = rows_of(s);
    const int64_t lines = (int64_t)s->axis[0].taps * s->axis[1].taps;
    struct lines l;
    lines_init(&l, s, scratch);
    struct row r = {.s = s, .l = &l, .wide = wide_of(s)};
    for (int64_t tile = begin; tile < end; tile++) {
        r.sum = f->partial + tile * taps_of(s) * r.wide;
        clear(r.sum, taps_of(s) * r.wide);
        for (int64_t row = rows * tile / tiles; row < rows * (tile + 1) / tiles; row++) {
            lines_find(&l, s, f->x, row);
            r.dy = f->dy + row * s->axis[2].out * s->cout;
            for (int64_t c = 0; c < s->cin; c += LANES)
                for (int64_t line = 0; line < lines; line++)
                    filter_line(&r, line, c, s->cin - c);
        }
    }
}

/* One tile: depthwise filters are small. */
int64_t EW_K(depthwise_filter_sum_tiles)(const struct ew_conv_shape *s)
{
    return 1;
}

void EW_K(depthwise_filter_sum)(const struct ew_conv_filter *f, int64_t begin, int64_t end)
{
    const struct ew_conv_shape *s = &f->shape;
    const int64_t tiles = EW_K(depthwise_filter_tiles)(s), taps = taps_of(s), wide = wide_of(s);
    for (int64_t t = 0; t < taps && begin < end; t++) {
        for (int64_t c = 0; c < s->cin; c += LANES) {
            vec sum = {0};
            for (int64_t i = 0; i < tiles; i++)
                sum += load(f->partial + (i * taps + t) * wide + c);
            for (int64_t j = 0; j < min_i64(LANES, s->cin - c); j++) {
                float *to = f->dw + (c + j) * taps + t;
                *to = f->add ? *to + sum[j] : sum[j];
            }
        }
    }
}
