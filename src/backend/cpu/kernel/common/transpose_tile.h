/* SPDX-License-Identifier: Apache-2.0 */
/* Transposing in registers: squares of LANES x LANES floats, for packing and for layouts.
 *
 * Rows that lie a multiple of 4 KiB apart share cache sets, and a loop that reads one float of each
 * loses a line before it has used the rest of it.  Here every row is read a whole vector at a time.
 */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_TRANSPOSE_TILE_H
#define EW_BACKEND_CPU_KERNEL_COMMON_TRANSPOSE_TILE_H

#include "backend/cpu/kernel/common/vec.h"

/* Stage s swaps, in each pair of rows i and i + s, the lanes with bit s of the first for those
 * without it of the second; s = 1, 2, 4 ... LANES / 2 is the whole transpose. */
#define TURN_LOW(s, l)  ((l) & (s) ? LANES + (l) - (s) : (l))
#define TURN_HIGH(s, l) ((l) & (s) ? LANES + (l) : (l) + (s))
#define TURN_4(f, s, l) f(s, l), f(s, (l) + 1), f(s, (l) + 2), f(s, (l) + 3)
#if LANES == 16
#define TURN_LANES(f, s) TURN_4(f, s, 0), TURN_4(f, s, 4), TURN_4(f, s, 8), TURN_4(f, s, 12)
#elif LANES == 8
#define TURN_LANES(f, s) TURN_4(f, s, 0), TURN_4(f, s, 4)
#else
#define TURN_LANES(f, s) TURN_4(f, s, 0)
#endif

#if defined(__clang__)
#define TURN_PICK(f, s, a, b) __builtin_shufflevector(a, b, TURN_LANES(f, s))
#else
#define TURN_PICK(f, s, a, b) __builtin_shuffle(a, b, (vint){TURN_LANES(f, s)})
#endif

#define TURN_STAGE(s, r) TURN_STAGE_OF(s, r, LANES)
#define TURN_STAGE_OF(s, r, rows)                                                                  \
    UNROLL for (int i = 0; i < (rows); i++)                                                        \
    {                                                                                              \
        if (i & (s))                                                                               \
            continue;                                                                              \
        const vec a = r[i], b = r[i | (s)];                                                        \
        r[i] = TURN_PICK(TURN_LOW, s, a, b);                                                       \
        r[i | (s)] = TURN_PICK(TURN_HIGH, s, a, b);                                                \
    }

/* r[i][j] becomes r[j][i]. */
INLINE void turn(vec r[LANES])
{
    TURN_STAGE(1, r)
    TURN_STAGE(2, r)
#if LANES >= 8
    TURN_STAGE(4, r)
#endif
#if LANES >= 16
    TURN_STAGE(8, r)
#endif
}

/* A square of rows [0, rows) x columns [0, columns) of `in`, LANES of each at most, with zeros in
 * place of what is missing: r[j] is column j. */
INLINE void turn_load(const float *in, int64_t step, int64_t rows, int64_t columns, vec r[LANES])
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
    turn(r);
}

/* ---- Rows of few floats ---- */

#define TURN_FEW (LANES < 8 ? LANES : 8) /* of a row, at most */

/* Each half of the lanes is a square of its own, where there are more lanes than rows. */
INLINE void turn_squares(vec r[TURN_FEW])
{
    TURN_STAGE_OF(1, r, TURN_FEW)
    TURN_STAGE_OF(2, r, TURN_FEW)
#if LANES >= 8
    TURN_STAGE_OF(4, r, TURN_FEW)
#endif
}

/* The first n floats at p to lanes from `lane` on, and back; nothing else is touched. */
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

/* n <= TURN_FEW floats of each of `rows` <= LANES rows: column j to the lanes of r[j]. */
INLINE void turn_few_in(const float *from, int64_t step, int64_t rows, int64_t n, vec r[TURN_FEW])
{
    UNROLL
    for (int i = 0; i < TURN_FEW; i++) {
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
    turn_squares(r);
}

/* And back; r is used up. */
INLINE void turn_few_out(vec r[TURN_FEW], int64_t rows, int64_t n, float *to, int64_t step)
{
    turn_squares(r);
    UNROLL
    for (int i = 0; i < TURN_FEW; i++) {
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
