/* SPDX-License-Identifier: Apache-2.0 */
/* Strips: the micro-kernel with an inner loop over groups of rows. */
#include "backend/cpu/kernel/common/act.h"
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

/* What a form does beside its FMAs, as constants; most rows need neither of the first two. */
struct extra {
    bool part;       /* the last vector may be partial */
    bool fetch;      /* weights are prefetched */
    enum ew_act act; /* instead of the clamp, on whole vectors; EW_ACT_NONE: none */
};

INLINE int64_t width_of(const struct micro_strip *m, const struct form f, const struct extra e)
{
    return e.part ? m->width : form_width(f);
}

INLINE void begin(const struct micro_strip *m, int64_t row, struct sums *s, const struct form f,
                  const struct extra e)
{
    const int64_t width = width_of(m, f, e);
    begin_bias(m->bias, width, s, f);
    if (!m->from)
        return;
    const float *from = m->from + row * m->c_step;
    UNROLL
    for (int r = 0; r < f.rows; r++, from += m->c_step)
        begin_row(from, width, s, r, f);
}

INLINE void finish(const struct micro_strip *m, int64_t row, const struct sums *s,
                   const struct form f, const struct extra e)
{
    const struct clamp to = {m->lo, m->hi};
    float *c = m->c + row * m->c_step;
    UNROLL
    for (int r = 0; r < f.rows; r++, c += m->c_step) {
        if (e.act == EW_ACT_NONE) {
            finish_row(c, width_of(m, f, e), s, r, f, to);
            continue;
        }
        UNROLL
        for (int v = 0; v < f.full; v++)
            store(c + v * LANES, vact_end(e.act, s->full[r][v], 0, 0));
    }
}

/* Weights to prefetch, `step` floats in each step of k. */
struct soon {
    const float *at;
    int64_t step;
};

/* Computes rows [row, row + f.rows). */
INLINE void add_group(const struct micro_strip *m, int64_t row, struct soon *soon,
                      const struct form f, const struct extra e)
{
    const int64_t step = m->row_step;
    const float *fetched = soon->at;
    struct sums s;
    begin(m, row, &s, f, e);
    const float *w = m->w;
    for (int64_t l = 0; l < m->lines; l++) {
        const float *const line = m->a + row * step + l * m->line_step;
        const float *a[5] = {line, line + 3 * step, line + 6 * step, line + 9 * step,
                             line + 12 * step};
        TWO_STEPS
        for (int64_t k = m->kc; k > 0; k--) {
            struct weights wv;
            load_weights(w, &wv, f);
            if (e.fetch) {
                __builtin_prefetch(fetched, 0, 2);
                fetched += soon->step;
            }
            step_direct(a, step, &wv, &s, f);
            UNROLL
            for (int i = 0; i < 5; i++)
                a[i]++;
            w += form_width(f);
        }
    }
    soon->at = fetched;
    finish(m, row, &s, f, e);
}

#define FETCHING 4 /* groups over which prefetches are spread: a burst would stall the FMAs */

INLINE struct soon soon_of(const struct micro_strip *m, int64_t groups, const struct form f)
{
    if (!m->soon)
        return (struct soon){m->w, 0};
    return (struct soon){m->soon, div_up(form_width(f), min_i64(groups, FETCHING))};
}

/* Computes `groups` groups of f.rows rows, from `row` on. */
FORMED void add_groups(const struct micro_strip *m, int64_t row, int64_t groups,
                       const struct form f, const struct extra e)
{
    struct soon soon = soon_of(m, max_i64(groups, 1), f);
    for (int64_t g = 0; g < groups; g++, row += f.rows)
        add_group(m, row, &soon, f, e);
}

INLINE void add_rows(const struct micro_strip *m, int64_t row, int64_t groups, const struct form f)
{
    const int64_t general = m->width < form_width(f) ? groups
                            : m->soon                ? min_i64(groups, FETCHING)
                                                     : 0;
    add_groups(m, row, general, f, (struct extra){true, true});
    add_groups(m, row + general * f.rows, groups - general, f, (struct extra){false});
}

#define STRIP_INSTANCE(kind, r, full, half)                                                        \
    static void strip_##r##x##full##half(const struct micro_strip *m, int64_t row, int64_t groups) \
    {                                                                                              \
        add_rows(m, row, groups, (struct form){r, full, half});                                    \
    }
#define STRIP_INSTANCES(kind, r, widths) WIDTHS_##widths(STRIP_INSTANCE, kind, r)

ROWS(STRIP_INSTANCES, strip)

typedef void strip_instance(const struct micro_strip *m, int64_t row, int64_t groups);

