/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad of depthwise convolution: sums over rows of outputs, in a fixed number of splits.  For
 * square filters the accumulators of all taps stay in registers for a row. */
#include "backend/cpu/kernel/depthwise/depthwise.h"

#define SPLITS 16 /* most splits of the rows of outputs */

static int64_t rows_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->axis[0].out * s->axis[1].out;
}

int64_t EW_K(depthwise_wgrad_tiles)(const struct ew_conv_shape *s)
{
    return max_i64(min_i64(rows_of(s), SPLITS), 1);
}

/* Partial sums: [tile][taps][channels, in whole vectors] */
size_t EW_K(depthwise_wgrad_partial)(const struct ew_conv_shape *s)
{
    return (size_t)(EW_K(depthwise_wgrad_tiles)(s) * taps_of(s) * padded_channels(s));
}

size_t EW_K(depthwise_wgrad_scratch)(const struct ew_conv_shape *s)
{
    return lines_bytes(s);
}

struct row {
    const struct filter_row *in;
    const struct ew_conv_shape *s;
    const struct lines *l;
    const float *dy;
    float *sum; /* [taps][wide] */
    int64_t wide;
    int64_t from, to;     /* outputs */
    int64_t inner, outer; /* outputs whose windows are inside the image */
};

/* Outputs [begin, end) of a row. */
struct piece {
    int64_t begin, end;
};

/* Accumulates `count` taps of one line of the filter, n channels from c on, over a row of
 * outputs. */
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

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define SQUARE 5 /* taps of the largest square filter whose accumulators fit into registers */
#else
#define SQUARE 3
#endif

/* Accumulates all taps of a square filter over outputs [from, to) of a row; addresses come from the
 * table of pixels, or inside the image from strides. */
INLINE void square_some(const struct row *r, vec sum[SQUARE * SQUARE], int64_t c, int64_t n,
                        const int taps)
{
    const int64_t step = r->s->axis[2].stride;
    for (int64_t o = r->from; o < r->to; o++) {
        const vec dy = load_n(r->dy + o * r->s->cout + c, n);
        const float *const *at = r->l->at + o * step;
        UNROLL
        for (int y = 0; y < taps; y++)
            UNROLL
        for (int t = 0; t < taps; t++)
            sum[y * taps + t] += dy * load_n(at[y * r->l->columns + t] + c, n);
    }
}

INLINE void square_inner(const struct row *r, vec sum[SQUARE * SQUARE], int64_t c, int64_t n,
                         const int taps)
{
    const int64_t channels = r->s->cin, step = r->s->axis[2].stride * channels;
    const float *from = r->dy + r->from * channels + c, *x[SQUARE];
    if (r->from >= r->to)
        return;
    UNROLL
    for (int y = 0; y < taps; y++)
        x[y] = r->l->at[y * r->l->columns + r->from * r->s->axis[2].stride] + c;
    for (int64_t o = r->from; o < r->to; o++, from += channels) {
        const vec dy = load_n(from, n);
        UNROLL
        for (int y = 0; y < taps; y++) {
            UNROLL
            for (int t = 0; t < taps; t++)
                sum[y * taps + t] += dy * load_n(x[y] + t * channels, n);
            x[y] += step;
        }
    }
}

/* Accumulates the outputs of one piece. */
INLINE void filter_square(struct row *r, struct piece p, int64_t c, int64_t n, const int taps)
{
    vec sum[SQUARE * SQUARE];
    UNROLL
    for (int t = 0; t < taps * taps; t++)
        sum[t] = load(r->sum + t * r->wide + c);
    r->from = p.begin;
    r->to = min_i64(r->inner, p.end);
    square_some(r, sum, c, n, taps);
    r->from = max_i64(r->inner, p.begin);
    r->to = min_i64(r->outer, p.end);
    square_inner(r, sum, c, n, taps);
    r->from = max_i64(r->outer, p.begin);
    r->to = p.end;
    square_some(r, sum, c, n, taps);
    UNROLL
    for (int t = 0; t < taps * taps; t++)
        store(r->sum + t * r->wide + c, sum[t]);
}

/* Prefetches a share of what the next rows read. */
INLINE void fetch_share(const struct row *r, int64_t part, int64_t parts)
{
    const int64_t n = (int64_t)r->s->axis[2].out * r->s->cout, from = n * part / parts;
    lines_fetch(r->s, r->in->x, r->in->row, part, parts);
    for (int i = 0; i < 2; i++)
        if (r->in->prefetch[i])
            fetch(r->in->prefetch[i] + from, n * (part + 1) / parts - from);
}

