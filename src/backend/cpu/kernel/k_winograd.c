/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's F(4x4, 3x3) (Lavin and Gray, "Fast algorithms for convolutional neural networks",
 * 2015): 36 products for 16 outputs of a 3x3 convolution, where the direct way takes 144.
 *
 *   input 6x6 --B'dB--> 36 x [tiles][C]  --36 matrix products--> 36 x [tiles][O] --A'mA--> 4x4
 *
 * A work tile is BLOCK image tiles: their transformed inputs V lie in panels of the micro-kernel,
 * as many of the 36 side by side in a panel's rows as fit into KC columns; products M are kept for
 * SLICE outputs at a time.  With 64 channels V and M are 260 KiB each and stay in L2; the weights
 * of one of the 36 products are streamed once for each BLOCK.
 *
 * The transforms multiply by up to 5 and 8 and add, so errors are larger than the direct way's:
 * tests/backend/test_kernel_conv.c states and checks the bound. */
#include <math.h>

#include "backend/cpu/kernel/act.h"
#include "backend/cpu/kernel/micro.h"
#include "backend/cpu/kernel/turn.h"

#define POINTS 36
#define PANELS (28 / MR) /* of image tiles in a work tile */
#define BLOCK  (PANELS * MR)
#define SLICE  (2 * NR)

struct wino {
    int64_t cin, cout, high, wide; /* tiles in an image */
    int64_t tiles;                 /* in all images */
    int64_t blocks, block;         /* work tiles along the tiles, and their size */
    int64_t splits, split;         /* work tiles along the outputs, and their size */
    int64_t column;                /* columns of a panel that one product takes */
    int64_t side;                  /* products side by side in a panel */
    int64_t chunks;                /* panels for one product, where one does not suffice */
};

static void init(struct wino *w, const struct ew_conv_shape *s)
{
    w->cin = s->cin;
    w->cout = s->cout;
    w->high = div_up(s->axis[1].out, 4);
    w->wide = div_up(s->axis[2].out, 4);
    w->tiles = s->batch * w->high * w->wide;
    w->blocks = div_up(w->tiles, BLOCK);
    w->block = w->blocks ? div_up(w->tiles, w->blocks) : 0;
    /* Few tiles: split over outputs instead, though each part transforms the input anew. */
    w->splits = w->blocks >= 4 ? 1 : min_i64(4, div_up(w->cout, 2 * SLICE));
    w->split = div_up(div_up(w->cout, w->splits), SLICE) * SLICE;
    w->splits = div_up(w->cout, w->split);
    w->column = min_i64(div_up(w->cin, LANES) * LANES, KC);
    w->side = KC / w->column;
    w->chunks = div_up(w->cin, KC);
}

bool EW_K(winograd_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    bool fits = s->groups == 1 && a[0].in == 1 && a[0].out == 1 && a[0].taps == 1 && a[0].pad == 0;
    for (int i = 1; i < 3; i++)
        fits = fits && a[i].taps == 3 && a[i].stride == 1 && a[i].dilation == 1;
    return fits;
}

/* ---- Weights: G g G', packed as [36][block of NR outputs][C][NR] like core.h's ---- */

size_t EW_K(winograd_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(POINTS * s->cin * packed_width(s->cout));
}

INLINE void filter_line(const vec g[3], vec out[6])
{
    const vec even = g[0] + g[2], far = g[0] * (1.0f / 24.0f) + g[2] * (1.0f / 6.0f);
    out[0] = g[0] * 0.25f;
    out[1] = (even + g[1]) * (-1.0f / 6.0f);
    out[2] = (even - g[1]) * (-1.0f / 6.0f);
    out[3] = far + g[1] * (1.0f / 12.0f);
    out[4] = far - g[1] * (1.0f / 12.0f);
    out[5] = g[2];
}

