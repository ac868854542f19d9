/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel, once for every number of rows and vectors, in its two forms. */
#include "backend/cpu/kernel/micro.h"

#define AHEAD 8 /* steps of k that weights are fetched ahead: 1 KiB with AVX-512 */

/* Channels of vector v: all but the last are whole. */
INLINE int64_t lanes(const struct micro *m, int v, const int vectors)
{
    return v == vectors - 1 ? m->last : LANES;
}

INLINE void begin(const struct micro *m, vec sum[MR][NV], const int rows, const int vectors)
{
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vec){0};
    }
    if (m->from) {
        UNROLL
        for (int r = 0; r < rows; r++) {
            UNROLL
            for (int v = 0; v < vectors; v++)
                sum[r][v] = load_n(m->from + m->row[r] + v * LANES, lanes(m, v, vectors));
        }
    }
    if (!m->bias)
        return;
    UNROLL
    for (int v = 0; v < vectors; v++) {
        const vec b = load_n(m->bias + v * LANES, lanes(m, v, vectors));
        UNROLL
        for (int r = 0; r < rows; r++)
            sum[r][v] += b;
    }
}

INLINE void finish(const struct micro *m, vec sum[MR][NV], const int rows, const int vectors)
{
    const vec lo = splat(m->lo), hi = splat(m->hi);
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            store_n(m->c + m->row[r] + v * LANES, vmin(vmax(sum[r][v], lo), hi),
                    lanes(m, v, vectors));
    }
}

/* Where the next operands lie, in floats: constants, so that addresses are. */
struct steps {
    int row, a, w; /* from row to row of a; from k to k of a and of w */
};

INLINE void step(const float *a, const float *w, vec sum[MR][NV], const int rows, const int vectors,
                 const struct steps s)
{
    vec wv[NV];
    UNROLL
    for (int v = 0; v < vectors; v++) {
        wv[v] = load(w + v * LANES);
        __builtin_prefetch(w + AHEAD * s.w + v * LANES);
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        const vec x = splat(a[r * s.row]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] += x * wv[v];
    }
}

INLINE void micro(const struct micro *m, const int rows, const int vectors, const struct steps s)
{
    vec sum[MR][NV];
    begin(m, sum, rows, vectors);
    const float *a = m->a, *w = m->w;
    for (int64_t k = m->kc; k > 0; k--) {
        step(a, w, sum, rows, vectors, s);
        a += s.a;
        w += s.w;
    }
    finish(m, sum, rows, vectors);
}

/* Rows at a distance known at run time only.  Multiples 1, 2, 4 and 8 of an index register are free
 * in an x86 address: five pointers reach 14 rows. */
INLINE void step_direct(const float *const a[5], int64_t row, const float *w, vec sum[MR][NV],
                        const int rows, const int vectors)
{
    static const struct {
        int base, times;
    } at[14] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {0, 4}, {1, 2}, {2, 0},
                {1, 4}, {0, 8}, {3, 0}, {2, 4}, {1, 8}, {4, 0}, {3, 4}};
    vec wv[NV];
    UNROLL
    for (int v = 0; v < vectors; v++) {
        wv[v] = load(w + v * LANES);
        __builtin_prefetch(w + (AHEAD * vectors + v) * LANES);
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        const vec x = splat(a[at[r].base][at[r].times * row]);
        UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] += x * wv[v];
    }
}

INLINE void direct(const struct micro *m, const int rows, const int vectors)
{
    vec sum[MR][NV];
    begin(m, sum, rows, vectors);
    const float *w = m->w;
    const int64_t row = m->row_step;
    for (int64_t l = 0; l < m->lines; l++) {
        const float *const line = m->a + l * m->line_step;
        const float *a[5] = {line, line + 3 * row, line + 6 * row, line + 9 * row, line + 12 * row};
        for (int64_t k = m->kc; k > 0; k--) {
            step_direct(a, row, w, sum, rows, vectors);
            UNROLL
            for (int i = 0; i < 5; i++)
                a[i]++;
            w += vectors * LANES;
        }
    }
    finish(m, sum, rows, vectors);
}

#define MICRO(name, r, v, ...)                                                                     \
    static void name(const struct micro *m)                                                        \
    {                                                                                              \
        micro(m, r, v, (struct steps){__VA_ARGS__});                                               \
    }

#define ROWS(r)                                                                                    \
    MICRO(micro_##r##x1, r, 1, KS, 1, LANES)                                                       \
    MICRO(micro_##r##x2, r, 2, KS, 1, 2 * LANES)                                                   \
    MICRO(outer_##r##x1, r, 1, 1, MR, KS)                                                          \
    MICRO(outer_##r##x2, r, 2, 1, MR, KS)                                                          \
    static void direct_##r##x1(const struct micro *m)                                              \
    {                                                                                              \
        direct(m, r, 1);                                                                           \
    }                                                                                              \
    static void direct_##r##x2(const struct micro *m)                                              \
    {                                                                                              \
        direct(m, r, 2);                                                                           \
    }

/* clang-format off */
#if MR == 14
#define ALL_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif MR == 8
#define ALL_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define ALL_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
/* clang-format on */

ALL_ROWS(ROWS)

#define TABLE(public, name)                                                                        \
    void EW_K(public)(const struct micro *m, int rows, int vectors)                                \
    {                                                                                              \
        static void (*const table[MR][NV])(const struct micro *) = {ALL_ROWS(name)};               \
        table[rows - 1][vectors - 1](m);                                                           \
    }

#define MICRO_ROW(r)  {micro_##r##x1, micro_##r##x2},
#define OUTER_ROW(r)  {outer_##r##x1, outer_##r##x2},
#define DIRECT_ROW(r) {direct_##r##x1, direct_##r##x2},

TABLE(micro, MICRO_ROW)
TABLE(micro_outer, OUTER_ROW)
TABLE(micro_direct, DIRECT_ROW)
