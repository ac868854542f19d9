/* SPDX-License-Identifier: Apache-2.0 */
/* Exact 8-bit Winograd F(4x4, 3x3): 36 products of int16 for 16 outputs instead of 144 of bytes.
 * VNNI computes half as many int16 as byte products at once, so the gain is a factor of two;
 * instruction sets without byte products gain a factor of four.
 *
 *   bytes 6x6 --B'dB--> 36 x [tiles][C] --36 matrix products--> 36 x [tiles][O] --A'mA--> 4x4 sums
 *
 * The points are 0, 2, 1, -1, -1/2 and infinity; G is scaled by 30 to be integer:
 *
 *        2  3 -4 -3  2  0         15  0  0         1  0  0  0
 *        0 -1 -2  1  2  0          1  2  4         1  2  4  8
 *   B' = 0 -2 -5 -1  2  0    G =  -5 -5 -5    A =  1  1  1  1
 *        0  2  1 -5  2  0          5 -5  5         1 -1  1 -1
 *        0  2 -1 -2  1  0         -4  2 -1         8 -4  2 -1
 *        0  2  3 -4 -3  2          0  0 15         0  0  0  1
 *
 * Two points are even, two odd and two have even denominators, which keeps the power of two in the
 * products of their differences, and so in 30, at one; the usual points (2 and -2 instead of 2 and
 * -1/2) give three.  Both transforms are exact in 16 bits: at most 14 * 14 * 255 / 2 and 15 * 15 *
 * 128.  Sums are computed modulo 2^32 and may wrap.  The result is 900 times the direct sum, and
 * 900 = 4 * 225, where 225 has an inverse modulo 2^32.  So the sum is known modulo 2^30, which is
 * exact up to MOST_CHANNELS. */
#include "backend/cpu/kernel/int8/int8_gemm.h"

/* No gain with NEON's dot product, whose byte products are four times as fast as those of int16. */
#if !defined(EW_ISA_IS_neondot)

#define POINTS        6
#define PRODUCTS      (POINTS * POINTS)
#define OUT           4
#define INVERSE       2271560481u /* inverse of 225 modulo 2^32 */
#define MOST_CHANNELS 1792        /* 255 * 128 * 9 * channels < 2^29 */
#define FEWEST        16          /* fewest channels */
#define WORK_BYTES    (640 << 10) /* bytes of transforms that a work tile keeps in L2 */
#define MOST_PANELS   4
#define MIN_TILES     8 /* smallest number of work tiles for which outputs are not split */

struct wino {
    int64_t cin, words, cout, blocks; /* words: pairs of channels; blocks of WIDE outputs */
    int64_t high, wide, tiles;        /* tiles of an image; all tiles */
    int64_t row;                      /* bytes of one image tile in one product */
    int64_t most;                     /* most image tiles of a work tile */
    int64_t parts, part;              /* work tiles along the tiles, and their size */
    int64_t splits, split;            /* work tiles along the blocks, and their size */
};

static void init(struct wino *w, const struct ew_conv_shape *s)
{
    w->cin = s->cin;
    w->words = div_up(s->cin, 2);
    w->cout = s->cout;
    w->blocks = div_up(s->cout, WIDE);
    w->high = div_up(s->axis[1].out, OUT);
    w->wide = div_up(s->axis[2].out, OUT);
    w->tiles = s->batch * w->high * w->wide;
    w->row = div_up(div_up(w->cin, WIDE) * WIDE * (int64_t)sizeof(int16_t), 64) * 64;
    w->row += w->row % 512 == 0 ? 64 : 0; /* padded, so that rows do not share cache sets */
    const int64_t tile = PRODUCTS * (w->row + WIDE * (int64_t)sizeof(int32_t));
    w->most = min_i64(max_i64(WORK_BYTES / tile, QMR), MOST_PANELS * QMR);
    w->parts = div_up(w->tiles, w->most);
    w->part = w->parts ? div_up(w->tiles, w->parts) : 0;
    /* Few tiles: divide the outputs too, although each part transforms the input again. */
    w->splits = min_i64(div_up(MIN_TILES, max_i64(w->parts, 1)), w->blocks);
    w->split = div_up(w->blocks, w->splits);
    w->splits = div_up(w->blocks, w->split);
}

