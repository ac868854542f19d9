/* SPDX-License-Identifier: Apache-2.0 */
/* Transposing in registers: squares of LANES x LANES floats, for packing and for layouts.
 *
 * Rows that lie a multiple of 4 KiB apart share cache sets, and a loop that reads one float of each
 * loses a line before it has used the rest of it.  Here every row is read a whole vector at a time.
 */
#ifndef EW_BACKEND_CPU_KERNEL_TURN_H
#define EW_BACKEND_CPU_KERNEL_TURN_H

#include "backend/cpu/kernel/vec.h"

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

#define TURN_STAGE(s, r)                                                                           \
    UNROLL for (int i = 0; i < LANES; i++)                                                         \
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

#endif
