/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution with pixels in the lanes: few input and output channels, stride 1.
 *
 * If a vector of output channels would be partly empty (6 of 8), lanes are neighbouring pixels of a
 * row instead, and weights are broadcast.  A tile is some rows of outputs of one image; its inputs
 * are copied to scratch as padded planes:
 *
 *   planes: [cin][lines][line]; then sums of a row, [cout][width]; then the row, [out][cout] */
#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/gemm/micro.h"

/* Outputs at once, times VECTORS: accumulators that fit beside VECTORS inputs. */
#define OUTPUTS 6
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define VECTORS 4
#else
#define VECTORS 2
#endif

/* Most input channels; with more, this is a transpose of the whole input. */
#define FEW_INPUTS  4
#define FULL        9          /* tenths: bound for the lane utilisation of GEMM relative to this */
#define PLANE_BYTES (16 << 10) /* bytes of all planes of a tile, about: half of L1 */
#define MIN_TILES   4          /* fewest tiles of an image */

struct pixel_lanes {
    int64_t line, plane; /* floats */
    int64_t rows, lines; /* rows of outputs and input lines in a tile */
    int64_t row_tiles;   /* row tiles of an image */
    int64_t width;       /* floats of a row of sums */
    int64_t cout, cin;   /* as in the shape */
    int64_t taps_y, taps_x;
};

static int64_t whole_vectors(int64_t n)
{
    return div_up(n, LANES) * LANES;
}

static struct pixel_lanes pixel_lanes_of(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    struct pixel_lanes p = {.cin = s->cin, .cout = s->cout, .taps_y = h->taps, .taps_x = w->taps};
    p.width = whole_vectors(w->out);
    /* Whole vectors are read from any tap on, and written beyond the padding. */
    p.line = whole_vectors(max_i64(p.width + w->taps - 1, w->pad + whole_vectors(w->in)));
    const int64_t fit = PLANE_BYTES / (int64_t)sizeof(float) / (p.line * s->cin) - h->taps + 1;
    p.row_tiles = max_i64(div_up(h->out, max_i64(fit, 1)), min_i64(h->out, MIN_TILES));
    p.rows = div_up(h->out, p.row_tiles);
    p.row_tiles = div_up(h->out, p.rows);
    p.lines = p.rows + h->taps - 1;
    p.plane = p.lines * p.line;
    return p;
}

bool EW_K(pixel_lanes_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    bool fits = s->groups == 1 && s->batch > 0 && s->cin <= FEW_INPUTS && a[0].in == 1 &&
                a[0].out == 1 && a[0].taps == 1 && a[0].pad == 0;
    for (int i = 1; i < 3; i++)
        fits = fits && a[i].stride == 1 && a[i].dilation == 1 && a[i].pad >= 0 && a[i].taps > 1 &&
               a[i].out > 0 && a[i].in > 0;
    return fits && 10 * s->cout * whole_vectors(a[2].out) <=
                       FULL * packed_width(s->cout) * (int64_t)a[2].out;
}

/* ---- Weights: [chunk of OUTPUTS][input][line][column][outputs of the chunk] ---- */

size_t EW_K(pixel_lanes_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)s->cout * (size_t)s->cin * (size_t)s->axis[1].taps * (size_t)s->axis[2].taps;
}

void EW_K(pixel_lanes_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const int64_t taps = (int64_t)s->axis[1].taps * s->axis[2].taps, filter = taps * s->cin;
    for (int64_t o = 0; o < s->cout; o += OUTPUTS)
        for (int64_t c = 0; c < s->cin; c++)
            for (int64_t t = 0; t < taps; t++)
                for (int64_t i = 0; i < min_i64(OUTPUTS, s->cout - o); i++)
                    *packed++ = w[(o + i) * filter + t * s->cin + c];
}

/* ---- Planes ---- */

