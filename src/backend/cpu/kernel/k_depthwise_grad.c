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

/* The list of those, then for each column the output that each tap brings; -1: none. */
size_t EW_K(depthwise_data_scratch)(const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = reversed(s);
    if (unit_stride(s))
        return lines_bytes(&r);
    return (size_t)taps_of(s) * sizeof(struct meet) +
           (size_t)s->axis[2].in * (size_t)s->axis[2].taps * sizeof(int32_t);
}

/* The output that tap t brings to input `at`; -1: none. */
INLINE int64_t meets(const struct ew_conv_axis *a, int64_t at, int64_t t)
{
    const int64_t o = at + a->pad - t * a->dilation;
    return o >= 0 && o % a->stride == 0 && o / a->stride < a->out ? o / a->stride : -1;
}

/* Divisions are slow: once for all rows. */
static void find_columns(const struct ew_conv_axis *a, int32_t *columns)
{
    for (int64_t at = 0; at < a->in; at++)
        for (int64_t t = 0; t < a->taps; t++)
            *columns++ = (int32_t)meets(a, at, t);
}

#define LINES 25 /* at once: more than any network has */

/* One row of dx. */
struct data_row {
    const struct ew_conv *c;
    struct meet *list;
    const int32_t *columns;
    int64_t n;                         /* lines that meet it */
    const float *dy[LINES], *w[LINES]; /* of each line */
};

static void find_lines(struct data_row *r, int64_t row, int64_t first)
{
    const struct ew_conv_shape *s = &r->c->shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t n = row / a[1].in / a[0].in, z = row / a[1].in % a[0].in, y = row % a[1].in;
    const int64_t last = min_i64((int64_t)a[0].taps * a[1].taps, first + LINES);
    r->n = 0;
    for (int64_t t = first; t < last; t++) {
        const int64_t o0 = meets(&a[0], z, t / a[1].taps), o1 = meets(&a[1], y, t % a[1].taps);
        if (o0 < 0 || o1 < 0)
            continue;
        r->dy[r->n] = r->c->x + ((n * a[0].out + o0) * a[1].out + o1) * a[2].out * s->cout;
        r->w[r->n++] = r->c->w + t * a[2].taps * wide_of(s);
    }
}

static int64_t find_meets(const struct data_row *r, int64_t column)
{
    const struct ew_conv_shape *s = &r->c->shape;
    const int64_t taps = s->axis[2].taps, wide = wide_of(s);
    int64_t n = 0;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t o = r->columns[column * taps + t];
        for (int64_t i = 0; o >= 0 && i < r->n; i++)
            r->list[n++] = (struct meet){r->dy[i] + o * s->cout, r->w[i] + t * wide};
    }
    return n;
}

INLINE vec sum_meets(const struct meet *list, int64_t n, int64_t c, int64_t part)
{
    vec sum = {0};
    for (int64_t t = 0; t < n; t++) {
        const vec dy = load_n(list[t].dy + c, part);
        sum += dy * load(list[t].w + c);
    }
    return sum;
}

