/* SPDX-License-Identifier: Apache-2.0 */
/* Small dense layers, forward: y' [O x images] = w x', split over k (inputs).
 *
 * Images are lanes.  A tile transposes its inputs piece by piece, multiplies them by that part of
 * all filters and writes partial sums to `transposed`, [tile][O][images], which are finally added
 * in order and transposed back. */
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/unpacked/small_dense.h"

#define SMALL (64 << 10) /* most floats of the filter: with optimiser state it stays in L2 */
#define BATCH 64         /* most images: those of a tile stay in L1 */
#define ROWS  (LANES == 8 ? 12 : 14)

bool EW_K(small_dense_pays)(const struct ew_conv_shape *s)
{
    int64_t positions = 1;
    for (int i = 0; i < 3; i++)
        positions *= (int64_t)s->axis[i].in * s->axis[i].out * s->axis[i].taps;
    return positions == 1 && s->groups == 1 && s->batch <= BATCH &&
           (int64_t)s->cin * s->cout <= SMALL;
}

int64_t EW_K(small_dense_tiles)(const struct ew_conv_shape *s)
{
    return dense_by_outputs(s) ? 2 : min_i64(dense_pieces(s), DENSE_SUMS);
}

/* Number of partial sums. */
static int64_t sums_of(const struct ew_conv_shape *s)
{
    return dense_by_outputs(s) ? 1 : EW_K(small_dense_tiles)(s);
}

/* Images, rounded up to whole vectors. */
static int64_t lanes_of(const struct ew_conv_shape *s)
{
    return div_up(s->batch, LANES) * LANES;
}

size_t EW_K(small_dense_transposed)(const struct ew_conv_shape *s)
{
    return (size_t)(sums_of(s) * s->cout * lanes_of(s));
}

/* Transposes inputs [c, c + width) of LANES images from n on to x [width][LANES]. */
static void transpose_inputs(const struct ew_unpacked_conv *p, int64_t n, int64_t c, int64_t width,
                             float *x)
{
    const int64_t cin = p->shape.cin;
    for (int64_t i = 0; i < width; i += LANES) {
        vec r[LANES];
        transpose_load(p->x + n * cin + c + i, cin, p->shape.batch - n, width - i, r);
        for (int j = 0; j < LANES; j++)
            store(x + (i + j) * LANES, r[j]);
    }
}

/* A piece of inputs and filters, and its partial sums, `gap` floats apart. */
struct piece {
    const float *w, *x; /* w: filters `step` floats apart; x: [width][LANES] */
    float *sums;
    int64_t step, width, gap;
    bool add;
};

/* Accumulates filters [o, o + rows). */
INLINE void multiply(const struct piece *p, int64_t o, int rows)
{
    const float *w = p->w + o * p->step;
    float *sums = p->sums + o * p->gap;
    vec sum[ROWS];
    UNROLL
    for (int r = 0; r < rows; r++)
        sum[r] = p->add ? load(sums + r * p->gap) : (vec){0};
    for (int64_t i = 0; i < p->width; i++) {
        const vec v = load(p->x + i * LANES);
        UNROLL
        for (int r = 0; r < rows; r++)
            sum[r] += w[r * p->step + i] * v;
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        store(sums + r * p->gap, sum[r]);
}

/* Accumulates filters [o, end). */
static void run_piece(const struct piece *p, int64_t o, int64_t end)
{
    for (; o + ROWS <= end; o += ROWS)
        multiply(p, o, ROWS);
    for (; o + 4 <= end; o += 4)
        multiply(p, o, 4);
    for (; o < end; o++)
        multiply(p, o, 1);
}

/* Computes LANES images from n on. */
static void run_tile(const struct ew_unpacked_conv *p, int64_t tile, int64_t n, float *x)
{
    const struct ew_conv_shape *s = &p->shape;
    const bool by_outputs = dense_by_outputs(s);
    const int64_t pieces = dense_pieces(s), sums = sums_of(s), gap = lanes_of(s);
    const int64_t sum = by_outputs ? 0 : tile;
    const int64_t first = pieces * sum / sums, end = pieces * (sum + 1) / sums;
    for (int64_t i = first; i < end; i++) {
        const int64_t c = dense_first(s, i), width = dense_first(s, i + 1) - c;
        const struct piece piece = {.w = p->w + c,
                                    .x = x,
                                    .sums = p->transposed + sum * s->cout * gap + n,
                                    .step = s->cin,
                                    .width = width,
                                    .gap = gap,
                                    .add = i > first};
        transpose_inputs(p, n, c, width, x);
        run_piece(&piece, by_outputs ? dense_output(s, tile) : 0,
                  by_outputs ? dense_output(s, tile + 1) : s->cout);
    }
}

void EW_K(small_dense_run)(const struct ew_unpacked_conv *p, int64_t begin, int64_t end)
{
    _Alignas(64) float x[DENSE_WIDE * LANES];
    for (int64_t i = begin; i < end; i++)
        for (int64_t n = 0; n < p->shape.batch; n += LANES)
            run_tile(p, i, n, x);
}

void EW_K(small_dense_sum)(const struct ew_unpacked_conv *p)
{
    const struct ew_conv_shape *s = &p->shape;
    const int64_t gap = lanes_of(s), tiles = sums_of(s);
    const vec lo = splat(p->relu ? 0.0f : -INFINITY);
    for (int64_t o = 0; o < s->cout; o += LANES) {
        const int64_t have = min_i64(LANES, s->cout - o);
        const vec bias = p->bias ? load_n(p->bias + o, have) : (vec){0};
        for (int64_t n = 0; n < s->batch; n += LANES) {
            vec r[LANES] = {{0}};
            for (int64_t t = 0; t < tiles; t++)
                for (int64_t j = 0; j < have; j++)
                    r[j] += load(p->transposed + (t * s->cout + o + j) * gap + n);
            transpose_tile(r);
            for (int64_t j = 0; j < min_i64(LANES, s->batch - n); j++)
                store_n(p->y + (n + j) * s->cout + o, vmax(r[j] + bias, lo), have);
        }
    }
}
