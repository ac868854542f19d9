/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a matrix of many zeros with a dense one, in training: what ReLU and dropout leave of
 * activations, and of the gradients in front of them, is half or three quarters zeros.
 *
 *   c [rows][WIDE] += a [rows][SPAN] b [SPAN][WIDE]
 *
 * b lies in L1.  Of each row of a 64 elements are 64 bits, and for each bit that is set one element
 * is multiplied with a row of b: a load and a multiply-add for every vector, so the time is that of
 * the elements that are not zero, at four fifths of the peak.  Sums stay in registers meanwhile. */
#ifndef EW_BACKEND_CPU_KERNEL_SPARSE_SPARSE_H
#define EW_BACKEND_CPU_KERNEL_SPARSE_SPARSE_H

#include "backend/cpu/kernel/common/fetch.h"
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/sparse/nonzero_bits.h"

#define WIDTH 8 /* vectors of a row of b: sums that do not wait for each other */
#define WIDE  (WIDTH * LANES)
#define ROWS  512 /* of c at a time: L2 holds them */
#define AHEAD 4   /* rows of a that are fetched before they are needed */

/* Part of a matrix. */
struct block {
    const float *at;
    int64_t step, rows, columns; /* step: floats from row to row */
};

INLINE struct block block_of(const float *at, int64_t step, int64_t rows, int64_t columns)
{
    return (struct block){at, step, rows, columns};
}

/* c += a b, of a.columns <= SPAN; with each row `share` lines of `prefetch` are fetched. */
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

/* Rows of sums that begin with nothing. */
INLINE void clear_wide(float *to, int64_t rows)
{
    for (int64_t i = 0; i < rows * WIDTH; i++)
        store(to + i * LANES, (vec){0});
}

/* Up to WIDE columns of rows of `from`, with zeros after them, one row after the other. */
INLINE void copy_wide(struct block from, float *to)
{
    for (int64_t r = 0; r < from.rows; r++, to += WIDE)
        for (int64_t c = 0; c < WIDE; c += LANES) {
            const int64_t n = from.columns - c;
            store(to + c, n > 0 ? load_n(from.at + r * from.step + c, n) : (vec){0});
        }
}

/* to[j][i] = from[i][j], rows of `to` `step` floats apart and zeros up to whole squares. */
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

/* Rows of x and y, where each is one pixel's channels. */
INLINE int64_t sparse_rows(const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->axis[0].out * s->axis[1].out * s->axis[2].out;
}

#endif
