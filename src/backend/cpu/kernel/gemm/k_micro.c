/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel's six variants, instantiated for every number of rows and width. */
#include "backend/cpu/kernel/gemm/micro_form.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

#define AHEAD 8 /* prefetch distance of weights in steps of k: 1 KiB with AVX-512 */

INLINE void begin(const struct micro *m, struct sums *s, const int64_t *row, const struct form f)
{
    begin_bias(m->bias, m->width, s, f);
    if (!m->from)
        return;
    UNROLL
    for (int r = 0; r < f.rows; r++)
        begin_row(m->from + row[r], m->width, s, r, f);
}

INLINE void finish(const struct micro *m, struct sums *s, const int64_t *row, const struct form f)
{
    const struct clamp to = {m->lo, m->hi};
    UNROLL
    for (int r = 0; r < f.rows; r++)
        finish_row(m->c + row[r], m->width, s, r, f, to);
}

/* The same without clamp, but with statistics of the results. */
INLINE void finish_stats(const struct micro *m, const struct sums *s, int first,
                         const struct form f)
{
    const int64_t *row = m->row + first;
    const struct stats to = {m->stats, m->stats_step, m->begins && first == 0};
    UNROLL
    for (int v = 0; v < f.full; v++) {
        const int64_t n = lanes(m->width, v, f);
        struct stats_sums all = stats_load(&to, v * LANES, s->full[0][v], n);
        UNROLL
        for (int r = 0; r < f.rows; r++) {
            store_n(m->c + row[r] + v * LANES, s->full[r][v], n);
            stats_add(&all, s->full[r][v]);
        }
        stats_store(&to, v * LANES, &all, n);
    }
    if (!f.half)
        return;
    const int64_t at = f.full * LANES, n = m->width - at;
    float *start = m->stats + at, *sum = start + m->stats_step, *squares = sum + m->stats_step;
    if (to.begins) {
        half_store(start, s->half[0], n);
        half_store(sum, (hvec){0}, n);
        half_store(squares, (hvec){0}, n);
    }
    const hvec from = half_load(start, n);
    hvec all[2] = {{0}};
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        half_store(m->c + row[r] + at, s->half[r], n);
        const hvec d = s->half[r] - from;
        all[0] += d;
        all[1] += d * d;
    }
    half_store(sum, half_load(sum, n) + all[0], n);
    half_store(squares, half_load(squares, n) + all[1], n);
}

/* ---- One step of k ---- */

INLINE void load_weights(const float *w, int ahead, struct weights *out, const struct form f)
{
    UNROLL
    for (int v = 0; v < f.full; v++) {
        out->full[v] = load(w + v * LANES);
        if (v * LANES % LINE == 0)
            __builtin_prefetch(w + ahead + v * LANES);
    }
    if (f.half)
        out->half = half_load(w + f.full * LANES, HALF);
}

/* What to prefetch: only the first pass over the same weights does. */
INLINE const float *prefetch_of(const struct micro *m, int first)
{
    return m->prefetch && first == 0 ? m->prefetch : m->w;
}

/* Strides of the operands in floats: constants, for immediate offsets. */
struct steps {
    int row, a, w; /* between rows of a; between steps of k in a and in w */
};

FORMED void fixed(const struct micro *m, int first, const struct form f, const struct steps step,
                  const bool stats)
{
    struct sums s;
    begin(m, &s, m->row + first, f);
    const float *a = m->a + first * step.row, *w = m->w, *prefetch = prefetch_of(m, first);
    TWO_STEPS
    for (int64_t k = m->kc; k > 0; k--) {
        struct weights wv;
        load_weights(w, AHEAD * step.w, &wv, f);
        __builtin_prefetch(prefetch, 0, 2);
        prefetch += LINE;
        UNROLL
        for (int r = 0; r < f.rows; r++)
            add_row(&s, r, a[r * step.row], &wv, f);
        a += step.a;
        w += step.w;
    }
    if (stats && m->stats)
        finish_stats(m, &s, first, f);
    else
        finish(m, &s, m->row + first, f);
}

