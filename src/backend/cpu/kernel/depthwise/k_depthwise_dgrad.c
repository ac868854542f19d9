/* SPDX-License-Identifier: Apache-2.0 */
/* Dgrad of depthwise convolution, and its fusion with wgrad.  With stride 1 it is the forward
 * kernel on the rotated filter.  With stride 2 pixels are computed in pairs, which read the same
 * outputs: one through the filter's even taps, one through the odd ones.  Otherwise, and at the
 * edges, each pixel gathers the taps that contribute to it. */
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/depthwise/depthwise.h"

static bool unit_stride(const struct ew_conv_shape *s)
{
    return s->axis[0].stride == 1 && s->axis[1].stride == 1 && s->axis[2].stride == 1;
}

/* The convolution of dy with the rotated filter. */
static struct ew_conv_shape reversed(const struct ew_conv_shape *s)
{
    struct ew_conv_shape r = *s;
    r.input_norm = false;
    for (int i = 0; i < 3; i++) {
        const struct ew_conv_axis *a = &s->axis[i];
        r.axis[i].in = a->out;
        r.axis[i].out = a->in;
        r.axis[i].pad = (a->taps - 1) * a->dilation - a->pad;
    }
    return r;
}

void EW_K(depthwise_dgrad_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const int64_t taps = taps_of(s), wide = padded_channels(s);
    const bool rotate = unit_stride(s);
    for (int64_t t = 0; t < taps; t++)
        for (int64_t c = 0; c < wide; c++)
            packed[t * wide + c] = c < s->cin ? w[c * taps + (rotate ? taps - 1 - t : t)] : 0;
}

/* A tile is a row of dx. */
int64_t EW_K(depthwise_dgrad_tiles)(const struct ew_conv_shape *s)
{
    return s->axis[2].in ? (int64_t)s->batch * s->axis[0].in * s->axis[1].in : 0;
}

/* A tap that contributes to a pixel: its dy and its weights. */
struct dgrad_tap {
    const float *dy, *w;
};

/* Scratch: the list of such taps, then for each column and tap the output, or -1. */
size_t EW_K(depthwise_dgrad_scratch)(const struct ew_conv_shape *s)
{
    const struct ew_conv_shape r = reversed(s);
    if (unit_stride(s))
        return lines_bytes(&r);
    return (size_t)taps_of(s) * sizeof(struct dgrad_tap) +
           (size_t)s->axis[2].in * (size_t)s->axis[2].taps * sizeof(int32_t);
}

/* The output that reads input `at` through tap t; -1: none. */
INLINE int64_t output_of_tap(const struct ew_conv_axis *a, int64_t at, int64_t t)
{
    const int64_t o = at + a->pad - t * a->dilation;
    return o >= 0 && o % a->stride == 0 && o / a->stride < a->out ? o / a->stride : -1;
}

/* Once for all rows, since divisions are slow. */
static void find_columns(const struct ew_conv_axis *a, int32_t *columns)
{
    for (int64_t at = 0; at < a->in; at++)
        for (int64_t t = 0; t < a->taps; t++)
            *columns++ = (int32_t)output_of_tap(a, at, t);
}

#define LINES 25 /* lines at once: more than any network has */

/* One row of dx. */
struct data_row {
    const struct ew_conv *c;
    struct lines *l; /* lines of dy */
    struct dgrad_tap *list;
    const int32_t *columns;
    int64_t from, to; /* pairs of pixels computed together */
    int64_t row;
    struct ew_epilogue end;
    int64_t n;                         /* lines of dy that contribute */
    const float *dy[LINES], *w[LINES]; /* of each such line */
};

static void find_lines(struct data_row *r, int64_t row, int64_t first)
{
    const struct ew_conv_shape *s = &r->c->shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t n = row / a[1].in / a[0].in, z = row / a[1].in % a[0].in, y = row % a[1].in;
    const int64_t last = min_i64((int64_t)a[0].taps * a[1].taps, first + LINES);
    r->n = 0;
    for (int64_t t = first; t < last; t++) {
        const int64_t o0 = output_of_tap(&a[0], z, t / a[1].taps),
                      o1 = output_of_tap(&a[1], y, t % a[1].taps);
        if (o0 < 0 || o1 < 0)
            continue;
        r->dy[r->n] = lines_at(r->l, r->c->x, (n * a[0].out + o0) * a[1].out + o1, a[2].out);
        r->w[r->n++] = r->c->w + t * a[2].taps * padded_channels(s);
    }
}