/* Splits n pixels of one line into one line of every plane. */
static void split_line(const struct pixel_lanes *p, const float *x, int64_t n, float *to)
{
    if (p->cin == 1) {
        copy(to, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i += LANES) {
        vec r[TRANSPOSE_NARROW];
        transpose_narrow_in(x + i * p->cin, p->cin, min_i64(LANES, n - i), p->cin, r);
        UNROLL
        for (int c = 0; c < FEW_INPUTS; c++)
            if (c < p->cin)
                store(to + c * p->plane + i, r[c]);
    }
}

/* Copies the input lines of the tile whose first output row is `first`. */
static void fill_planes(const struct ew_conv_shape *s, const struct pixel_lanes *p, const float *x,
                        int64_t first, float *to)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    for (int64_t i = 0; i < p->lines; i++, to += p->line) {
        const int64_t y = first - h->pad + i;
        const bool inside = y >= 0 && y < h->in;
        if (inside)
            split_line(p, x + y * w->in * s->cin, w->in, to + w->pad);
        const int64_t behind = inside ? w->pad + w->in : w->pad;
        for (int64_t c = 0; c < s->cin; c++) {
            clear(to + c * p->plane, w->pad);
            clear(to + c * p->plane + behind, p->line - behind);
        }
    }
}

/* ---- Sums ---- */

/* Some vectors of one row of outputs. */
struct part {
    const struct pixel_lanes *p;
    const float *x, *w; /* x: at tap 0; w: of the chunk */
    const float *bias;  /* of the chunk; NULL: none */
    float *sums;        /* of the chunk's first output */
    float lo, hi;
};