/* ---- Cost estimates ---- */

bool EW_K(int8_winograd_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    bool fits = s->groups == 1 && a[0].in == 1 && a[0].out == 1 && a[0].taps == 1 && a[0].pad == 0;
    for (int i = 1; i < 3; i++)
        fits = fits && a[i].stride == 1 && a[i].dilation == 1 && a[i].taps == 3 && a[i].out > 0;
    return fits && s->cin >= FEWEST && s->cout >= FEWEST && s->cin <= MOST_CHANNELS;
}

/* Estimated cycles: a vector product takes one, with AVX2 0.625 (measured on a Zen 4, also for
 * bytes with AVX-VNNI); reading weights is added, at a higher rate if they stay in L2. */
#if defined(EW_ISA_IS_avx2)
#define PRODUCT_CYCLES 0.625
#else
#define PRODUCT_CYCLES 1.0
#endif

static double product_cost(double rows, double words)
{
    const double bytes = words * sizeof(int32_t);
    return rows * words / LANES * PRODUCT_CYCLES + bytes / (bytes < 768e3 ? 32 : 10);
}

double EW_K(int8_winograd_cycles)(const struct ew_conv_shape *s)
{
    struct wino w;
    init(&w, s);
    const double columns = (double)w.blocks * WIDE, tiles = (double)w.tiles;
    const double transforms =
        tiles * ((double)w.cin / WIDE * 250 + (double)w.blocks * 500); /* measured on a Zen 4 */
    return product_cost(tiles, PRODUCTS * (double)w.words * columns) + transforms;
}

double EW_K(int8_gemm_cycles)(const struct ew_conv_shape *s)
{
    const double columns = (double)div_up(s->cout, WIDE) * WIDE;
    const double pixels = (double)s->batch * s->axis[1].out * s->axis[2].out;
    return product_cost(pixels, 9.0 * s->cin / WORD * columns);
}

bool EW_K(int8_winograd_pays)(const struct ew_conv_shape *s)
{
    return EW_K(int8_winograd_cycles)(s) < EW_K(int8_gemm_cycles)(s);
}

/* ---- Weights: [block of WIDE outputs][products][words][WIDE], after ratio and bias ---- */

static int64_t columns_of(const struct wino *w)
{
    return w->blocks * WIDE;
}

size_t EW_K(int8_winograd_pack_size)(const struct ew_conv_shape *s)
{
    struct wino w;
    init(&w, s);
    return (size_t)(columns_of(&w) * (2 + PRODUCTS * w.words)) * sizeof(int32_t);
}

int64_t EW_K(int8_winograd_pack_tiles)(const struct ew_conv_shape *s)
{
    return div_up(s->cout, WIDE);
}

/* G g of one line. */
INLINE void filter_line(const int g[3], int out[POINTS])
{
    out[0] = 15 * g[0];
    out[1] = g[0] + 2 * g[1] + 4 * g[2];
    out[2] = -5 * (g[0] + g[1] + g[2]);
    out[3] = 5 * (g[0] - g[1] + g[2]);
    out[4] = 2 * g[1] - 4 * g[0] - g[2];
    out[5] = 15 * g[2];
}

/* Index of element j of a lane's word among the int16 of a vector: WORD_AT for pairs. */
INLINE int pair_at(int lane, int j)
{
#if WORD_BYTES
    return lane * 2 + j;
#else
    return WORD_AT(lane, j);
#endif
}

/* Packs channel c of output o into a word of each product; returns the sum of its weights. */
static int pack_channel(const struct wino *w, const struct ew_qconv_weights *q, int64_t o,
                        int64_t c, int16_t *to)
{
    int lines[3][POINTS], sum = 0;
    for (int y = 0; y < 3; y++) {
        int g[3];
        for (int x = 0; x < 3; x++) {
            g[x] = (int8_t)(q->w[((o * 3 + y) * 3 + x) * w->cin + c] ^ q->flip);
            sum += g[x];
        }
        filter_line(g, lines[y]);
    }
    for (int x = 0; x < POINTS; x++) {
        const int g[3] = {lines[0][x], lines[1][x], lines[2][x]};
        int column[POINTS];
        filter_line(g, column);
        for (int y = 0; y < POINTS; y++)
            to[(y * POINTS + x) * w->words * WIDE * 2] = (int16_t)column[y];
    }
    return sum;
}

