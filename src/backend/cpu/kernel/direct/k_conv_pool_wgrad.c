/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad and bias gradient of a convolution fused with max pool 2x2.
 *
 * One output of a window has a gradient, or with a ReLU perhaps none.  So the windows of an output
 * channel are listed first, as gradient and offset in the image; then dw += gradient * patch of the
 * image for each.  Lanes are a line of taps. */
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/pool/argmax.h"

#define LINE  16 /* floats of a cache line */
#define TILES 32 /* most tiles, of at least two images each, with their own partial sums */

/* A vector for a line of taps: half of one if LANES would be mostly empty. */
#define RUN (LANES < 8 ? LANES : 8)
typedef float run_t __attribute__((vector_size(RUN * 4)));
typedef float run_u __attribute__((vector_size(RUN * 4), may_alias, aligned(4)));

INLINE run_t run_load(const float *p)
{
    return *(const run_u *)p;
}

/* Loads the first n < RUN floats. */
INLINE run_t run_load_part(const float *p, int64_t n)
{
#if HALF
    return half_load(p, n);
#else
    return load_part(p, n);
#endif
}

#define ROWS 5 /* rows of taps at once */
#define WIDE 2 /* vectors of each */

static int64_t round_up(int64_t n, int64_t to)
{
    return div_up(n, to) * to;
}

/* A padded image in scratch.  Each line is stored twice, half a cache line apart, so that one of
 * the two copies can be loaded without crossing a cache line. */
struct layout {
    int64_t high, wide, windows;
    int64_t run, vectors; /* floats of a line of taps; vectors for it */
    int64_t lines, line;  /* lines of an image; floats of a line with its copy */
    int64_t lead;         /* floats before the padding, so that the image is aligned to a cache
                           * line */
    int64_t twin;         /* floats to the other copy; 0: none */
    int64_t output, tile; /* floats of partial sums of an output; of a tile */
    int64_t bias;         /* offset of the bias gradients in a tile, a vector each */
    int64_t transposed;   /* floats of the gradients of an output channel */
};

static struct layout layout_of(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    struct layout l = {.high = h->out / 2, .wide = w->out / 2};
    l.windows = l.high * l.wide;
    l.run = (int64_t)w->taps * s->cin;
    l.vectors = div_up(l.run, RUN);
    l.lines = 2 * l.high + h->taps - 1;
    const int64_t pad = max_i64(w->pad, 0) * s->cin;
    const int64_t read = (2 * l.wide + w->taps - 1) * s->cin + RUN;
    const int64_t written = pad + round_up((int64_t)w->in * s->cin, RUN);
    l.lead = round_up(pad, LINE) - pad;
    l.line = round_up(l.lead + max_i64(read, written), LINE);
    if (RUN == 8 && l.vectors == 1) {
        l.twin = l.line + LINE / 2;
        l.line = round_up(2 * l.line + LINE / 2, LINE);
    }
    l.output = h->taps * l.vectors * RUN;
    l.bias = s->cout * l.output;
    l.tile = round_up(l.bias + (int64_t)s->cout * LANES, LINE);
    l.transposed = round_up(l.windows, LANES);
    return l;
}

int64_t EW_K(conv_pool_grad_tiles)(const struct ew_conv_shape *s)
{
    return min_i64(div_up(s->batch, 2), TILES);
}

size_t EW_K(conv_pool_partial)(const struct ew_conv_shape *s)
{
    return (size_t)(EW_K(conv_pool_grad_tiles)(s) * layout_of(s).tile);
}

/* Scratch: the image, all gradients by output channel, and a list of gradients and offsets. */
size_t EW_K(conv_pool_grad_scratch)(const struct ew_conv_shape *s)
{
    const struct layout l = layout_of(s);
    return (size_t)(l.lines * l.line + (round_up(s->cout, TRANSPOSE_NARROW) + 2) * l.transposed +
                    2 * LANES) *
           sizeof(float);
}

