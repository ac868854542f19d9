/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution with input channels in the lanes: few outputs of many inputs, as in the last
 * layer of networks that make images or maps.
 *
 * A vector of output channels would be mostly empty (3 of 16), so lanes are the inputs of a line of
 * taps, which are contiguous, and each sum is added up across its lanes at the end.  A tile is some
 * rows of outputs of one image; its input lines are copied to scratch with their padding:
 *
 *   [lines][line]; then a row of outputs, [out][cout] */
#include "backend/cpu/kernel/common/across.h"
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/gemm/micro.h"

/* Pixels at once, times outputs: accumulators that fit beside the weights and an input. */
#define OUTPUTS 4
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define PIXELS(outputs) ((outputs) < 4 ? 8 : 6)
#else
#define PIXELS(outputs) ((outputs) == 1 ? 8 : 12 / (outputs))
#endif

#define ROWS      4 /* rows of outputs in a tile, with enough of them */
#define ACROSS    8 /* cycles of adding up the lanes of a sum, about */
#define MIN_TILES 4 /* fewest tiles of an image */

struct input_lanes {
    int64_t rows, lines; /* rows of outputs and input lines in a tile */
    int64_t row_tiles;   /* row tiles of an image */
    int64_t columns;     /* input pixels of a line, with padding */
    int64_t line;        /* floats of a line */
    int64_t reads;       /* floats of a line that an output reads */
    int64_t vectors;     /* vectors of these */
    int64_t step;        /* floats between what neighbouring outputs read */
};

static struct input_lanes input_lanes_of(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    struct input_lanes p = {.rows = max_i64(min_i64(ROWS, h->out / MIN_TILES), 1)};
    p.row_tiles = div_up(h->out, p.rows);
    p.lines = (p.rows - 1) * h->stride + (int64_t)(h->taps - 1) * h->dilation + 1;
    p.columns = (int64_t)(w->out - 1) * w->stride + w->taps;
    p.line = p.columns * s->cin;
    p.reads = (int64_t)w->taps * s->cin;
    p.vectors = div_up(p.reads, LANES);
    p.step = (int64_t)w->stride * s->cin;
    return p;
}

bool EW_K(input_lanes_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    bool fits = s->groups == 1 && s->batch > 0 && s->cin > 0 && 2 * s->cout <= LANES &&
                a[0].in == 1 && a[0].out == 1 && a[0].taps == 1 && a[0].pad == 0 &&
                a[2].dilation == 1;
    for (int i = 1; i < 3; i++)
        fits = fits && a[i].pad >= 0 && a[i].taps > 0 && a[i].out > 0 && a[i].in > 0;
    /* Cycles of an output pixel, against 2/3 of those of a GEMM, which multiplies half vectors in
     * pairs where there are such. */
    const int64_t reads = (int64_t)a[2].taps * s->cin;
    const int64_t own = (a[1].taps * div_up(reads, LANES) + ACROSS) * s->cout;
    return fits && own * 3 < (HALF ? 1 : 2) * a[1].taps * reads;
}

/* ---- Weights: [chunk of OUTPUTS][line of taps][vector][output of the chunk][LANES] ---- */

size_t EW_K(input_lanes_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(input_lanes_of(s).vectors * LANES * s->axis[1].taps * s->cout);
}

void EW_K(input_lanes_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const struct input_lanes p = input_lanes_of(s);
    const int64_t lines = s->axis[1].taps;
    for (int64_t o = 0; o < s->cout; o += OUTPUTS)
        for (int64_t i = 0; i < lines * p.vectors; i++)
            for (int64_t k = o; k < min_i64(o + OUTPUTS, s->cout); k++, packed += LANES) {
                const int64_t from = i % p.vectors * LANES;
                const float *filter = w + (k * lines + i / p.vectors) * p.reads;
                for (int64_t l = 0; l < LANES; l++)
                    packed[l] = from + l < p.reads ? filter[from + l] : 0;
            }
}

/* ---- Lines ---- */

/* Copies the input lines of the tile whose first output row is `first`. */
static void fill_lines(const struct ew_conv_shape *s, const struct input_lanes *p, const float *x,
                       int64_t first, float *to)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    const int64_t before = min_i64(w->pad, p->columns);
    const int64_t inside = min_i64(w->in, p->columns - before);
    for (int64_t i = 0; i < p->lines; i++, to += p->line) {
        const int64_t y = first * h->stride - h->pad + i;
        if (y < 0 || y >= h->in) {
            clear(to, p->line);
            continue;
        }
        clear(to, before * s->cin);
        copy(to + before * s->cin, x + y * w->in * s->cin, inside * s->cin);
        clear(to + (before + inside) * s->cin, p->line - (before + inside) * s->cin);
    }
}

/* ---- Sums ---- */

/* Neighbouring outputs of one row. */
struct part {
    const struct input_lanes *p;
    const float *x, *w;  /* x: at tap 0 of the first; w: of the chunk */
    int64_t lines, down; /* lines of taps; floats between them */
    const float *bias;   /* of the chunk; NULL: none */
    float *to;
    int64_t cout;
};