void EW_K(int8_winograd_pack)(const struct ew_conv_shape *s, const struct ew_qconv_weights *q,
                              void *packed, int64_t begin, int64_t end)
{
    struct wino w;
    init(&w, s);
    float *ratio = packed;
    int32_t *bias = (int32_t *)packed + columns_of(&w);
    for (int64_t b = begin; b < end; b++) {
        int32_t *words = bias + columns_of(&w) + b * PRODUCTS * w.words * WIDE;
        memset(words, 0, (size_t)(PRODUCTS * w.words * WIDE) * sizeof(*words));
        for (int i = 0; i < WIDE; i++) {
            const int v = i / LANES, lane = i % LANES;
            const int64_t o = b * WIDE + column_of(v, lane), at = b * WIDE + i;
            uint32_t sum = 0;
            for (int64_t c = 0; c < w.cin && o < w.cout; c++)
                sum += (uint32_t)pack_channel(&w, q, o, c,
                                              (int16_t *)(words + c / 2 * WIDE + v * LANES) +
                                                  pair_at(lane, (int)(c % 2)));
            const uint32_t start = o < w.cout && q->bias ? (uint32_t)q->bias[o] : 0;
            ratio[at] = o < w.cout ? q->ratio[o] : 0;
            bias[at] = (int32_t)(start - (uint32_t)q->of_x.zero * sum);
        }
    }
}

/* ---- Input: B' d B ---- */

struct job {
    const struct ew_qconv *conv;
    struct wino w;
    int64_t first, count; /* image tiles of this work tile */
    int64_t rows;         /* image tiles in a panel */
    uint8_t *v;           /* [PRODUCTS][most] rows of int16 */
    int32_t *m;           /* [PRODUCTS][most][WIDE] */
    uint8_t *zero;        /* a pixel of padding */
    const uint8_t *pixel[PRODUCTS];
};

static void find_pixels(struct job *j, int64_t tile)
{
    const struct ew_conv_axis *a = j->conv->shape->axis;
    const int64_t x0 = tile % j->w.wide * OUT - a[2].pad;
    const int64_t y0 = tile / j->w.wide % j->w.high * OUT - a[1].pad;
    const uint8_t *image = j->conv->x + tile / j->w.wide / j->w.high * a[1].in * a[2].in * j->w.cin;
    for (int64_t i = 0; i < PRODUCTS; i++) {
        const int64_t y = y0 + i / POINTS, x = x0 + i % POINTS;
        const bool inside = y >= 0 && y < a[1].in && x >= 0 && x < a[2].in;
        j->pixel[i] = inside ? image + (y * a[2].in + x) * j->w.cin : j->zero;
    }
}

/* B' d: most rows share differences of elements two apart. */
INLINE void input_line(const v16 d[POINTS], v16 out[POINTS])
{
    const v16 u = d[4] - d[2], v = d[3] - d[1], s = d[2] - d[0], r = d[5] - d[3];
    const v16 u2 = u + u, v2 = v + v, uv = u2 - v2;
    const v16 e = d[1] + d[2], f = d[2] - d[3];
    out[0] = uv - v - (s + s);
    out[1] = u2 + v;
    out[2] = u2 - v - (e + e + e);
    out[3] = uv + (f + f + f);
    out[4] = u - v2;
    out[5] = r + r - u2 - v2 - u;
}

/* Transforms n <= WIDE channels from c on. */
INLINE void input_vector(const struct job *j, uint8_t *v, int64_t c, int64_t n)
{
    const vbytes flip = j->conv->of_x.flip - (vbytes){0};
    const int64_t product = j->w.most * j->w.row;
    v16 t[POINTS][POINTS];
    UNROLL
    for (int x = 0; x < POINTS; x++) {
        v16 d[POINTS], column[POINTS];
        UNROLL
        for (int y = 0; y < POINTS; y++)
            d[y] = widen(load_bytes(j->pixel[y * POINTS + x] + c, n) ^ flip);
        input_line(d, column);
        UNROLL
        for (int y = 0; y < POINTS; y++)
            t[y][x] = column[y];
    }
    UNROLL
    for (int y = 0; y < POINTS; y++) {
        v16 row[POINTS];
        input_line(t[y], row);
        UNROLL
        for (int x = 0; x < POINTS; x++)
            memcpy(v + (y * POINTS + x) * product, &row[x], sizeof(v16));
    }
}

