/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a sparse with a dense matrix, in training: after ReLU and dropout, half to three
 * quarters of activations and their gradients are zero.
 *
 *   c [rows][WIDE] += a [rows][SPAN] b [SPAN][WIDE]
 *
 * b stays in L1.  64 elements of a row of a make a bit mask; for each set bit, the element is
 * multiplied by a row of b with one load and one FMA for each vector.  The time is proportional to
 * the non-zero elements, at four fifths of the peak.  Sums stay in registers. */
#ifndef EW_BACKEND_CPU_KERNEL_SPARSE_SPARSE_H
#define EW_BACKEND_CPU_KERNEL_SPARSE_SPARSE_H

#include "backend/cpu/kernel/common/fetch.h"
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/sparse/nonzero_bits.h"

#define WIDTH 8 /* vectors of a row of b: as many independent accumulators */
#define WIDE  (WIDTH * LANES)
#define ROWS  512 /* rows of c at a time, which stay in L2 */
#define AHEAD 4   /* prefetch distance in rows of a */

/* A block of a matrix. */
struct block {
    const float *at;
    int64_t step, rows, columns; /* step: row stride in floats */
};

INLINE struct block block_of(const float *at, int64_t step, int64_t rows, int64_t columns)
{
    return (struct block){at, step, rows, columns};
}

/* c += a b with a.columns <= SPAN; prefetches `share` lines of `prefetch` for each row. */
static void sparse_add(struct block a, const float *restrict b, float *restrict c,
                       struct fetch *prefetch, int64_t share)
{
    for (int64_t r = 0; r < a.rows; r++, c += WIDE) {
        const float *row = a.at + r * a.step;
        uint64_t left = nonzero_mask(row, a.columns);
        for (int64_t i = 0; r + AHEAD < a.rows && i < a.columns; i += LINE)
            __builtin_prefetch(row + AHEAD * a.step + i);
        vec sum[WIDTH];
        UNROLL
        for (int v = 0; v < WIDTH; v++)
            sum[v] = load(c + v * LANES);
        for (; left; left &= left - 1) {
            const int64_t k = __builtin_ctzll(left);
            const vec s = splat(row[k]);
            UNROLL
            for (int v = 0; v < WIDTH; v++)
                sum[v] += s * load(b + k * WIDE + v * LANES);
        }
        UNROLL
        for (int v = 0; v < WIDTH; v++)
            store(c + v * LANES, sum[v]);
        fetch_some(prefetch, share);
    }
}

/* Clears rows of sums. */
INLINE void clear_wide(float *to, int64_t rows)
{
    for (int64_t i = 0; i < rows * WIDTH; i++)
        store(to + i * LANES, (vec){0});
}

/* Copies rows of up to WIDE columns to contiguous, zero-padded rows of WIDE. */
INLINE void copy_wide(struct block from, float *to)
{
    for (int64_t r = 0; r < from.rows; r++, to += WIDE)
        for (int64_t c = 0; c < WIDE; c += LANES) {
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