/* Activations of common networks, applied to the accumulators: in the forms that most rows take,
 * since all forms would be a megabyte of code. */
#if defined(EW_ISA_IS_avx2)
#define ACT_FORMS(X, kind) X(kind, 6, 2) X(kind, 5, 2) X(kind, 4, 3) X(kind, 12, 1)
#elif MR == 14
#define ACT_FORMS(X, kind) X(kind, 14, 2) X(kind, 13, 2) X(kind, 12, 2) X(kind, 14, 1)
#elif MR == 8
#define ACT_FORMS(X, kind) X(kind, 8, 2) X(kind, 7, 2) X(kind, 8, 1)
#else
#define ACT_FORMS(X, kind) X(kind, 6, 2) X(kind, 5, 2) X(kind, 6, 1)
#endif

typedef void act_group(const struct micro_strip *m, int64_t row, struct soon *soon);

static void act_groups(act_group *run, const struct micro_strip *m, int64_t row, int64_t groups,
                       const struct form f)
{
    const int64_t end = row + groups * f.rows;
    struct soon soon = soon_of(m, groups, f);
    for (int64_t g = 0; row < end; g++, row += f.rows) {
        if (g == FETCHING)
            soon.step = 0;
        run(m, row, &soon);
    }
}

/* A group is a call: in a loop compilers keep the constants of the activation in registers and
 * spill weights. */
#define ACT_INSTANCE(kind, r, full)                                                                \
    static __attribute__((noinline)) void group_##kind##_##r##x##full(                             \
        const struct micro_strip *m, int64_t row, struct soon *soon)                               \
    {                                                                                              \
        add_group(m, row, soon, (struct form){r, full, false},                                     \
                  (struct extra){false, true, EW_ACT_##kind});                                     \
    }                                                                                              \
    static void strip_##kind##_##r##x##full(const struct micro_strip *m, int64_t row,              \
                                            int64_t groups)                                        \
    {                                                                                              \
        act_groups(group_##kind##_##r##x##full, m, row, groups, (struct form){r, full, false});    \
    }
#define ACT_CHOICE(kind, r, full)                                                                  \
    if (m->act == EW_ACT_##kind && rows == (r) && m->width == (full)*LANES)                        \
        return strip_##kind##_##r##x##full;

ACT_FORMS(ACT_INSTANCE, HARD_SWISH)
ACT_FORMS(ACT_INSTANCE, SILU)

/* NULL: the caller applies it. */
static strip_instance *act_instance(const struct micro_strip *m, int64_t rows)
{
    ACT_FORMS(ACT_CHOICE, HARD_SWISH)
    ACT_FORMS(ACT_CHOICE, SILU)
    return NULL;
}

/* ---- Pairs along k ---- */

#if PAIRS
/* Two inputs in alternating lanes, or one and zeros. */
INLINE vec two_inputs(const float *a)
{
    double both;
    memcpy(&both, a, sizeof(both));
    return (vec)_mm512_set1_pd(both);
}

INLINE vec one_input(const float *a)
{
    return (vec)_mm512_broadcastsd_pd(_mm_castps_pd(_mm_load_ss(a)));
}

/* Sums of pairs of adjacent lanes: of a, then of b. */
INLINE vec add_lanes(vec a, vec b)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    return (vec)_mm512_permutex2var_ps((__m512)a, even, (__m512)b) +
           (vec)_mm512_permutex2var_ps((__m512)a, odd, (__m512)b);
}

#define PAIR_ROWS 14

/* One step: two of k, or with `last` one. */
INLINE void step_pairs(const float *const a[5], int64_t row, const float *w, vec sum[PAIR_ROWS][3],
                       const struct form f, const bool last)
{
    vec wv[3];
    UNROLL
    for (int v = 0; v < f.full; v++)
        wv[v] = load(w + v * LANES);
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        const float *p = row_of(a, row, r);
        const vec x = last ? one_input(p) : two_inputs(p);
        UNROLL
        for (int v = 0; v < f.full; v++)
            sum[r][v] += x * wv[v];
    }
}

/* f.full vectors of pairs: 8 outputs each. */
INLINE void add_pairs(const struct micro_strip *m, int64_t row, struct soon *soon,
                      const struct form f)
{
    const struct form out = {f.rows, f.full / 2, true};
    const struct extra e = {true};
    const int64_t step = m->row_step;
    const float *w = m->w, *fetched = soon->at;
    vec sum[PAIR_ROWS][3];
    UNROLL
    for (int r = 0; r < f.rows; r++)
        UNROLL
    for (int v = 0; v < f.full; v++)
        sum[r][v] = (vec){0};
    for (int64_t l = 0; l < m->lines; l++) {
        const float *const line = m->a + row * step + l * m->line_step;
        const float *a[5] = {line, line + 3 * step, line + 6 * step, line + 9 * step,
                             line + 12 * step};
        for (int64_t k = m->kc; k > 1; k -= 2) {
            __builtin_prefetch(fetched, 0, 2);
            fetched += 2 * soon->step;
            step_pairs(a, step, w, sum, f, false);
            UNROLL
            for (int i = 0; i < 5; i++)
                a[i] += 2;
            w += f.full * LANES;
        }
        if (m->kc % 2) {
            step_pairs(a, step, w, sum, f, true);
            w += f.full * LANES;
        }
    }
    soon->at = fetched;
    struct sums s;
    begin(m, row, &s, out, e);
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        if (f.full == 3)
            s.full[r][0] += add_lanes(sum[r][0], sum[r][1]);
        const vec rest = add_lanes(sum[r][f.full - 1], sum[r][f.full - 1]);
        s.half[r] += (hvec)_mm512_castps512_ps256((__m512)rest);
    }
    finish(m, row, &s, out, e);
}