static void transform_inputs(struct job *j)
{
    for (int64_t tile = 0; tile < j->count; tile++) {
        uint8_t *v = j->v + tile * j->w.row;
        int64_t c = 0;
        find_pixels(j, j->first + tile);
        for (; c + WIDE <= j->w.cin; c += WIDE)
            input_vector(j, v + c * (int64_t)sizeof(int16_t), c, WIDE);
        if (c < j->w.cin)
            input_vector(j, v + c * (int64_t)sizeof(int16_t), c, j->w.cin - c);
    }
}

/* ---- Products ---- */

/* All products of one block of outputs. */
static void multiply(const struct job *j, int64_t block)
{
    const struct wino *w = &j->w;
    const int64_t size = w->words * WIDE;
    const int32_t *words =
        (const int32_t *)j->conv->packed + 2 * columns_of(w) + block * PRODUCTS * size;
    struct qmicro m = {.row_step = w->row, .words = w->words, .lines = 1, .y_step = WIDE};
    for (int64_t p = 0; p < PRODUCTS; p++)
        for (int64_t tile = 0; tile < j->count; tile += j->rows) {
            m.a = j->v + (p * w->most + tile) * w->row;
            const int32_t *const own = words + p * size;
            m.w = own;
            /* The first panel, or the first two, prefetch the next product's weights. */
            const bool first = tile == 0, alone = j->rows >= j->count;
            m.prefetch[0] = own + (first ? size : 0);
            m.prefetch[1] = own + (alone || tile == j->rows ? size : 0) + LANES;
            m.y = j->m + (p * w->most + tile) * WIDE;
            EW_K(qmicro_pairs)(&m, (int)min_i64(j->rows, j->count - tile));
        }
}

/* ---- Output: A' m A, and the epilogue ---- */

INLINE void output_line(const vuint m[POINTS], vuint out[OUT])
{
    const vuint a = m[2] + m[3], b = m[2] - m[3];
    const vuint two = m[1] + m[1], half = m[4] + m[4], four = two + two, h4 = half + half;
    out[0] = m[0] + a + m[1] + (h4 + h4);
    out[1] = b + two - h4;
    out[2] = a + four + half;
    out[3] = b + (four + four) - m[4] + m[5];
}

/* Transforms the sums of LANES outputs. */
INLINE void output_vector(const int32_t *m, int64_t product, vint bias, vint out[OUT][OUT][SIDE],
                          const int v)
{
    vuint t[POINTS][OUT];
    UNROLL
    for (int y = 0; y < POINTS; y++) {
        vuint line[POINTS];
        UNROLL
        for (int x = 0; x < POINTS; x++)
            line[x] = (vuint)load_int(m + (y * POINTS + x) * product);
        output_line(line, t[y]);
    }
    UNROLL
    for (int x = 0; x < OUT; x++) {
        vuint line[POINTS], column[OUT];
        UNROLL
        for (int y = 0; y < POINTS; y++)
            line[y] = t[y][x];
        output_line(line, column);
        UNROLL
        for (int y = 0; y < OUT; y++)
            out[y][x][v] = ((vint)(column[y] * INVERSE) >> 2) + bias;
    }
}

static void output_tile(const struct job *j, int64_t tile, int64_t block, struct qmicro *end)
{
    const struct ew_qconv *q = j->conv;
    const struct ew_conv_axis *a = q->shape->axis;
    const int64_t at = j->first + tile, image = at / j->w.wide / j->w.high;
    const int64_t y0 = at / j->w.wide % j->w.high * OUT, x0 = at % j->w.wide * OUT;
    const int64_t high = min_i64(OUT, a[1].out - y0), wide = min_i64(OUT, a[2].out - x0);
    vint sums[OUT][OUT][SIDE];
    UNROLL
    for (int v = 0; v < SIDE; v++)
        output_vector(j->m + tile * WIDE + v * LANES, j->w.most * WIDE,
                      load_int(end->bias + v * LANES), sums, v);
    for (int64_t y = 0; y < high; y++) {
        const int64_t pixel = (image * a[1].out + y0 + y) * a[2].out + x0;
        const int64_t to = pixel * j->w.cout + block * WIDE;
        end->y = q->end.to_float ? (void *)((float *)q->y + to) : (void *)((uint8_t *)q->y + to);
        end->add = q->end.add ? q->end.add + to : NULL;
        EW_K(qfinish)(end, sums[y][0], (int)wide, SIDE);
    }
}