/* g: [3][3] vectors, `step` floats apart; the 36 go to out, `size` floats apart. */
static void filter_points(const float *g, int64_t step, float *out, int64_t size, int64_t width)
{
    vec t[3][6];
    UNROLL
    for (int i = 0; i < 3; i++) {
        const vec line[3] = {load(g + 3 * i * step), load(g + (3 * i + 1) * step),
                             load(g + (3 * i + 2) * step)};
        filter_line(line, t[i]);
    }
    UNROLL
    for (int j = 0; j < 6; j++) {
        const vec line[3] = {t[0][j], t[1][j], t[2][j]};
        vec column[6];
        filter_line(line, column);
        UNROLL
        for (int i = 0; i < 6; i++)
            store_n(out + (i * 6 + j) * size, column[i], width);
    }
}

/* Distance between the weights of two products. */
static int64_t product_size(const struct ew_conv_shape *s)
{
    return s->cin * packed_width(s->cout);
}

/* A tile is a block of NR outputs. */
int64_t EW_K(winograd_pack_tiles)(const struct ew_conv_shape *s)
{
    return div_up(s->cout, NR);
}

/* What LANES input channels from c on and LANES outputs from o on take, as [9][LANES of c][LANES
 * of o]; zeros in place of what is missing. */
static void filter_square(const struct ew_conv_shape *s, const float *w, bool flip, int64_t c,
                          int64_t o, float out[9 * LANES * LANES])
{
    const int64_t cin = s->cin, cout = s->cout;
    for (int t = 0; t < 9; t++, out += LANES * LANES) {
        const int64_t n = min_i64(LANES, cin - c);
        vec line[LANES];
        if (flip) /* outputs lie together */
            for (int64_t i = 0; i < n; i++)
                line[i] = load_n(w + ((c + i) * 9 + 8 - t) * cout + o, cout - o);
        else
            turn_load(w + (o * 9 + t) * cin + c, 9 * cin, cout - o, n, line);
        for (int64_t i = 0; i < n; i++)
            store(out + i * LANES, line[i]);
    }
}

void EW_K(winograd_pack)(const struct ew_conv_shape *s, const float *w, bool flip, float *packed,
                         int64_t begin, int64_t end)
{
    const int64_t whole = packed_width(s->cout), cin = s->cin, last = min_i64(end * NR, whole);
    for (int64_t o = begin * NR; o < last; o += LANES) {
        const int64_t block = o / NR * NR, width = min_i64(NR, whole - block);
        for (int64_t c = 0; c < cin; c += LANES) {
            float g[9 * LANES * LANES];
            filter_square(s, w, flip, c, o, g);
            for (int64_t i = 0; i < min_i64(LANES, cin - c); i++)
                filter_points(g + i * LANES, LANES * LANES,
                              packed + block * cin + (c + i) * width + o - block, product_size(s),
                              width - (o - block));
        }
    }
}

/* ---- Input: B' d B ---- */