/* Adds the products of one vector of each pixel, n lanes. */
INLINE void add_vector(const float *x, int64_t n, int64_t step, const float *w, const int pixels,
                       const int outputs, vec sum[][OUTPUTS])
{
    vec tap[OUTPUTS];
    UNROLL
    for (int o = 0; o < outputs; o++)
        tap[o] = load(w + o * LANES);
    UNROLL
    for (int i = 0; i < pixels; i++) {
        const vec in = load_n(x + i * step, n);
        UNROLL
        for (int o = 0; o < outputs; o++)
            sum[i][o] += in * tap[o];
    }
}

INLINE void sum_pixels(const struct part *b, const int pixels, const int outputs)
{
    const int64_t reads = b->p->reads, step = b->p->step;
    const float *w = b->w;
    vec sum[8][OUTPUTS];
    UNROLL
    for (int i = 0; i < pixels; i++)
        UNROLL
    for (int o = 0; o < outputs; o++)
        sum[i][o] = (vec){0};
    for (int64_t y = 0; y < b->lines; y++) {
        const float *x = b->x + y * b->down;
        int64_t k = 0;
        for (; k + LANES <= reads; k += LANES, w += outputs * LANES)
            add_vector(x + k, LANES, step, w, pixels, outputs, sum);
        if (k < reads && reads - k < LANES) {
            add_vector(x + k, reads - k, step, w, pixels, outputs, sum);
            w += outputs * LANES;
        }
    }
    for (int i = 0; i < pixels; i++)
        UNROLL
    for (int o = 0; o < outputs; o++)
        b->to[i * b->cout + o] = across_sum(sum[i][o]) + (b->bias ? b->bias[o] : 0);
}

/* A row of outputs: the last pixels again with some before them rather than fewer at once. */
INLINE void sum_row(const struct part *row, int64_t out, const int outputs)
{
    const int pixels = PIXELS(outputs);
    const int64_t step = row->p->step;
    struct part b = *row;
    for (int64_t i = 0; i < out && out >= pixels; i += pixels) {
        const int64_t at = min_i64(i, out - pixels);
        b.x = row->x + at * step;
        b.to = row->to + at * row->cout;
        sum_pixels(&b, pixels, outputs);
    }
    for (int64_t i = 0; i < out && out < pixels; i++) {
        b.x = row->x + i * step;
        b.to = row->to + i * row->cout;
        sum_pixels(&b, 1, outputs);
    }
}

#define ROW_OF(n)                                                                                  \
    static __attribute__((noinline)) void row_of_##n(const struct part *b, int64_t out)            \
    {                                                                                              \
        sum_row(b, out, n);                                                                        \
    }

ROW_OF(1)
ROW_OF(2)
ROW_OF(3)
ROW_OF(4)

int64_t EW_K(input_lanes_tiles)(const struct ew_conv_shape *s)
{
    return s->batch * input_lanes_of(s).row_tiles;
}

size_t EW_K(input_lanes_scratch)(const struct ew_conv_shape *s)
{
    const struct input_lanes p = input_lanes_of(s);
    return (size_t)(p.lines * p.line + s->cout * (int64_t)s->axis[2].out + LANES) * sizeof(float);
}

/* Computes a row of outputs: its sums, then the rest of the epilogue. */
static void run_row(const struct ew_conv *c, const struct input_lanes *p, const float *x, int64_t y,
                    float *row)
{
    static void (*const rows[])(const struct part *, int64_t) = {row_of_1, row_of_2, row_of_3,
                                                                 row_of_4};
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_epilogue *e = &c->end;
    const int64_t lines = s->axis[1].taps, out = s->axis[2].out, n = out * s->cout;
    for (int64_t o = 0; o < s->cout; o += OUTPUTS) {
        const struct part b = {.p = p,
                               .x = x,
                               .w = c->w + o * lines * p->vectors * LANES,
                               .lines = lines,
                               .down = s->axis[1].dilation * p->line,
                               .bias = e->bias ? e->bias + o : NULL,
                               .to = row + o,
                               .cout = s->cout};
        rows[min_i64(OUTPUTS, s->cout - o) - 1](&b, out);
    }
    for (int64_t i = 0; i < n; i += LANES)
        put(e, c->y, y + i, load_n(row + i, n - i), n - i);
}

static void run_tile(const struct ew_conv *c, const struct input_lanes *p, int64_t tile,
                     float *lines)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    const int64_t image = tile / p->row_tiles, first = tile % p->row_tiles * p->rows;
    fill_lines(s, p, c->x + image * h->in * w->in * s->cin, first, lines);
    for (int64_t y = first; y < min_i64(first + p->rows, h->out); y++)
        run_row(c, p, lines + (y - first) * h->stride * p->line,
                (image * h->out + y) * (int64_t)w->out * s->cout, lines + p->lines * p->line);
}

void EW_K(input_lanes_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    const struct input_lanes p = input_lanes_of(&c->shape);
    for (int64_t i = begin; i < end; i++)
        run_tile(c, &p, i, scratch);
}