static void transform_outputs(const struct job *j, int64_t block)
{
    const struct ew_qend *e = &j->conv->end;
    const int64_t at = block * WIDE;
    struct qmicro end = {.end = e,
                         .plain = is_plain(e),
                         .ratio = (const float *)j->conv->packed + at,
                         .bias = (const int32_t *)j->conv->packed + columns_of(&j->w) + at,
                         .y_step = j->w.cout,
                         .width = min_i64(WIDE, j->w.cout - at)};
    for (int64_t tile = 0; tile < j->count; tile++)
        output_tile(j, tile, block, &end);
}

/* ---- Work tiles ---- */

int64_t EW_K(int8_winograd_tiles)(const struct ew_conv_shape *s)
{
    struct wino w;
    init(&w, s);
    return w.parts * w.splits;
}

/* Bytes of V, with room for whole panels: missing rows are multiplied as well. */
static int64_t v_bytes(const struct wino *w)
{
    return PRODUCTS * w->most * w->row;
}

static int64_t m_bytes(const struct wino *w)
{
    return PRODUCTS * w->most * WIDE * (int64_t)sizeof(int32_t);
}

size_t EW_K(int8_winograd_scratch)(const struct ew_conv_shape *s)
{
    struct wino w;
    init(&w, s);
    return (size_t)(v_bytes(&w) + m_bytes(&w) + div_up(w.cin, 64) * 64);
}

void EW_K(int8_winograd_run)(const struct ew_qconv *q, int64_t begin, int64_t end, void *scratch)
{
    struct job j = {.conv = q, .v = scratch};
    init(&j.w, q->shape);
    j.m = (int32_t *)(void *)(j.v + v_bytes(&j.w));
    j.zero = j.v + v_bytes(&j.w) + m_bytes(&j.w);
    memset(j.zero, (uint8_t)q->of_x.zero ^ q->of_x.flip, (size_t)j.w.cin);
    int64_t last = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t part = i / j.w.splits, from = i % j.w.splits * j.w.split;
        if (part != last) { /* else V is that of the previous work tile */
            j.first = part * j.w.part;
            j.count = min_i64(j.w.part, j.w.tiles - j.first);
            j.rows = div_up(j.count, div_up(j.count, QMR));
            transform_inputs(&j);
        }
        last = part;
        for (int64_t b = from; b < min_i64(from + j.w.split, j.w.blocks); b++) {
            multiply(&j, b);
            transform_outputs(&j, b);
        }
    }
}

#else

bool EW_K(int8_winograd_fits)(const struct ew_conv_shape *s)
{
    return false;
}

double EW_K(int8_winograd_cycles)(const struct ew_conv_shape *s)
{
    return 0;
}

double EW_K(int8_gemm_cycles)(const struct ew_conv_shape *s)
{
    return 0;
}

bool EW_K(int8_winograd_pays)(const struct ew_conv_shape *s)
{
    return false;
}

size_t EW_K(int8_winograd_pack_size)(const struct ew_conv_shape *s)
{
    return 0;
}

int64_t EW_K(int8_winograd_pack_tiles)(const struct ew_conv_shape *s)
{
    return 0;
}

void EW_K(int8_winograd_pack)(const struct ew_conv_shape *s, const struct ew_qconv_weights *q,
                              void *packed, int64_t begin, int64_t end)
{
}

int64_t EW_K(int8_winograd_tiles)(const struct ew_conv_shape *s)
{
    return 0;
}

size_t EW_K(int8_winograd_scratch)(const struct ew_conv_shape *s)
{
    return 0;
}

void EW_K(int8_winograd_run)(const struct ew_qconv *q, int64_t begin, int64_t end, void *scratch)
{
}

#endif