/* 24 outputs are 3 vectors of pairs in each row, 8 outputs one. */
/* clang-format off */
#define PAIR_FORMS_3(X) X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3) X(9, 3)
#define PAIR_FORMS_1(X) X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) \
                        X(10, 1) X(11, 1) X(12, 1) X(13, 1) X(14, 1)
/* clang-format on */

#define PAIR_INSTANCE(r, full)                                                                     \
    static void pairs_##r##x##full(const struct micro_strip *m, int64_t row, int64_t groups)       \
    {                                                                                              \
        const struct form f = {r, full, false};                                                    \
        struct soon soon = soon_of(m, groups, f);                                                  \
        for (int64_t g = 0; g < groups; g++, row += (r)) {                                         \
            if (g == FETCHING)                                                                     \
                soon.step = 0;                                                                     \
            add_pairs(m, row, &soon, f);                                                           \
        }                                                                                          \
    }
#define PAIR_NAME(r, full) pairs_##r##x##full,

PAIR_FORMS_3(PAIR_INSTANCE)
PAIR_FORMS_1(PAIR_INSTANCE)

static strip_instance *const pairs_of_24[] = {PAIR_FORMS_3(PAIR_NAME)};
static strip_instance *const pairs_of_8[] = {PAIR_FORMS_1(PAIR_NAME)};

static void strip_pairs(const struct micro_strip *m)
{
    const bool wide = m->width > HALF;
    strip_instance *const *table = wide ? pairs_of_24 : pairs_of_8;
    const int64_t limit = wide ? 9 : 14, most = m->most > 0 ? min_i64(limit, m->most) : limit;
    const int64_t groups = div_up(m->rows, most), few = m->rows / groups;
    const int64_t more = m->rows - few * groups;
    table[few - 1](m, 0, groups - more);
    if (more == 0)
        return;
    struct micro_strip rest = *m;
    rest.soon = NULL;
    table[few](&rest, m->rows - more * (few + 1), more);
}
#else
static void strip_pairs(const struct micro_strip *m)
{
}
#endif

/* Groups of about equal numbers of rows: a small one would have too few accumulators to hide the
 * latency of FMAs. */
int64_t EW_K(micro_strip)(const struct micro_strip *m)
{
    static strip_instance *const table[MR][NR_LAST / PIECE] = {ROWS(INSTANCE_ROW, strip)};
    const int64_t width = packed_width(m->width) / PIECE - 1;
    if (PAIRS && m->pairs) {
        strip_pairs(m);
        return 0;
    }
#if defined(EW_ISA_IS_avx2)
    int64_t most = most_rows[width];
#else
    int64_t most = MR;
#endif
    if (m->most > 0)
        most = min_i64(most, m->most);
    const int64_t groups = div_up(m->rows, most), few = m->rows / groups;
    const int64_t more = m->rows - few * groups; /* groups with one more row */
    const int64_t first = m->rows - more * (few + 1);
    strip_instance *const act = act_instance(m, few);
    (act ? act : table[few - 1][width])(m, 0, groups - more);
    if (more == 0)
        return act ? m->rows : 0;
    struct micro_strip rest = *m;
    rest.soon = NULL;
    strip_instance *const act_more = act ? act_instance(m, few + 1) : NULL;
    (act_more ? act_more : table[few][width])(&rest, first, more);
    return act_more ? m->rows : act ? first : 0;
}
