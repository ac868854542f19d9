/* SPDX-License-Identifier: Apache-2.0 */
/* Strips: the micro-kernel with an inner loop over groups of rows. */
#include "backend/cpu/kernel/gemm/micro_form.h"
#include "backend/cpu/kernel/gemm/micro_strip.h"

INLINE void load_weights(const float *w, struct weights *out, const struct form f)
{
    UNROLL
    for (int v = 0; v < f.full; v++)
        out->full[v] = load(w + v * LANES);
    if (f.half)
        out->half = half_load(w + f.full * LANES, HALF);
}

/* `general`: the last vector may be partial, and weights are prefetched.  Most rows need
 * neither. */
INLINE int64_t width_of(const struct micro_strip *m, const struct form f, const bool general)
{
    return general ? m->width : wide_of(f);
}

INLINE void begin(const struct micro_strip *m, int64_t row, struct sums *s, const struct form f,
                  const bool general)
{
    const int64_t width = width_of(m, f, general);
    begin_bias(m->bias, width, s, f);
    if (!m->from)
        return;
    const float *from = m->from + row * m->c_step;
    UNROLL
    for (int r = 0; r < f.rows; r++, from += m->c_step)
        begin_row(from, width, s, r, f);
}

INLINE void finish(const struct micro_strip *m, int64_t row, const struct sums *s,
                   const struct form f, const bool general)
{
    const struct clamp to = {m->lo, m->hi};
    float *c = m->c + row * m->c_step;
    UNROLL
    for (int r = 0; r < f.rows; r++, c += m->c_step)
        finish_row(c, width_of(m, f, general), s, r, f, to);
}

#define FETCHING 4 /* groups over which prefetches are spread: a burst would stall the FMAs */

/* Computes `groups` groups of f.rows rows, from `row` on. */
FORMED void add_groups(const struct micro_strip *m, int64_t row, int64_t groups,
                       const struct form f, const bool general)
{
    const int64_t step = m->row_step;
    const int64_t fetch = general && m->soon ? div_up(wide_of(f), min_i64(groups, FETCHING)) : 0;
    const float *soon = m->soon ? m->soon : m->w;
    for (int64_t g = 0; g < groups; g++, row += f.rows) {
        struct sums s;
        begin(m, row, &s, f, general);
        const float *w = m->w;
        for (int64_t l = 0; l < m->lines; l++) {
            const float *const line = m->a + row * step + l * m->line_step;
            const float *a[5] = {line, line + 3 * step, line + 6 * step, line + 9 * step,
                                 line + 12 * step};
            TWO_STEPS
            for (int64_t k = m->kc; k > 0; k--) {
                struct weights wv;
                load_weights(w, &wv, f);
                if (general) {
                    __builtin_prefetch(soon, 0, 2);
                    soon += fetch;
                }
                step_direct(a, step, &wv, &s, f);
                UNROLL
                for (int i = 0; i < 5; i++)
                    a[i]++;
                w += wide_of(f);
            }
        }
        finish(m, row, &s, f, general);
    }
}

INLINE void add_rows(const struct micro_strip *m, int64_t row, int64_t groups, const struct form f)
{
    const int64_t general = m->width < wide_of(f) ? groups
                            : m->soon             ? min_i64(groups, FETCHING)
                                                  : 0;
    add_groups(m, row, general, f, true);
    add_groups(m, row + general * f.rows, groups - general, f, false);
}

#define STRIP_INSTANCE(kind, r, full, half)                                                        \
    static void strip_##r##x##full##half(const struct micro_strip *m, int64_t row, int64_t groups) \
    {                                                                                              \
        add_rows(m, row, groups, (struct form){r, full, half});                                    \
    }
#define STRIP_INSTANCES(kind, r, widths) WIDTHS_##widths(STRIP_INSTANCE, kind, r)

ROWS(STRIP_INSTANCES, strip)

typedef void strip_instance(const struct micro_strip *m, int64_t row, int64_t groups);

/* Groups of about equal numbers of rows: a small one would have too few accumulators to hide the
 * latency of FMAs. */
void EW_K(micro_strip)(const struct micro_strip *m)
{
    static strip_instance *const table[MR][NR_LAST / PIECE] = {ROWS(INSTANCE_ROW, strip)};
    const int64_t width = packed_width(m->width) / PIECE - 1;
#if defined(EW_ISA_IS_avx2)
    int64_t most = most_rows[width];
#else
    int64_t most = MR;
#endif
    if (m->most > 0)
        most = min_i64(most, m->most);
    const int64_t groups = div_up(m->rows, most), few = m->rows / groups;
    const int64_t more = m->rows - few * groups; /* groups with one more row */
    table[few - 1][width](m, 0, groups - more);
    if (more == 0)
        return;
    struct micro_strip rest = *m;
    rest.soon = NULL;
    table[few][width](&rest, (groups - more) * few, more);
}
