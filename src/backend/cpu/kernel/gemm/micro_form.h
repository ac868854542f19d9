/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the micro-kernel's variants: accumulators, one step of k, the list of
 * instances. */
#ifndef EW_BACKEND_CPU_KERNEL_GEMM_MICRO_FORM_H
#define EW_BACKEND_CPU_KERNEL_GEMM_MICRO_FORM_H

#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/gemm/micro.h"

/* The register tile of one instance: constants, so that loops over it are unrolled. */
struct form {
    int rows, full; /* rows x whole vectors */
    bool half;      /* plus half a vector in each row */
};

struct sums {
    vec full[MR][NV_LAST];
    hvec half[MR];
};

INLINE int form_width(const struct form f)
{
    return f.full * LANES + f.half * HALF;
}

struct weights {
    vec full[NV_LAST];
    hvec half;
};

INLINE void add_row(struct sums *s, int r, float x, const struct weights *w, const struct form f)
{
    UNROLL
    for (int v = 0; v < f.full; v++)
        s->full[r][v] += x * w->full[v];
    if (f.half)
        s->half[r] += x * w->half;
}

/* Valid lanes of whole vector v; only the last may be partial. */
INLINE int64_t lanes(int64_t width, int v, const struct form f)
{
    return !f.half && v == f.full - 1 ? width - v * LANES : LANES;
}

/* Initialises every row with the bias; NULL: with 0. */
INLINE void begin_bias(const float *bias, int64_t width, struct sums *s, const struct form f)
{
    UNROLL
    for (int v = 0; v < f.full; v++) {
        const vec b = bias ? load_n(bias + v * LANES, lanes(width, v, f)) : (vec){0};
        UNROLL
        for (int r = 0; r < f.rows; r++)
            s->full[r][v] = b;
    }
    const int64_t at = f.full * LANES;
    const hvec b = f.half && bias ? half_load(bias + at, width - at) : (hvec){0};
    UNROLL
    for (int r = 0; r < f.rows; r++)
        s->half[r] = b;
}

INLINE void begin_row(const float *from, int64_t width, struct sums *s, int r, const struct form f)
{
    UNROLL
    for (int v = 0; v < f.full; v++)
        s->full[r][v] += load_n(from + v * LANES, lanes(width, v, f));
    if (f.half)
        s->half[r] += half_load(from + f.full * LANES, width - f.full * LANES);
}

/* Bounds of the results. */
struct clamp {
    float lo, hi;
};

INLINE void finish_row(float *c, int64_t width, const struct sums *s, int r, const struct form f,
                       const struct clamp to)
{
    const vec lo = splat(to.lo), hi = splat(to.hi);
    UNROLL
    for (int v = 0; v < f.full; v++)
        store_n(c + v * LANES, vmin(vmax(s->full[r][v], lo), hi), lanes(width, v, f));
    if (f.half)
        half_store(c + f.full * LANES, half_clamp(s->half[r], to.lo, to.hi),
                   width - f.full * LANES);
}

/* Row r of rows with a stride known only at run time.  x86 addresses scale an index register by 1,
 * 2, 4 or 8, so five pointers, three rows apart, reach 14 rows. */
INLINE const float *row_of(const float *const a[5], int64_t row, int r)
{
    static const struct {
        int base, times;
    } at[14] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {0, 4}, {1, 2}, {2, 0},
                {1, 4}, {0, 8}, {3, 0}, {2, 4}, {1, 8}, {4, 0}, {3, 4}};
    return a[at[r].base] + at[r].times * row;
}

/* One step of k for such rows. */
INLINE void step_direct(const float *const a[5], int64_t row, const struct weights *w,
                        struct sums *s, const struct form f)
{
    UNROLL
    for (int r = 0; r < f.rows; r++)
        add_row(s, r, *row_of(a, row, r), w, f);
}

/* WIDTHS: the widths instantiated for r rows; more rows than fit the registers take several
 * passes. */
/* clang-format off */
#if defined(EW_ISA_IS_avx2)
static const int most_rows[NV_LAST] = {12, 6, 4};
#define WIDTHS_3(X, kind, r) X(kind, r, 1, 0) X(kind, r, 2, 0) X(kind, r, 3, 0)
#define WIDTHS_2(X, kind, r) X(kind, r, 1, 0) X(kind, r, 2, 0)
#define WIDTHS_1(X, kind, r) X(kind, r, 1, 0)
#define ROWS(X, k) X(k, 1, 3) X(k, 2, 3) X(k, 3, 3) X(k, 4, 3) X(k, 5, 2) X(k, 6, 2) X(k, 7, 1) \
                   X(k, 8, 1) X(k, 9, 1) X(k, 10, 1) X(k, 11, 1) X(k, 12, 1)
#elif HALF
#define WIDTHS_4(X, kind, r) X(kind, r, 0, 1) X(kind, r, 1, 0) X(kind, r, 1, 1) X(kind, r, 2, 0)
#define ROWS(X, k) X(k, 1, 4) X(k, 2, 4) X(k, 3, 4) X(k, 4, 4) X(k, 5, 4) X(k, 6, 4) X(k, 7, 4) \
                   X(k, 8, 4) X(k, 9, 4) X(k, 10, 4) X(k, 11, 4) X(k, 12, 4) X(k, 13, 4) X(k, 14, 4)
#else
#define WIDTHS_2(X, kind, r) X(kind, r, 1, 0) X(kind, r, 2, 0)
#if MR == 8
#define ROWS(X, k) X(k, 1, 2) X(k, 2, 2) X(k, 3, 2) X(k, 4, 2) X(k, 5, 2) X(k, 6, 2) X(k, 7, 2) X(k, 8, 2)
#else
#define ROWS(X, k) X(k, 1, 2) X(k, 2, 2) X(k, 3, 2) X(k, 4, 2) X(k, 5, 2) X(k, 6, 2)
#endif
#endif
/* clang-format on */

#define INSTANCE_NAME(kind, r, full, h) kind##_##r##x##full##h,
#define INSTANCE_ROW(kind, r, widths)   {WIDTHS_##widths(INSTANCE_NAME, kind, r)},

#endif