INLINE void sum_part(const struct part *b, const int vectors, const int outputs)
{
    const struct pixel_lanes *p = b->p;
    const float *w = b->w;
    vec sum[OUTPUTS][VECTORS];
    UNROLL
    for (int o = 0; o < outputs; o++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        sum[o][v] = b->bias ? splat(b->bias[o]) : (vec){0};
    for (int64_t c = 0; c < p->cin; c++)
        for (int64_t y = 0; y < p->taps_y; y++) {
            const float *x = b->x + c * p->plane + y * p->line;
            for (int64_t t = p->taps_x; t > 0; t--, x++, w += outputs) {
                vec in[VECTORS];
                UNROLL
                for (int v = 0; v < vectors; v++)
                    in[v] = load(x + v * LANES);
                UNROLL
                for (int o = 0; o < outputs; o++) {
                    const vec tap = splat(w[o]);
                    UNROLL
                    for (int v = 0; v < vectors; v++)
                        sum[o][v] += in[v] * tap;
                }
            }
        }
    const vec lo = splat(b->lo), hi = splat(b->hi);
    UNROLL
    for (int o = 0; o < outputs; o++)
        UNROLL
    for (int v = 0; v < vectors; v++)
        store(b->sums + o * p->width + v * LANES, vmin(vmax(sum[o][v], lo), hi));
}

#define SUM_CASE(vectors, n)                                                                       \
    case n:                                                                                        \
        sum_part(b, vectors, n);                                                                   \
        break;

#define SUM(vectors)                                                                               \
    static void sum_##vectors(const struct part *b, int64_t outputs)                               \
    {                                                                                              \
        switch (outputs) {                                                                         \
            SUM_CASE(vectors, 1)                                                                   \
            SUM_CASE(vectors, 2)                                                                   \
            SUM_CASE(vectors, 3)                                                                   \
            SUM_CASE(vectors, 4)                                                                   \
            SUM_CASE(vectors, 5)                                                                   \
        default:                                                                                   \
            sum_part(b, vectors, OUTPUTS);                                                         \
        }                                                                                          \
    }

SUM(1)
SUM(2)
#if VECTORS == 4
SUM(4)
#else
#define sum_4 sum_2
#endif

static void sum_row(struct part *b, int64_t outputs)
{
    int64_t left = b->p->width / LANES;
    for (; left >= VECTORS; left -= VECTORS, b->x += VECTORS * LANES, b->sums += VECTORS * LANES)
        sum_4(b, outputs);
    for (; left >= 2; left -= 2, b->x += 2 * LANES, b->sums += 2 * LANES)
        sum_2(b, outputs);
    if (left > 0)
        sum_1(b, outputs);
}

/* ---- Rows ---- */

/* Transposes LANES pixels of n outputs; `whole`: may write a whole vector for each pixel. */
INLINE void transpose_pixels(const struct pixel_lanes *p, const float *sums, int64_t n,
                             int64_t pixels, bool whole, float *to)
{
    vec r[TRANSPOSE_NARROW];
    UNROLL
    for (int i = 0; i < TRANSPOSE_NARROW; i++)
        r[i] = i < n ? load(sums + i * p->width) : (vec){0};
    if (!whole || HALF != 0) {
        transpose_narrow_out(r, pixels, n, to, p->cout);
        return;
    }
    transpose_squares(r);
    UNROLL
    for (int i = 0; i < TRANSPOSE_NARROW; i++)
        store(to + i * p->cout, r[i]);
}

/* Transposes the sums of a row, [cout][width], to [out][cout].  Pixels of at most a vector are
 * stored as whole vectors, whose excess the next pixel overwrites, except for the last ones of the
 * row. */
static void transpose_row(const struct pixel_lanes *p, int64_t out, const float *sums, float *row)
{
    const bool few = p->cout <= TRANSPOSE_NARROW;
    for (int64_t o = 0; o < p->cout; o += TRANSPOSE_NARROW) {
        const int64_t n = min_i64(TRANSPOSE_NARROW, p->cout - o);
        const float *from = sums + o * p->width;
        for (int64_t at = 0; at < out; at += LANES)
            transpose_pixels(p, from + at, n, min_i64(LANES, out - at),
                             few && (out - at - LANES) * p->cout >= LANES, row + at * p->cout + o);
    }
}

int64_t EW_K(pixel_lanes_tiles)(const struct ew_conv_shape *s)
{
    return s->batch * pixel_lanes_of(s).row_tiles;
}

size_t EW_K(pixel_lanes_scratch)(const struct ew_conv_shape *s)
{
    const struct pixel_lanes p = pixel_lanes_of(s);
    return (size_t)(p.cin * p.plane + p.cout * p.width + p.cout * s->axis[2].out + LANES) *
           sizeof(float);
}

/* Computes a row of outputs: its sums, then the rest of the epilogue, in place if possible. */
static void run_row(const struct ew_conv *c, const struct pixel_lanes *p, const float *x, int64_t y,
                    float *sums)
{
    const struct ew_epilogue *e = &c->end;
    const int64_t size = p->cin * p->taps_y * p->taps_x, out = c->shape.axis[2].out;
    const int64_t n = out * p->cout;
    const bool clip = e->act == EW_ACT_CLIP, relu = e->act == EW_ACT_RELU;
    const bool plain = (clip || relu || e->act == EW_ACT_NONE) && !e->add && !e->mask;
    for (int64_t o = 0; o < p->cout; o += OUTPUTS) {
        struct part b = {.p = p,
                         .x = x,
                         .w = c->w + o * size,
                         .bias = e->bias ? e->bias + o : NULL,
                         .sums = sums + o * p->width,
                         .lo = plain && clip   ? e->lo
                               : plain && relu ? 0.0f
                                               : -INFINITY,
                         .hi = plain && clip ? e->hi : INFINITY};
        sum_row(&b, min_i64(OUTPUTS, p->cout - o));
    }
    float *row = sums + p->cout * p->width;
    transpose_row(p, out, sums, plain ? c->y + y : row);
    for (int64_t i = 0; !plain && i < n; i += LANES)
        put(e, c->y, y + i, load(row + i), n - i);
}

static void run_tile(const struct ew_conv *c, const struct pixel_lanes *p, int64_t tile,
                     float *planes)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    const int64_t image = tile / p->row_tiles, first = tile % p->row_tiles * p->rows;
    fill_planes(s, p, c->x + image * h->in * w->in * s->cin, first, planes);
    for (int64_t y = first; y < min_i64(first + p->rows, h->out); y++)
        run_row(c, p, planes + (y - first) * p->line,
                (image * h->out + y) * (int64_t)w->out * s->cout, planes + p->cin * p->plane);
}

void EW_K(pixel_lanes_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    const struct pixel_lanes p = pixel_lanes_of(&c->shape);
    for (int64_t i = begin; i < end; i++)
        run_tile(c, &p, i, scratch);
}
