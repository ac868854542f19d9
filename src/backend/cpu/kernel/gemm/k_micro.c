/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel, once for every number of rows and width, in its six forms. */
#include "backend/cpu/kernel/gemm/micro.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

#define AHEAD 8 /* steps of k that weights are fetched ahead: 1 KiB with AVX-512 */

/* What one instance holds in registers: constants, so that loops over it vanish. */
struct form {
    int rows, full; /* rows x whole vectors */
    bool half;      /* and half a vector in each row */
};

struct sums {
    vec full[MR][NV];
    hvec half[MR];
};

INLINE int wide_of(const struct form f)
{
    return f.full * LANES + f.half * HALF;
}

/* Lanes of whole vector v that exist: all but the last piece are whole. */
INLINE int64_t lanes(const struct micro *m, int v, const struct form f)
{
    return !f.half && v == f.full - 1 ? m->width - v * LANES : LANES;
}

INLINE void begin(const struct micro *m, struct sums *s, const struct form f)
{
    const int64_t rest = m->width - f.full * LANES; /* lanes of the half vector */
    UNROLL
    for (int v = 0; v < f.full; v++) {
        const vec b = m->bias ? load_n(m->bias + v * LANES, lanes(m, v, f)) : (vec){0};
        UNROLL
        for (int r = 0; r < f.rows; r++)
            s->full[r][v] = b;
    }
    const hvec b = f.half && m->bias ? half_load(m->bias + f.full * LANES, rest) : (hvec){0};
    UNROLL
    for (int r = 0; r < f.rows; r++)
        s->half[r] = b;
    if (!m->from)
        return;
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        const float *from = m->from + m->row[r];
        UNROLL
        for (int v = 0; v < f.full; v++)
            s->full[r][v] += load_n(from + v * LANES, lanes(m, v, f));
        if (f.half)
            s->half[r] += half_load(from + f.full * LANES, rest);
    }
}

INLINE void finish(const struct micro *m, struct sums *s, const struct form f)
{
    const vec lo = splat(m->lo), hi = splat(m->hi);
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        float *c = m->c + m->row[r];
        UNROLL
        for (int v = 0; v < f.full; v++)
            store_n(c + v * LANES, vmin(vmax(s->full[r][v], lo), hi), lanes(m, v, f));
        if (f.half)
            half_store(c + f.full * LANES, half_clamp(s->half[r], m->lo, m->hi),
                       m->width - f.full * LANES);
    }
}

/* The same without a clamp, and with the statistics of it. */
INLINE void finish_stats(const struct micro *m, const struct sums *s, const struct form f)
{
    const struct stats to = {m->stats, m->stats_step, m->begins};
    UNROLL
    for (int v = 0; v < f.full; v++) {
        const int64_t n = lanes(m, v, f);
        struct stats_sums all = stats_load(&to, v * LANES, s->full[0][v], n);
        UNROLL
        for (int r = 0; r < f.rows; r++) {
            store_n(m->c + m->row[r] + v * LANES, s->full[r][v], n);
            stats_add(&all, s->full[r][v]);
        }
        stats_store(&to, v * LANES, &all, n);
    }
    if (!f.half)
        return;
    const int64_t at = f.full * LANES, n = m->width - at;
    float *first = m->stats + at, *sum = first + m->stats_step, *squares = sum + m->stats_step;
    if (m->begins) {
        half_store(first, s->half[0], n);
        half_store(sum, (hvec){0}, n);
        half_store(squares, (hvec){0}, n);
    }
    const hvec from = half_load(first, n);
    hvec all[2] = {{0}};
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        half_store(m->c + m->row[r] + at, s->half[r], n);
        const hvec d = s->half[r] - from;
        all[0] += d;
        all[1] += d * d;
    }
    half_store(sum, half_load(sum, n) + all[0], n);
    half_store(squares, half_load(squares, n) + all[1], n);
}

/* ---- One step of k ---- */

struct weights {
    vec full[NV];
    hvec half;
};

INLINE void load_weights(const float *w, int ahead, struct weights *out, const struct form f)
{
    UNROLL
    for (int v = 0; v < f.full; v++) {
        out->full[v] = load(w + v * LANES);
        __builtin_prefetch(w + ahead + v * LANES);
    }
    if (f.half)
        out->half = half_load(w + f.full * LANES, HALF);
}

INLINE void add_row(struct sums *s, int r, float x, const struct weights *w, const struct form f)
{
    UNROLL
    for (int v = 0; v < f.full; v++)
        s->full[r][v] += x * w->full[v];
    if (f.half)
        s->half[r] += x * w->half;
}

/* Where the next operands lie, in floats: constants, so that addresses are. */
struct steps {
    int row, a, w; /* from row to row of a; from k to k of a and of w */
};

INLINE void fixed(const struct micro *m, const struct form f, const struct steps step,
                  const bool stats)
{
    struct sums s;
    begin(m, &s, f);
    const float *a = m->a, *w = m->w, *soon = m->soon ? m->soon : w;
    for (int64_t k = m->kc; k > 0; k--) {
        struct weights wv;
        load_weights(w, AHEAD * step.w, &wv, f);
        __builtin_prefetch(soon, 0, 2);
        soon += LINE;
        UNROLL
        for (int r = 0; r < f.rows; r++)
            add_row(&s, r, a[r * step.row], &wv, f);
        a += step.a;
        w += step.w;
    }
    if (stats && m->stats)
        finish_stats(m, &s, f);
    else
        finish(m, &s, f);
}

/* Rows at a distance known at run time only.  Multiples 1, 2, 4 and 8 of an index register are free
 * in an x86 address: five pointers reach 14 rows. */