static int64_t find_taps(const struct data_row *r, int64_t column)
{
    const struct ew_conv_shape *s = &r->c->shape;
    const int64_t taps = s->axis[2].taps, wide = padded_channels(s);
    int64_t n = 0;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t o = r->columns[column * taps + t];
        for (int64_t i = 0; o >= 0 && i < r->n; i++)
            r->list[n++] = (struct dgrad_tap){r->dy[i] + o * s->cout, r->w[i] + t * wide};
    }
    return n;
}

INLINE vec sum_taps(const struct dgrad_tap *list, int64_t n, int64_t c, int64_t part)
{
    vec sum = {0};
    for (int64_t t = 0; t < n; t++) {
        const vec dy = load_n(list[t].dy + c, part);
        sum += dy * load(list[t].w + c);
    }
    return sum;
}

/* ---- Pairs of pixels: pair q is pixels 2 q - pad (taps 0, 2, ...)  and 2 q - pad + 1 ---- */

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define PAIRS 7
#else
#define PAIRS 4
#endif

/* Computes `count` pairs from q on, n channels from c on. */
INLINE void pair_vector(const struct data_row *r, int64_t q, int64_t c, int64_t n, const int taps,
                        const int count)
{
    const struct ew_conv_shape *s = &r->c->shape;
    const int64_t wide = padded_channels(s), channels = s->cin;
    const int even = (taps + 1) / 2, odd = taps / 2, reach = count + even - 1;
    vec sum[2][PAIRS] = {{{0}}};
    for (int64_t i = 0; i < r->n; i++) {
        const float *dy = r->dy[i] + (q - (even - 1)) * channels + c, *w = r->w[i] + c;
        vec x[PAIRS + 2];
        UNROLL
        for (int p = 0; p < reach; p++)
            x[p] = load_n(dy + p * channels, n);
        UNROLL
        for (int t = 0; t < even; t++) {
            const vec w0 = load(w + 2 * t * wide);
            UNROLL
            for (int p = 0; p < count; p++)
                sum[0][p] += x[p + even - 1 - t] * w0;
        }
        UNROLL
        for (int t = 0; t < odd; t++) {
            const vec w1 = load(w + (2 * t + 1) * wide);
            UNROLL
            for (int p = 0; p < count; p++)
                sum[1][p] += x[p + even - 1 - t] * w1;
        }
    }
    const int64_t y = (r->row * s->axis[2].in + 2 * q - s->axis[2].pad) * channels + c;
    UNROLL
    for (int p = 0; p < count; p++) {
        put(&r->end, r->c->y, y + 2 * p * channels, sum[0][p], n);
        put(&r->end, r->c->y, y + (2 * p + 1) * channels, sum[1][p], n);
    }
}

ENDING void pair_rest(const struct data_row *r, int64_t q, int64_t c, int64_t n, const int taps,
                      const int count)
{
    pair_vector(r, q, c, n, taps, count);
}

FORMED void pair_span(const struct data_row *r, int64_t q, const int taps, const int count)
{
    const int64_t channels = r->c->shape.cin;
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES)
        pair_vector(r, q, c, LANES, taps, count);
    const int64_t rest = channels - c;
    if (rest > 0 && rest < LANES) /* tells compilers that it is less than a vector */
        pair_rest(r, q, c, rest, taps, count);
}

#define PAIR_CASE(n)                                                                               \
    case n:                                                                                        \
        pair_span(r, q, taps, n);                                                                  \
        break;

INLINE void pair_row(const struct data_row *r, const int taps)
{
    int64_t q = r->from;
    const struct ew_conv_shape *s = &r->c->shape;
    for (; q + PAIRS <= r->to; q += PAIRS) {
        fetch(r->c->y + (r->row * s->axis[2].in + 2 * (q + PAIRS)) * s->cin, 2 * PAIRS * s->cin);
        pair_span(r, q, taps, PAIRS);
    }
    switch (r->to - q) {
        PAIR_CASE(1)
        PAIR_CASE(2)
        PAIR_CASE(3)
#if PAIRS == 7
        PAIR_CASE(4)
        PAIR_CASE(5)
        PAIR_CASE(6)
#endif
    default:
        break;
    }
}