static void data_row(struct data_row *r, int64_t row)
{
    const struct ew_conv_shape *s = &r->c->shape;
    const int64_t lines = (int64_t)s->axis[0].taps * s->axis[1].taps, columns = s->axis[2].in;
    struct ew_epilogue end = r->c->end;
    for (int64_t first = 0; first < lines; first += LINES) {
        find_lines(r, row, first);
        for (int64_t x = 0; x < columns; x++) {
            const int64_t n = find_meets(r, x), y = (row * columns + x) * s->cin;
            int64_t c = 0;
            for (; c + LANES <= s->cin; c += LANES)
                put(&end, r->c->y, y + c, sum_meets(r->list, n, c, LANES), LANES);
            if (c < s->cin)
                put(&end, r->c->y, y + c, sum_meets(r->list, n, c, s->cin - c), s->cin - c);
        }
        end.add = r->c->y; /* further lines are added */
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
    struct data_row r = {.c = c, .list = scratch};
    int32_t *columns = (int32_t *)(void *)(r.list + taps_of(&c->shape));
    find_columns(&c->shape.axis[2], columns);
    r.columns = columns;
    for (int64_t row = begin; row < end; row++)
        data_row(&r, row);
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
    int64_t from, to; /* outputs */
};

/* Sums of `count` taps of one line of the filter, n channels from c on, over outputs of a row. */
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
    for (int64_t o = r->from; o < r->to; o++) {
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

/* All taps of a square filter at once, over outputs [from, to) of a row whose windows lie in the
 * image: `x` is the first one's first pixel, lines are x_row floats apart. */
struct square {
    const float *x, *dy;
    int64_t count, x_row;
};

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define SQUARE 5 /* taps of the largest whose sums fit into registers */
#else
#define SQUARE 3
#endif

INLINE void filter_square(const struct row *r, const struct square *q, const int taps, int64_t c,
                          int64_t n)
{
    const int64_t channels = r->s->cin, step = r->s->axis[2].stride * channels;
    vec sum[SQUARE * SQUARE];
    UNROLL
    for (int t = 0; t < taps * taps; t++)
        sum[t] = load(r->sum + t * r->wide + c);
    const float *x = q->x + c, *from = q->dy + c;
    for (int64_t o = 0; o < q->count; o++, x += step, from += channels) {
        const vec dy = load_n(from, n);
        UNROLL
        for (int y = 0; y < taps; y++)
            UNROLL
        for (int t = 0; t < taps; t++)
            sum[y * taps + t] += dy * load_n(x + y * q->x_row + t * channels, n);
    }
    UNROLL
    for (int t = 0; t < taps * taps; t++)
        store(r->sum + t * r->wide + c, sum[t]);
}

INLINE void filter_channels(const struct row *r, const struct square *q, const int taps)
{
    const int64_t channels = r->s->cin;
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES)
        filter_square(r, q, taps, c, LANES);
    if (c < channels)
        filter_square(r, q, taps, c, channels - c);
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

/* Outputs [from, to), through the table of pixels. */
static void filter_some(struct row *r, int64_t from, int64_t to)
{
    const int64_t lines = (int64_t)r->s->axis[0].taps * r->s->axis[1].taps;
    r->from = from;
    r->to = to;
    for (int64_t c = 0; from < to && c < r->s->cin; c += LANES)
        for (int64_t line = 0; line < lines; line++)
            filter_line(r, line, c, r->s->cin - c);
}

/* Outputs [from, to) of a row whose windows lie in the image, where all taps can be done at once;
 * none: from = to. */
static void find_inner(const struct ew_conv_shape *s, int64_t row, int64_t *from, int64_t *to)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    const int64_t y = row % h->out * h->stride - h->pad;
    const bool square = s->axis[0].in == 1 && s->axis[0].out == 1 && s->axis[0].taps == 1 &&
                        s->axis[0].pad == 0 && h->taps == w->taps && h->dilation == 1 &&
                        w->dilation == 1 && w->pad >= 0 &&
                        (w->taps == 3 || (w->taps == 5 && SQUARE == 5));
    *from = *to = 0;
    if (!square || y < 0 || y + h->taps > h->in || w->in < w->taps)
        return;
    *from = min_i64(div_up(w->pad, w->stride), w->out);
    *to = max_i64(min_i64((w->in - w->taps + w->pad) / w->stride + 1, w->out), *from);
}

static void filter_row(struct row *r, const float *x, int64_t row)
{
    const struct ew_conv_shape *s = r->s;
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    int64_t from, to;
    find_inner(s, row, &from, &to);
    filter_some(r, 0, from);
    if (from < to) {
        const int64_t y = row / h->out * h->in + row % h->out * h->stride - h->pad;
        const int64_t first = y * w->in + from * w->stride - w->pad;
        const struct square q = {.x = x + first * s->cin,
                                 .dy = r->dy + from * s->cin,
                                 .count = to - from,
                                 .x_row = (int64_t)w->in * s->cin};
        if (w->taps == 3)
            filter_channels(r, &q, 3);
        else
            filter_channels(r, &q, SQUARE);
    }
    filter_some(r, to, w->out);
}

void EW_K(depthwise_filter_run)(const struct ew_conv_filter *f, int64_t begin, int64_t end,
                                void *scratch)
{
    const struct ew_conv_shape *s = &f->shape;
    const int64_t tiles = EW_K(depthwise_filter_tiles)(s), rows = rows_of(s);
    struct lines l;
    lines_init(&l, s, scratch);
    struct row r = {.s = s, .l = &l, .wide = wide_of(s)};
    for (int64_t tile = begin; tile < end; tile++) {
        r.sum = f->partial + tile * taps_of(s) * r.wide;
        clear(r.sum, taps_of(s) * r.wide);
        for (int64_t row = rows * tile / tiles; row < rows * (tile + 1) / tiles; row++) {
            lines_find(&l, s, f->x, row);
            r.dy = f->dy + row * s->axis[2].out * s->cout;
            filter_row(&r, f->x, row);
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