/* Pixels a multiple of 256 bytes apart use at most a quarter of L1's sets, so long rows evict
 * themselves and are divided into pieces. */
#define STEP_SHARED  64
#define PIECE_SHARED 14

INLINE void filter_channels(struct row *r, const int taps)
{
    const int64_t channels = r->s->cin, out = r->s->axis[2].out;
    const int64_t piece = channels % STEP_SHARED == 0 ? PIECE_SHARED : out;
    const int64_t parts = div_up(out, piece) * (r->wide / LANES);
    int64_t part = 0;
    for (int64_t o = 0; o < out; o += piece) {
        const struct piece p = {o, min_i64(o + piece, out)};
        int64_t c = 0;
        for (; c + LANES <= channels; c += LANES) {
            fetch_share(r, part++, parts);
            filter_square(r, p, c, LANES, taps);
        }
        if (c < channels)
            filter_square(r, p, c, channels - c, taps);
    }
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

static void filter_any(struct row *r)
{
    const int64_t lines = (int64_t)r->s->axis[0].taps * r->s->axis[1].taps;
    r->from = 0;
    r->to = r->s->axis[2].out;
    for (int64_t c = 0; c < r->s->cin; c += LANES)
        for (int64_t line = 0; line < lines; line++)
            filter_line(r, line, c, r->s->cin - c);
}

static bool is_square(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    return a[0].taps == 1 && a[1].taps == a[2].taps && a[2].dilation == 1 &&
           (a[2].taps == 3 || (a[2].taps == 5 && SQUARE == 5));
}

/* Finds the outputs [inner, outer) of a row whose windows are inside the image. */
static void find_inner(struct row *r)
{
    const struct ew_conv_axis *h = &r->s->axis[1], *w = &r->s->axis[2];
    const int64_t y = r->in->row % h->out * h->stride - h->pad;
    r->inner = r->outer = 0;
    if (r->s->axis[0].pad != 0 || r->s->axis[0].out != r->s->axis[0].in || y < 0 ||
        y + (int64_t)(h->taps - 1) * h->dilation >= h->in || w->pad < 0 || w->in < w->taps)
        return;
    r->inner = min_i64(div_up(w->pad, w->stride), w->out);
    r->outer = max_i64(min_i64((w->in - w->taps + w->pad) / w->stride + 1, w->out), r->inner);
}

void EW_K(depthwise_wgrad_row)(const struct filter_row *in)
{
    struct row r = {.in = in,
                    .s = in->s,
                    .l = in->l,
                    .dy = in->dy,
                    .sum = in->sum,
                    .wide = padded_channels(in->s)};
    lines_find(in->l, in->s, in->x, in->row, in->s->axis[1].taps);
    if (!is_square(r.s)) {
        filter_any(&r);
        return;
    }
    find_inner(&r);
    if (r.s->axis[2].taps == 3)
        filter_channels(&r, 3);
    else
        filter_channels(&r, SQUARE);
}

void EW_K(depthwise_wgrad_run)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end,
                               void *scratch)
{
    const struct ew_conv_shape *s = &f->shape;
    const int64_t tiles = EW_K(depthwise_wgrad_tiles)(s), rows = rows_of(s);
    const int64_t size = taps_of(s) * padded_channels(s),
                  floats = (int64_t)s->axis[2].out * s->cout;
    struct lines l;
    lines_init(&l, s, f->norm, scratch);
    struct filter_row r = {.s = s, .l = &l, .x = f->x};
    for (int64_t tile = begin; tile < end; tile++) {
        r.sum = f->partial + tile * size;
        clear(r.sum, size);
        for (int64_t row = rows * tile / tiles; row < rows * (tile + 1) / tiles; row++) {
            r.row = row;
            r.dy = f->dy + row * floats;
            r.prefetch[0] = r.dy + floats;
            EW_K(depthwise_wgrad_row)(&r);
        }
    }
}

/* One tile: depthwise filters are small. */
int64_t EW_K(depthwise_wgrad_sum_tiles)(const struct ew_conv_shape *s)
{
    return 1;
}

void EW_K(depthwise_wgrad_sum)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end)
{
    const struct ew_conv_shape *s = &f->shape;
    const int64_t tiles = EW_K(depthwise_wgrad_tiles)(s), taps = taps_of(s),
                  wide = padded_channels(s);
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