FORMED void direct(const struct micro *m, int first, const struct form f)
{
    struct sums s;
    begin(m, &s, m->row + first, f);
    const float *w = m->w, *prefetch = prefetch_of(m, first);
    const int64_t row = m->row_step;
    for (int64_t l = 0; l < m->lines; l++) {
        const float *const line = m->a + first * row + l * m->line_step;
        const float *a[5] = {line, line + 3 * row, line + 6 * row, line + 9 * row, line + 12 * row};
        TWO_STEPS
        for (int64_t k = m->kc; k > 0; k--) {
            struct weights wv;
            load_weights(w, AHEAD * form_width(f), &wv, f);
            __builtin_prefetch(prefetch, 0, 2);
            prefetch += LINE;
            step_direct(a, row, &wv, &s, f);
            UNROLL
            for (int i = 0; i < 5; i++)
                a[i]++;
            w += form_width(f);
        }
    }
    if (m->stats)
        finish_stats(m, &s, first, f);
    else
        finish(m, &s, m->row + first, f);
}

FORMED void add_spans(const struct micro *m, int first, const struct form f, const bool fetch)
{
    struct sums s;
    begin(m, &s, m->row + first, f);
    const int64_t step = m->line_step, step_0 = m->next[0].step, step_1 = m->next[1].step;
    const float *next_0 = m->next[0].at ? m->next[0].at : m->span->a;
    const float *next_1 = m->next[1].at ? m->next[1].at : m->span->a;
    for (int64_t l = 0; l < m->lines; l++) {
        const float *a = m->span[l].a + first, *w = m->span[l].w;
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
    finish(m, &s, m->row + first, f);
}

INLINE void spans(const struct micro *m, int first, const struct form f)
{
    add_spans(m, first, f, false);
}

INLINE void spans_next(const struct micro *m, int first, const struct form f)
{
    add_spans(m, first, f, true);
}

/* ---- All instances: rows x {half,} one, {one and a half,} two {, three} vectors ---- */

INLINE void panel(const struct micro *m, int first, const struct form f)
{
    fixed(m, first, f, (struct steps){KS, 1, form_width(f)}, true);
}

INLINE void outer(const struct micro *m, int first, const struct form f)
{
    fixed(m, first, f, (struct steps){1, MR, KS}, false);
}

INLINE void outer_direct(const struct micro *m, int first, const struct form f)
{
    fixed(m, first, f, (struct steps){1, (int)m->row_step, (int)m->line_step}, false);
}

#define INSTANCE(kind, r, full, half)                                                              \
    static void kind##_##r##x##full##half(const struct micro *m, int first)                        \
    {                                                                                              \
        kind(m, first, (struct form){r, full, half});                                              \
    }

#define INSTANCES(kind, r, widths) WIDTHS_##widths(INSTANCE, kind, r)
typedef void instance(const struct micro *m, int first);
typedef instance *const instances[MR][NR_LAST / PIECE];

/* Passes of about equal numbers of rows. */
INLINE void run_instance(instances table, const struct micro *m, int rows)
{
    const int64_t width = packed_width(m->width) / PIECE - 1;
#if defined(EW_ISA_IS_avx2)
    const int passes = (rows + most_rows[width] - 1) / most_rows[width];
    const int step = passes == 1 ? rows : (rows + passes - 1) / passes;
    for (int r = 0; r < rows; r += step)
        table[(step < rows - r ? step : rows - r) - 1][width](m, r);
#else
    table[rows - 1][width](m, 0);
#endif
}

#define PUBLIC(name, kind)                                                                         \
    ROWS(INSTANCES, kind)                                                                          \
    void EW_K(name)(const struct micro *m, int rows)                                               \
    {                                                                                              \
        static instances table = {ROWS(INSTANCE_ROW, kind)};                                       \
        run_instance(table, m, rows);                                                              \
    }

PUBLIC(micro, panel)
PUBLIC(micro_outer, outer)
PUBLIC(micro_direct, direct)
PUBLIC(micro_outer_direct, outer_direct)
PUBLIC(micro_spans, spans)
PUBLIC(micro_spans_next, spans_next)