INLINE void step_direct(const float *const a[5], int64_t row, const struct weights *w,
                        struct sums *s, const struct form f)
{
    static const struct {
        int base, times;
    } at[14] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {0, 4}, {1, 2}, {2, 0},
                {1, 4}, {0, 8}, {3, 0}, {2, 4}, {1, 8}, {4, 0}, {3, 4}};
    UNROLL
    for (int r = 0; r < f.rows; r++)
        add_row(s, r, a[at[r].base][at[r].times * row], w, f);
}

INLINE void direct(const struct micro *m, const struct form f)
{
    struct sums s;
    begin(m, &s, f);
    const float *w = m->w, *soon = m->soon ? m->soon : w;
    const int64_t row = m->row_step;
    for (int64_t l = 0; l < m->lines; l++) {
        const float *const line = m->a + l * m->line_step;
        const float *a[5] = {line, line + 3 * row, line + 6 * row, line + 9 * row, line + 12 * row};
        for (int64_t k = m->kc; k > 0; k--) {
            struct weights wv;
            load_weights(w, AHEAD * wide_of(f), &wv, f);
            __builtin_prefetch(soon, 0, 2);
            soon += LINE;
            step_direct(a, row, &wv, &s, f);
            UNROLL
            for (int i = 0; i < 5; i++)
                a[i]++;
            w += wide_of(f);
        }
    }
    if (m->stats)
        finish_stats(m, &s, f);
    else
        finish(m, &s, f);
}

INLINE void add_spans(const struct micro *m, const struct form f, const bool fetch)
{
    struct sums s;
    begin(m, &s, f);
    const int64_t step = m->line_step, step_0 = m->next[0].step, step_1 = m->next[1].step;
    const float *next_0 = m->next[0].at ? m->next[0].at : m->span->a;
    const float *next_1 = m->next[1].at ? m->next[1].at : m->span->a;
    for (int64_t l = 0; l < m->lines; l++) {
        const float *a = m->span[l].a, *w = m->span[l].w;
        for (int64_t k = m->kc; k > 0; k--) {
            struct weights wv;
            load_weights(w, (int)(AHEAD * step), &wv, f);
            if (fetch) {
                __builtin_prefetch(next_0, 0, 2);
                __builtin_prefetch(next_1, 0, 2);
                next_0 += step_0;
                next_1 += step_1;
            }
            UNROLL
            for (int r = 0; r < f.rows; r++)
                add_row(&s, r, a[r], &wv, f);
            a += MR;
            w += step;
        }
    }
    finish(m, &s, f);
}

INLINE void spans(const struct micro *m, const struct form f)
{
    add_spans(m, f, false);
}

INLINE void spans_next(const struct micro *m, const struct form f)
{
    add_spans(m, f, true);
}

/* ---- All instances: rows x {half,} one, {one and a half,} two vectors ---- */

INLINE void panel(const struct micro *m, const struct form f)
{
    fixed(m, f, (struct steps){KS, 1, wide_of(f)}, true);
}

INLINE void outer(const struct micro *m, const struct form f)
{
    fixed(m, f, (struct steps){1, MR, KS}, false);
}

INLINE void outer_direct(const struct micro *m, const struct form f)
{
    fixed(m, f, (struct steps){1, (int)m->row_step, (int)m->line_step}, false);
}

#define INSTANCE(kind, r, full, half)                                                              \
    static void kind##_##r##x##full##half(const struct micro *m)                                   \
    {                                                                                              \
        kind(m, (struct form){r, full, half});                                                     \
    }

/* clang-format off */
#if HALF
#define WIDTHS(X, kind, r) X(kind, r, 0, 1) X(kind, r, 1, 0) X(kind, r, 1, 1) X(kind, r, 2, 0)
#else
#define WIDTHS(X, kind, r) X(kind, r, 1, 0) X(kind, r, 2, 0)
#endif
#if MR == 14
#define ROWS(X, k) X(k, 1) X(k, 2) X(k, 3) X(k, 4) X(k, 5) X(k, 6) X(k, 7) \
                   X(k, 8) X(k, 9) X(k, 10) X(k, 11) X(k, 12) X(k, 13) X(k, 14)
#elif MR == 8
#define ROWS(X, k) X(k, 1) X(k, 2) X(k, 3) X(k, 4) X(k, 5) X(k, 6) X(k, 7) X(k, 8)
#else
#define ROWS(X, k) X(k, 1) X(k, 2) X(k, 3) X(k, 4) X(k, 5) X(k, 6)
#endif
/* clang-format on */

#define INSTANCES(kind, r)              WIDTHS(INSTANCE, kind, r)
#define INSTANCE_NAME(kind, r, full, h) kind##_##r##x##full##h,
#define INSTANCE_ROW(kind, r)           {WIDTHS(INSTANCE_NAME, kind, r)},

#define PUBLIC(name, kind)                                                                         \
    ROWS(INSTANCES, kind)                                                                          \
    void EW_K(name)(const struct micro *m, int rows)                                               \
    {                                                                                              \
        static void (*const table[MR][NR / PIECE])(const struct micro *) = {                       \
            ROWS(INSTANCE_ROW, kind)};                                                             \
        table[rows - 1][packed_width(m->width) / PIECE - 1](m);                                    \
    }

PUBLIC(micro, panel)
PUBLIC(micro_outer, outer)
PUBLIC(micro_direct, direct)
PUBLIC(micro_outer_direct, outer_direct)
PUBLIC(micro_spans, spans)
PUBLIC(micro_spans_next, spans_next)