INLINE void input_line(const vec d[6], vec out[6])
{
    const vec a = d[4] - 4.0f * d[2], b = d[3] - 4.0f * d[1];
    const vec e = d[4] - d[2], f = 2.0f * (d[3] - d[1]);
    out[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
    out[1] = a + b;
    out[2] = a - b;
    out[3] = e + f;
    out[4] = e - f;
    out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

struct job {
    const struct ew_conv *conv;
    struct wino w;
    int64_t first, count;  /* image tiles of this work tile */
    int64_t rows;          /* of them in a panel */
    int64_t chunk;         /* floats from one chunk of KC channels to the next */
    int64_t point[POINTS]; /* where the panels of a product begin in v */
    float *v, *m, *zero;
    const float *pixel[POINTS]; /* of one tile; outside the image: zeros */
};

static void begin_block(struct job *j, int64_t block)
{
    const struct wino *w = &j->w;
    j->first = block * w->block;
    j->count = min_i64(w->block, w->tiles - j->first);
    const int64_t panels = div_up(j->count, MR);
    j->rows = div_up(j->count, panels);
    j->chunk = panels * MR * KS;
    for (int64_t p = 0; p < POINTS; p++)
        j->point[p] = w->chunks > 1 ? p * w->chunks * j->chunk
                                    : p / w->side * j->chunk + p % w->side * w->column;
}

/* Where a tile's channels from c on lie in v, beside point[]. */
INLINE int64_t v_at(const struct job *j, int64_t tile, int64_t c)
{
    return c / KC * j->chunk + c % KC + (tile / j->rows * MR + tile % j->rows) * KS;
}

static void find_pixels(struct job *j, int64_t tile)
{
    const struct ew_conv_axis *a = j->conv->shape.axis;
    const int64_t x0 = tile % j->w.wide * 4 - a[2].pad;
    const int64_t y0 = tile / j->w.wide % j->w.high * 4 - a[1].pad;
    const float *image = j->conv->x + tile / j->w.wide / j->w.high * a[1].in * a[2].in * j->w.cin;
    for (int64_t i = 0; i < POINTS; i++) {
        const int64_t y = y0 + i / 6, x = x0 + i % 6;
        const bool inside = y >= 0 && y < a[1].in && x >= 0 && x < a[2].in;
        j->pixel[i] = inside ? image + (y * a[2].in + x) * j->w.cin : j->zero;
    }
}

/* LANES channels from c on; n of them exist. */
INLINE void input_vector(const struct job *j, float *v, int64_t c, int64_t n)
{
    vec t[6][6];
    UNROLL
    for (int x = 0; x < 6; x++) {
        vec d[6], column[6];
        UNROLL
        for (int y = 0; y < 6; y++) {
            const float *p = j->pixel[y * 6 + x] + c;
            d[y] = load_n(p, n);
        }
        input_line(d, column);
        UNROLL
        for (int y = 0; y < 6; y++)
            t[y][x] = column[y];
    }
    UNROLL
    for (int y = 0; y < 6; y++) {
        vec row[6];
        input_line(t[y], row);
        UNROLL
        for (int x = 0; x < 6; x++)
            store(v + j->point[y * 6 + x], row[x]);
    }
}

static void transform_inputs(struct job *j)
{
    for (int64_t tile = 0; tile < j->count; tile++) {
        find_pixels(j, j->first + tile);
        int64_t c = 0;
        for (; c + LANES <= j->w.cin; c += LANES)
            input_vector(j, j->v + v_at(j, tile, c), c, LANES);
        if (c < j->w.cin)
            input_vector(j, j->v + v_at(j, tile, c), c, j->w.cin - c);
    }
}

/* ---- Products ---- */

/* Outputs [o, o + width) of all 36: m is [36][BLOCK][SLICE]. */
static void multiply(const struct job *j, int64_t o, int64_t width)
{
    const struct wino *w = &j->w;
    const int64_t whole = packed_width(w->cout);
    const int64_t rows = j->rows;
    int64_t row[MR];
    for (int64_t r = 0; r < MR; r++)
        row[r] = r * SLICE;
    for (int p = 0; p < POINTS; p++) {
        const float *weights = j->conv->w + p * product_size(&j->conv->shape);
        for (int64_t k = 0; k < w->cin; k += KC) {
            for (int64_t tile = 0; tile < j->count; tile += rows) {
                for (int64_t b = 0; b < width; b += NR) {
                    const int64_t wide = min_i64(NR, whole - o - b);
                    float *m = j->m + (p * BLOCK + tile) * SLICE + b;
                    const struct micro micro = {.a = j->v + j->point[p] + v_at(j, tile, k),
                                                .w = weights + (o + b) * w->cin + k * wide,
                                                .kc = min_i64(KC, w->cin - k),
                                                .from = k ? m : NULL,
                                                .c = m,
                                                .row = row,
                                                .width = wide,
                                                .lo = -INFINITY,
                                                .hi = INFINITY};
                    EW_K(micro)(&micro, (int)min_i64(rows, j->count - tile));
                }
            }
        }
    }
}

/* ---- Output: A' m A, and the epilogue ---- */

INLINE void output_line(const vec m[6], vec out[4])
{
    const vec s = m[1] + m[2], d = m[1] - m[2], t = m[3] + m[4], e = m[3] - m[4];
    out[0] = m[0] + s + t;
    out[1] = d + 2.0f * e;
    out[2] = s + 4.0f * t;
    out[3] = d + 8.0f * e + m[5];
}

INLINE void output_points(const float *m, vec out[4][4])
{
    vec t[6][4];
    UNROLL
    for (int y = 0; y < 6; y++) {
        vec line[6];
        UNROLL
        for (int x = 0; x < 6; x++)
            line[x] = load(m + (y * 6 + x) * (BLOCK * SLICE));
        output_line(line, t[y]);
    }
    UNROLL
    for (int x = 0; x < 4; x++) {
        const vec line[6] = {t[0][x], t[1][x], t[2][x], t[3][x], t[4][x], t[5][x]};
        vec column[4];
        output_line(line, column);
        UNROLL
        for (int y = 0; y < 4; y++)
            out[y][x] = column[y];
    }
}

static void output_tile(const struct job *j, int64_t tile, int64_t o, int64_t width)
{
    const struct ew_conv *c = j->conv;
    const struct ew_conv_axis *a = c->shape.axis;
    const int64_t at = j->first + tile, n = at / j->w.wide / j->w.high;
    const int64_t y0 = at / j->w.wide % j->w.high * 4, x0 = at % j->w.wide * 4;
    const int64_t high = min_i64(4, a[1].out - y0), wide = min_i64(4, a[2].out - x0);
    for (int64_t i = 0; i < width; i += LANES) {
        const int64_t part = width - i;
        const vec b = bias_at(&c->end, o + i, part);
        vec out[4][4];
        output_points(j->m + tile * SLICE + i, out);
        for (int64_t y = 0; y < high; y++)
            for (int64_t x = 0; x < wide; x++) {
                const int64_t pixel = (n * a[1].out + y0 + y) * a[2].out + x0 + x;
                put(&c->end, c->y, pixel * j->w.cout + o + i, out[y][x] + b, part);
            }
    }
}

/* ---- Work tiles ---- */

int64_t EW_K(winograd_tiles)(const struct ew_conv_shape *s)
{
    struct wino w;
    init(&w, s);
    return w.blocks * w.splits;
}

static int64_t v_size(const struct wino *w)
{
    const int64_t slots = w->chunks > 1 ? POINTS * w->chunks : div_up(POINTS, w->side);
    return slots * PANELS * MR * KS;
}

size_t EW_K(winograd_scratch)(const struct ew_conv_shape *s)
{
    struct wino w;
    init(&w, s);
    const int64_t zeros = div_up(w.cin, LANES) * LANES;
    return (size_t)(v_size(&w) + POINTS * BLOCK * SLICE + zeros) * sizeof(float);
}

void EW_K(winograd_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct job j = {.conv = c, .v = scratch};
    init(&j.w, &c->shape);
    j.m = j.v + v_size(&j.w);
    j.zero = j.m + POINTS * BLOCK * SLICE;
    clear(j.zero, j.w.cin);
    int64_t last = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t block = i / j.w.splits, from = i % j.w.splits * j.w.split;
        if (block != last) { /* else the tile before has left what is needed */
            begin_block(&j, block);
            transform_inputs(&j);
        }
        last = block;
        for (int64_t o = from; o < min_i64(from + j.w.split, j.w.cout); o += SLICE) {
            const int64_t width = min_i64(SLICE, j.w.cout - o);
            multiply(&j, o, width);
            for (int64_t tile = 0; tile < j.count; tile++)
                output_tile(&j, tile, o, width);
        }
    }
}