/* ---- Offsets of the patches of all windows' outputs 0, then of their outputs 1 ---- */

size_t EW_K(conv_pool_offsets_size)(const struct ew_conv_shape *s)
{
    return (size_t)(2 * layout_of(s).transposed);
}

void EW_K(conv_pool_offsets)(const struct ew_conv_shape *s, int32_t *offsets)
{
    const struct layout l = layout_of(s);
    for (int64_t right = 0; right < 2; right++)
        for (int64_t i = 0; i < l.transposed; i++) {
            const int64_t y = i < l.windows ? i / l.wide : 0, x = i < l.windows ? i % l.wide : 0;
            const int64_t at = l.lead + (2 * x + right) * s->cin;
            const bool crosses = at % LINE > LINE - RUN;
            offsets[right * l.transposed + i] =
                (int32_t)(2 * y * l.line + at + (crosses ? l.twin : 0));
        }
}

/* ---- Lists ---- */

struct list {
    int64_t n;
    float *g;
    int32_t *at;
};

/* Appends those of n <= LANES windows that have a gradient; returns how many. */
#if defined(EW_ISA_IS_avx512)
INLINE int64_t append(const struct list *to, const struct layout *by, const uint8_t *argmax, vec g,
                      const int32_t *offsets, int64_t n)
{
    const __m512i p = (__m512i)load_index(argmax, n), one = _mm512_set1_epi32(1);
    const __mmask16 all = (__mmask16)((1u << n) - 1);
    const __mmask16 on =
        _mm512_mask_cmplt_epi32_mask(all, p, _mm512_set1_epi32(EW_CONV_POOL_NO_GRAD));
    const __m512i l = _mm512_loadu_si512(offsets), r = _mm512_loadu_si512(offsets + by->transposed);
    __m512i at = _mm512_mask_mov_epi32(l, _mm512_test_epi32_mask(p, one), r);
    at = _mm512_mask_add_epi32(at, _mm512_test_epi32_mask(p, _mm512_set1_epi32(2)), at,
                               _mm512_set1_epi32((int32_t)by->line));
    store(to->g, (vec)_mm512_maskz_compress_ps(on, (__m512)g));
    _mm512_storeu_si512(to->at, _mm512_maskz_compress_epi32(on, at));
    return __builtin_popcount(on);
}
#else
INLINE int64_t append(const struct list *to, const struct layout *by, const uint8_t *argmax, vec g,
                      const int32_t *offsets, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        to->g[count] = g[i];
        to->at[count] = offsets[i + (argmax[i] & 1 ? by->transposed : 0)] +
                        (argmax[i] & 2 ? (int32_t)by->line : 0);
        count += argmax[i] < EW_CONV_POOL_NO_GRAD;
    }
    return count;
}
#endif

/* Lists the windows of one output channel that have a gradient, then zeros up to whole vectors. */
static void list_windows(const struct layout *l, const uint8_t *argmax, const float *g,
                         const int32_t *offsets, struct list *to)
{
    const struct layout by = *l; /* a copy, which stores to the list cannot alias */
    struct list end = {.g = to->g, .at = to->at};
    for (int64_t i = 0; i < by.windows; i += LANES) {
        const int64_t n =
            append(&end, &by, argmax + i, load(g + i), offsets + i, min_i64(LANES, by.windows - i));
        end.g += n;
        end.at += n;
    }
    to->n = end.g - to->g;
    store(end.g, (vec){0});
    for (int i = 0; i < LANES; i++)
        end.at[i] = 0;
}

/* Adds the listed gradients to a vector of sums. */
static void sum_list(const struct list *from, float *sum)
{
    vec v = load(sum);
    for (int64_t i = 0; i < from->n; i += LANES)
        v += load(from->g + i);
    store(sum, v);
}

/* ---- Sums ---- */

