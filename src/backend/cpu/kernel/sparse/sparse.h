/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a sparse with a dense matrix, in training: after ReLU and dropout, half to three
 * quarters of activations and their gradients are zero.
 *
 *   c [rows][wide] += a [rows][SPAN] b [SPAN][wide]
 *
 * b stays in L1.  64 elements of a row of a make a bit mask; for each set bit, the element is
 * multiplied by a row of b with one load and one FMA for each vector.  The time is proportional to
 * the non-zero elements, at four fifths of the peak.  Sums stay in registers. */
#ifndef EW_BACKEND_CPU_KERNEL_SPARSE_SPARSE_H
#define EW_BACKEND_CPU_KERNEL_SPARSE_SPARSE_H

#include "backend/cpu/kernel/common/fetch.h"
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/sparse/nonzero_bits.h"

/* Vectors of a row of b: as many independent accumulators.  With 8 of them a multiply-add that
 * takes 4 cycles leaves no slack for two units, so AVX2 takes up to 13, as many as registers and L1
 * hold. */
#define WIDTH_LEAST 8
#if defined(EW_ISA_IS_avx2)
#define WIDTH_MOST 13
#else
#define WIDTH_MOST WIDTH_LEAST
#endif
#define WIDE  (WIDTH_MOST * LANES) /* most columns of b and c */
#define ROWS  512                  /* rows of c at a time, which stay in L2 */
#define AHEAD 4                    /* prefetch distance in rows of a */

/* A block of a matrix. */
struct block {
    const float *at;
    int64_t step, rows, columns; /* step: row stride in floats */
};

INLINE struct block block_of(const float *at, int64_t step, int64_t rows, int64_t columns)
{
    return (struct block){at, step, rows, columns};
}

/* Columns of a tile, in whole vectors, where n columns are divided into tiles of equal width. */
INLINE int64_t tile_wide(int64_t n)
{
    const int64_t tiles = max_i64(div_up(n, WIDE), 1);
    return max_i64(div_up(div_up(n, tiles), LANES), WIDTH_LEAST) * LANES;
}

/* A product's operands: c += a b with a.rows <= ROWS and a.columns <= SPAN. */
struct sparse_product {
    struct block a;
    const float *b;
    float *c;
    int64_t wide;           /* floats of a row of b and c, as of tile_wide */
    struct fetch *prefetch; /* spread over the rows */
};

/* The mask of the next row is computed before the multiplications of a row, which need not wait for
 * its comparisons then. */
INLINE void sparse_rows_by(const struct sparse_product *p, const int width)
{
    const float *const b = p->b, *row = p->a.at;
    float *c = p->c;
    const int64_t lines = div_up(p->prefetch->pieces * p->prefetch->lines, p->a.rows);
    uint64_t next = nonzero_mask(row, p->a.columns);
    for (int64_t r = 0; r < p->a.rows; r++, c += width * LANES, row += p->a.step) {
        uint64_t left = next;
        vec sum[WIDTH_MOST];
        UNROLL
        for (int v = 0; v < width; v++)
            sum[v] = load(c + v * LANES);
        if (r + 1 < p->a.rows)
            next = nonzero_mask(row + p->a.step, p->a.columns);
        for (int64_t i = 0; r + AHEAD < p->a.rows && i < p->a.columns; i += LINE)
            __builtin_prefetch(row + AHEAD * p->a.step + i);
        for (; left; left &= left - 1) {
            const int64_t k = __builtin_ctzll(left);
            const vec s = splat(row[k]);
            UNROLL
            for (int v = 0; v < width; v++)
                sum[v] += s * load(b + (k * width + v) * LANES);
        }
        UNROLL
        for (int v = 0; v < width; v++)
            store(c + v * LANES, sum[v]);
        fetch_some(p->prefetch, lines);
    }
}

static void sparse_add(const struct sparse_product *p)
{
    switch (p->wide / LANES) {
#if WIDTH_MOST > WIDTH_LEAST
    case 9:
        sparse_rows_by(p, 9);
        break;
    case 10:
        sparse_rows_by(p, 10);
        break;
    case 11:
        sparse_rows_by(p, 11);
        break;
    case 12:
        sparse_rows_by(p, 12);
        break;
    case 13:
        sparse_rows_by(p, 13);
        break;
#endif
    default:
        sparse_rows_by(p, WIDTH_LEAST);
    }
}

/* Clears rows of sums. */
INLINE void clear_wide(float *to, int64_t rows, int64_t wide)
{
    for (int64_t i = 0; i < rows * wide; i += LANES)
        store(to + i, (vec){0});
}

/* Copies rows of up to `wide` columns to contiguous, zero-padded rows of `wide`. */
INLINE void copy_wide(struct block from, float *to, int64_t wide)
{
    for (int64_t r = 0; r < from.rows; r++, to += wide)
        for (int64_t c = 0; c < wide; c += LANES) {
            const int64_t n = from.columns - c;
            store(to + c, n > 0 ? load_n(from.at + r * from.step + c, n) : (vec){0});
        }
}

/* to[j][i] = from[i][j], with row stride `step` in `to` and zeros up to whole LANES x LANES
 * tiles. */
static void transpose_block(struct block from, float *to, int64_t step)
{
    for (int64_t i = 0; i < from.rows; i += LANES)
        for (int64_t j = 0; j < from.columns; j += LANES) {
            vec square[LANES];
            transpose_load(from.at + i * from.step + j, from.step, from.rows - i, from.columns - j,
                           square);
            UNROLL
            for (int l = 0; l < LANES; l++)
                store(to + (j + l) * step + i, square[l]);
        }
}

/* Rows of x and y; a row is one pixel's channels. */
INLINE int64_t sparse_rows(const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->axis[0].out * s->axis[1].out * s->axis[2].out;
}

#endif