/* Pairs [from, to) inside the image that read no output outside of it; from = to: none. */
static void find_pairs(const struct ew_conv_axis *a, int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (a->stride != 2 || a->dilation != 1 || a->pad < 0 || (a->taps != 3 && a->taps != 5))
        return;
    *from = max_i64(div_up(a->pad, 2), (a->taps + 1) / 2 - 1);
    *to = max_i64(min_i64((a->in + a->pad) / 2, a->out), *from);
}

/* ---- Rows ---- */

/* Computes pixels [from, to) one by one. */
static void some_pixels(const struct data_row *r, int64_t from, int64_t to)
{
    const struct ew_conv_shape *s = &r->c->shape;
    for (int64_t x = from; x < to; x++) {
        const int64_t n = find_taps(r, x), y = (r->row * s->axis[2].in + x) * s->cin;
        int64_t c = 0;
        for (; c + LANES <= s->cin; c += LANES)
            put(&r->end, r->c->y, y + c, sum_taps(r->list, n, c, LANES), LANES);
        if (c < s->cin)
            put(&r->end, r->c->y, y + c, sum_taps(r->list, n, c, s->cin - c), s->cin - c);
    }
}

static void data_row(struct data_row *r, int64_t row)
{
    const struct ew_conv_axis *a = r->c->shape.axis;
    const int64_t lines = (int64_t)a[0].taps * a[1].taps;
    const bool pairs = r->from < r->to;
    r->row = row;
    r->end = r->c->end;
    for (int64_t first = 0; first < lines; first += LINES) {
        find_lines(r, row, first);
        some_pixels(r, 0, pairs ? 2 * r->from - a[2].pad : 0);
        if (pairs && a[2].taps == 3)
            pair_row(r, 3);
        else if (pairs)
            pair_row(r, 5);
        some_pixels(r, pairs ? 2 * r->to - a[2].pad : 0, a[2].in);
        r->end.add = r->c->y; /* accumulate further lines */
    }
}

static void data_begin(struct data_row *r)
{
    int32_t *columns = (int32_t *)(void *)(r->list + taps_of(&r->c->shape));
    find_columns(&r->c->shape.axis[2], columns);
    r->columns = columns;
    find_pairs(&r->c->shape.axis[2], &r->from, &r->to);
}

void EW_K(depthwise_dgrad_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    if (unit_stride(&c->shape)) {
        struct ew_conv r = *c;
        r.shape = reversed(&c->shape);
        EW_K(depthwise_run)(&r, begin, end, scratch);
        return;
    }
    struct lines l = {.channels = c->shape.cout};
    struct data_row r = {.c = c, .l = &l, .list = scratch};
    data_begin(&r);
    for (int64_t row = begin; row < end; row++)
        data_row(&r, row);
}

/* ---- Fused dgrad + wgrad in one pass over rows of outputs, with the batch norms around them
 * ---- */

bool EW_K(depthwise_fused_grads_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = &s->axis[0];
    return EW_K(depthwise_norms)(s) && a->in == a->out && a->stride == 1 && a->pad == 0;
}

static size_t line_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* The lines of dy, always with a ring buffer. */
static struct ew_conv_shape dgrad_shape(const struct ew_conv_shape *s)
{
    struct ew_conv_shape reversed_shape = reversed(s);
    reversed_shape.input_norm = true;
    return reversed_shape;
}

/* Scratch: lines of x, lines of dy, and that of strided dgrad. */
size_t EW_K(depthwise_fused_grads_scratch)(const struct ew_conv_shape *s)
{
    const struct ew_conv_shape reversed_shape = dgrad_shape(s);
    return line_up(lines_bytes(s)) + line_up(lines_bytes(&reversed_shape)) +
           EW_K(depthwise_dgrad_scratch)(s);
}