struct sums {
    const struct list *list;
    const float *x; /* at the first row of taps and vector */
    int64_t line, step;
    float *sum; /* rows of taps are `step` apart */
};

/* Several independent accumulators hide the latency of FMAs: two sets, for alternate windows, if
 * there are too few rows of taps. */
INLINE void sum_fixed(const struct sums *s, const int rows, const int wide)
{
    const int turns = rows * wide < 8 ? 2 : 1;
    run_t sum[2][ROWS][WIDE] = {{{{0}}}};
    for (int64_t i = 0; i < s->list->n; i += turns)
        UNROLL
    for (int t = 0; t < turns; t++) {
        const float *x = s->x + s->list->at[i + t];
        const run_t g = s->list->g[i + t] - (run_t){0};
        UNROLL
        for (int y = 0; y < rows; y++)
            UNROLL
        for (int k = 0; k < wide; k++)
            sum[t][y][k] += run_load(x + y * s->line + k * RUN) * g;
    }
    UNROLL
    for (int y = 0; y < rows; y++)
        UNROLL
    for (int k = 0; k < wide; k++) {
        run_u *to = (run_u *)(s->sum + y * s->step + k * RUN);
        *to += turns > 1 ? sum[0][y][k] + sum[1][y][k] : sum[0][y][k];
    }
}

static void sum_rows(const struct sums *s, int64_t rows, int64_t wide)
{
    if (rows == 5 && wide == 1)
        sum_fixed(s, 5, 1);
    else if (rows == 5)
        sum_fixed(s, 5, 2);
    else if (rows == 3 && wide == 1)
        sum_fixed(s, 3, 1);
    else if (rows == 3)
        sum_fixed(s, 3, 2);
    else if (wide == 1)
        sum_fixed(s, 1, 1);
    else
        sum_fixed(s, 1, 2);
}

/* All taps of one output channel. */
static void sum_output(const struct layout *l, const struct list *list, const float *x,
                       int64_t taps, float *sum)
{
    for (int64_t y = 0, rows; y < taps; y += rows) {
        rows = taps - y >= 5 ? 5 : taps - y >= 3 ? 3 : 1;
        for (int64_t k = 0, wide; k < l->vectors; k += wide) {
            wide = min_i64(WIDE, l->vectors - k);
            const struct sums s = {.list = list,
                                   .x = x + y * l->line + k * RUN,
                                   .line = l->line,
                                   .step = l->vectors * RUN,
                                   .sum = sum + (y * l->vectors + k) * RUN};
            sum_rows(&s, rows, wide);
        }
    }
}

/* ---- Images ---- */

/* Copies a line and clears up to a whole vector after it; the padding before it is already zero. */
static void copy_line(const float *from, int64_t n, float *to)
{
    int64_t i = 0;
    for (; i + RUN <= n; i += RUN)
        *(run_u *)(to + i) = run_load(from + i);
    if (i < n)
        *(run_u *)(to + i) = run_load_part(from + i, n - i);
}

static void copy_image(const struct ew_conv_shape *s, const struct layout *l, const float *x,
                       float *to)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    const int64_t skip = max_i64(-w->pad, 0), pad = max_i64(w->pad, 0);
    const int64_t n = (w->in - skip) * s->cin;
    for (int64_t y = 0; y < h->in; y++) {
        if (y + h->pad < 0 || y + h->pad >= l->lines)
            continue;
        float *line = to + (y + h->pad) * l->line + l->lead + pad * s->cin;
        const float *from = x + (y * w->in + skip) * s->cin;
        copy_line(from, n, line);
        if (l->twin)
            copy_line(from, n, line + l->twin);
    }
}

