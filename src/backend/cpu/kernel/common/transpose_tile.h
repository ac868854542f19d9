/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes in registers: tiles of LANES x LANES floats, for packing and layout changes.
 *
 * Rows that are a multiple of 4 KiB apart share a set of L1, so a loop that reads one float of each
 * row evicts lines before it has used them.  Here every row is read a whole vector at a time. */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_TRANSPOSE_TILE_H
#define EW_BACKEND_CPU_KERNEL_COMMON_TRANSPOSE_TILE_H

#include "backend/cpu/kernel/common/vec.h"

/* Stage s swaps, in each pair of rows i and i + s, the lanes with bit s of row i with the lanes
 * without it of row i + s.  Stages 1, 2, 4 ...  LANES / 2 make the transpose. */
#define TRANSPOSE_LOW(s, l)  ((l) & (s) ? LANES + (l) - (s) : (l))
#define TRANSPOSE_HIGH(s, l) ((l) & (s) ? LANES + (l) : (l) + (s))
#define TRANSPOSE_4(f, s, l) f(s, l), f(s, (l) + 1), f(s, (l) + 2), f(s, (l) + 3)
#if LANES == 16
#define TRANSPOSE_LANES(f, s)                                                                      \
    TRANSPOSE_4(f, s, 0), TRANSPOSE_4(f, s, 4), TRANSPOSE_4(f, s, 8), TRANSPOSE_4(f, s, 12)
#elif LANES == 8
#define TRANSPOSE_LANES(f, s) TRANSPOSE_4(f, s, 0), TRANSPOSE_4(f, s, 4)
#else
#define TRANSPOSE_LANES(f, s) TRANSPOSE_4(f, s, 0)
#endif

#if defined(__clang__)
#define TRANSPOSE_PICK(f, s, a, b) __builtin_shufflevector(a, b, TRANSPOSE_LANES(f, s))
#else
#define TRANSPOSE_PICK(f, s, a, b) __builtin_shuffle(a, b, (vint){TRANSPOSE_LANES(f, s)})
#endif

#define TRANSPOSE_STAGE(s, r) TRANSPOSE_STAGE_OF(s, r, LANES)
#define TRANSPOSE_STAGE_OF(s, r, rows)                                                             \
    UNROLL for (int i = 0; i < (rows); i++)                                                        \
    {                                                                                              \
        if (i & (s))                                                                               \
            continue;                                                                              \
        const vec a = r[i], b = r[i | (s)];                                                        \
        r[i] = TRANSPOSE_PICK(TRANSPOSE_LOW, s, a, b);                                             \
        r[i | (s)] = TRANSPOSE_PICK(TRANSPOSE_HIGH, s, a, b);                                      \
    }

/* r[i][j] becomes r[j][i]. */
INLINE void transpose_tile(vec r[LANES])
{
    TRANSPOSE_STAGE(1, r)
    TRANSPOSE_STAGE(2, r)
#if LANES >= 8
    TRANSPOSE_STAGE(4, r)
#endif
#if LANES >= 16
    TRANSPOSE_STAGE(8, r)
#endif
}

/* Loads up to LANES rows and columns of `in` and transposes them: r[j] is column j; missing
 * elements are zero. */
INLINE void transpose_load(const float *in, int64_t step, int64_t rows, int64_t columns,
                           vec r[LANES])
{
    if (rows >= LANES && columns >= LANES) {
        UNROLL
        for (int i = 0; i < LANES; i++)
            r[i] = load(in + i * step);
    } else {
        UNROLL
        for (int i = 0; i < LANES; i++)
            r[i] = i < rows ? load_n(in + i * step, columns) : (vec){0};
    }
    transpose_tile(r);
}

/* ---- Tiles with few columns ---- */

#define TRANSPOSE_NARROW (LANES < 8 ? LANES : 8) /* most columns */

/* Transposes a TRANSPOSE_NARROW x TRANSPOSE_NARROW tile; with 16 lanes, one in each half of the
 * lanes. */
INLINE void transpose_squares(vec r[TRANSPOSE_NARROW])
{
    TRANSPOSE_STAGE_OF(1, r, TRANSPOSE_NARROW)
    TRANSPOSE_STAGE_OF(2, r, TRANSPOSE_NARROW)
#if LANES >= 8
    TRANSPOSE_STAGE_OF(4, r, TRANSPOSE_NARROW)
#endif
}

/* Load and store n floats at p to and from the lanes [lane, lane + n). */
#if HALF
INLINE vec put_half(vec v, const float *p, int64_t n, int lane)
{
    const __mmask16 m = (__mmask16)(((1u << n) - 1) << lane);
    return (vec)_mm512_mask_loadu_ps((__m512)v, m, p - lane);
}

INLINE void take_half(vec v, float *p, int64_t n, int lane)
{
    _mm512_mask_storeu_ps(p - lane, (__mmask16)(((1u << n) - 1) << lane), (__m512)v);
}
#endif

/* Loads n <= TRANSPOSE_NARROW columns of rows <= LANES rows: r[j] is column j. */
INLINE void transpose_narrow_in(const float *from, int64_t step, int64_t rows, int64_t n,
                                vec r[TRANSPOSE_NARROW])
{
    UNROLL
    for (int i = 0; i < TRANSPOSE_NARROW; i++) {
        r[i] = (vec){0};
#if HALF
        if (i < rows)
            r[i] = put_half(r[i], from + i * step, n, 0);
        if (i + HALF < rows)
            r[i] = put_half(r[i], from + (i + HALF) * step, n, HALF);
#else
        if (i < rows)
            r[i] = load_n(from + i * step, n);
#endif
    }
    transpose_squares(r);
}

/* The inverse, to memory; r is clobbered. */
INLINE void transpose_narrow_out(vec r[TRANSPOSE_NARROW], int64_t rows, int64_t n, float *to,
                                 int64_t step)
{
    transpose_squares(r);
    UNROLL
    for (int i = 0; i < TRANSPOSE_NARROW; i++) {
#if HALF
        if (i < rows)
            take_half(r[i], to + i * step, n, 0);
        if (i + HALF < rows)
            take_half(r[i], to + (i + HALF) * step, n, HALF);
#else
        if (i < rows)
            store_n(to + i * step, r[i], n);
#endif
    }
}

#endif