struct fused_grads {
    const struct ew_fused_grads *j;
    struct ew_conv data;
    struct lines x, dy;
    struct filter_row filter;
    struct data_row row;
    struct ew_batch_norm norm; /* the norm of x, whose backward sums are accumulated */
    float *sums;               /* NULL: not wanted */
};

static void fused_grads_init(struct fused_grads *k, const struct ew_fused_grads *j, char *scratch)
{
    const struct ew_conv_shape *s = &j->filter.shape, reversed_shape = dgrad_shape(s);
    *k = (struct fused_grads){.j = j};
    lines_init(&k->x, s, j->filter.norm, scratch);
    scratch += line_up(lines_bytes(s));
    lines_init(&k->dy, &reversed_shape, NULL, scratch);
    scratch += line_up(lines_bytes(&reversed_shape));
    k->dy.back = j->output_norm;
    k->data = (struct ew_conv){.shape = unit_stride(s) ? reversed(s) : *s,
                               .x = j->output_norm ? j->output_norm->dy : j->filter.dy,
                               .w = j->w,
                               .y = j->dx,
                               .end = {.add = j->add_dx ? j->dx : NULL}};
    k->filter = (struct filter_row){.s = s, .l = &k->x, .x = j->filter.x};
    if (j->norm_sums)
        k->norm = *j->filter.norm;
    k->norm.dy = j->dx;
    if (unit_stride(s))
        return;
    k->row = (struct data_row){.c = &k->data, .l = &k->dy, .list = (void *)scratch};
    data_begin(&k->row);
}

/* Computes the rows of dx that belong to a row of outputs: row * stride and following. */
static void fused_grads_data(struct fused_grads *k, int64_t row)
{
    const struct ew_conv_shape *s = &k->j->filter.shape;
    const struct ew_conv_axis *h = &s->axis[1];
    const int64_t image = row / h->out * h->in, r = row % h->out;
    const int64_t first = min_i64(r * h->stride, h->in);
    const int64_t last = r + 1 == h->out ? h->in : min_i64(first + h->stride, h->in);
    for (int64_t i = image + first; i < image + last; i++) {
        if (unit_stride(s))
            EW_K(depthwise_row)(&k->data, &k->dy, i);
        else
            data_row(&k->row, i);
    }
    if (k->sums)
        EW_KF(batch_back_rows)
    (&k->norm, (image + first) * s->axis[2].in, (image + last) * s->axis[2].in, k->sums);
}

/* Prefetches for dgrad kernels that do not prefetch by themselves. */
static void fused_grads_soon(struct fused_grads *k, int64_t row, int64_t floats)
{
    const bool fetch = !unit_stride(&k->j->filter.shape);
    k->filter.prefetch[0] = fetch ? k->data.x + (row + 2) * floats : NULL;
    k->filter.prefetch[1] =
        fetch && k->j->output_norm ? k->j->output_norm->x + (row + 2) * floats : NULL;
}

void EW_K(depthwise_fused_grads_run)(const struct ew_fused_grads *j, int64_t begin, int64_t end,
                                     void *scratch)
{
    const struct ew_conv_shape *s = &j->filter.shape;
    const int64_t rows = (int64_t)s->batch * s->axis[0].out * s->axis[1].out;
    const int64_t tiles = EW_K(depthwise_wgrad_tiles)(s), size = taps_of(s) * padded_channels(s);
    const int64_t floats = (int64_t)s->axis[2].out * s->cout;
    struct fused_grads k;
    fused_grads_init(&k, j, scratch);
    for (int64_t tile = begin; tile < end; tile++) {
        k.filter.sum = j->filter.partial + tile * size;
        k.sums = j->norm_sums ? j->norm_sums + tile * 2 * s->cin : NULL;
        clear(k.filter.sum, size);
        clear(k.sums, k.sums ? 2 * s->cin : 0);
        for (int64_t row = rows * tile / tiles; row < rows * (tile + 1) / tiles; row++) {
            k.filter.row = row;
            k.filter.dy = lines_at(&k.dy, k.data.x, row, s->axis[2].out);
            fused_grads_soon(&k, row, floats);
            if (!j->no_filter)
                EW_K(depthwise_wgrad_row)(&k.filter);
            if (j->dx)
                fused_grads_data(&k, row);
        }
    }
}