/* Transposes [windows][cout] to [cout][windows]. */
static void transpose_gradients(const struct ew_conv_shape *s, const struct layout *l,
                                const float *dy, float *to)
{
    for (int64_t o = 0; o < s->cout; o += TRANSPOSE_NARROW)
        for (int64_t i = 0; i < l->windows; i += LANES) {
            vec r[TRANSPOSE_NARROW];
            transpose_narrow_in(dy + i * s->cout + o, s->cout, min_i64(LANES, l->windows - i),
                                min_i64(TRANSPOSE_NARROW, s->cout - o), r);
            UNROLL
            for (int j = 0; j < TRANSPOSE_NARROW; j++)
                store(to + (o + j) * l->transposed + i, r[j]);
        }
}

static void run_image(const struct ew_conv_pool *c, const struct layout *l, int64_t image,
                      float *scratch, float *partial)
{
    const struct ew_conv_shape *s = &c->shape;
    float *transposed = scratch + l->lines * l->line;
    float *listed = transposed + round_up(s->cout, TRANSPOSE_NARROW) * l->transposed;
    struct list list = {.g = listed, .at = (int32_t *)(listed + l->transposed + LANES)};
    copy_image(s, l, c->x + image * s->axis[1].in * s->axis[2].in * s->cin, scratch);
    transpose_gradients(s, l, c->dy + image * l->windows * s->cout, transposed);
    for (int64_t o = 0; o < s->cout; o++) {
        const uint8_t *argmax = c->argmax + (image * s->cout + o) * l->windows;
        list_windows(l, argmax, transposed + o * l->transposed, c->offsets, &list);
        sum_output(l, &list, scratch, s->axis[1].taps, partial + o * l->output);
        sum_list(&list, partial + l->bias + o * LANES);
    }
}

void EW_K(conv_pool_grad_run)(const struct ew_conv_pool *c, int64_t begin, int64_t end,
                              void *scratch)
{
    const struct layout l = layout_of(&c->shape);
    const int64_t batch = c->shape.batch, tiles = EW_K(conv_pool_grad_tiles)(&c->shape);
    clear(scratch, l.lines * l.line);
    for (int64_t tile = begin; tile < end; tile++) {
        float *partial = c->partial + tile * l.tile;
        clear(partial, l.tile);
        for (int64_t i = batch * tile / tiles; i < batch * (tile + 1) / tiles; i++)
            run_image(c, &l, i, scratch, partial);
    }
}

/* ---- Partial sums ---- */

#define SUM_OUTPUTS 16 /* output channels of a tile of `sum` */

int64_t EW_K(conv_pool_sum_tiles)(const struct ew_conv_shape *s)
{
    return div_up(s->cout, SUM_OUTPUTS);
}

/* to[0, n) (+)= partial sums [from, from + n) of all tiles. */
static void add_tiles(const struct ew_conv_pool *c, const struct layout *l, int64_t from, int64_t n,
                      float *to, bool add)
{
    const int64_t tiles = EW_K(conv_pool_grad_tiles)(&c->shape);
    for (int64_t i = 0; i < n; i += LANES) {
        vec sum = add ? load_n(to + i, n - i) : (vec){0};
        for (int64_t t = 0; t < tiles; t++)
            sum += load_n(c->partial + t * l->tile + from + i, n - i);
        store_n(to + i, sum, n - i);
    }
}

void EW_K(conv_pool_sum)(const struct ew_conv_pool *c, int64_t begin, int64_t end)
{
    const struct layout l = layout_of(&c->shape);
    const int64_t taps = c->shape.axis[1].taps, first = begin * SUM_OUTPUTS;
    const int64_t last = min_i64(end * SUM_OUTPUTS, c->shape.cout);
    for (int64_t row = first * taps; row < last * taps; row++)
        add_tiles(c, &l, row * l.vectors * RUN, l.run, c->dw + row * l.run, c->add_dw);
    for (int64_t o = first; c->db && o < last; o++) {
        float lanes[LANES];
        add_tiles(c, &l, l.bias + o * LANES, LANES, lanes, false);
        float sum = c->add_db ? c->db[o] : 0;
        for (int i = 0; i < LANES; i++)
            sum += lanes[i];
        c->db[o] = sum;
    }
}
