/* SPDX-License-Identifier: Apache-2.0 */
/* The 8-bit micro-kernel, instantiated for every number of rows and width, and its epilogues. */
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/int8/int8_gemm.h"

#define AHEAD     8                   /* prefetch distance of weights in steps of k */
#define AHEAD_FEW (SUMS_16 ? 64 : 32) /* the same with few rows */

/* ---- Epilogues: from sums to bytes ---- */

static void finish_float(const struct qmicro *m, vec t, int v, int vectors, int64_t row)
{
    float *y = (float *)m->y + row * m->y_step;
    for (int l = 0; l < LANES; l++) {
        const int column = vectors == 2 ? column_of(v, l) : l;
        if (column < m->width)
            y[column] = t[l];
    }
}

/* Ratios below 1, a clamp and an optional table. */
INLINE void finish_plain(const struct qmicro *m, const struct qplain *p, const vint *sums, int rows,
                         const int vectors, const uint8_t *table)
{
    const vec ratio[SIDE] = {load(m->ratio), load(m->ratio + (vectors - 1) * LANES)};
    const int64_t y_step = m->y_step, width = m->width;
    uint8_t *y = m->y;
    for (int r = 0; r < rows; r++, sums += SIDE, y += y_step) {
        const v16 q = vectors == 2
                          ? narrow2(requantize(sums[0], ratio[0]), requantize(sums[1], ratio[1]))
                          : narrow1(requantize(sums[0], ratio[0]));
        const vbytes bytes = plain_bytes(q, p);
        store_bytes(y, table ? lookup(bytes, table) : bytes, width);
    }
}

/* Values that are the same for all rows. */
struct finish {
    struct qplain p;
    vec mid_lo, mid_hi, mid_ratio, add_ratio;
    vec add_zero, add_base; /* add_base: plus FLOAT_BASE */
    vbytes add_flip;
    vec a, b; /* ratios of the two vectors */
};

INLINE struct finish finish_of(const struct qmicro *m, const int vectors)
{
    const struct ew_qend *e = m->end;
    return (struct finish){.p = plain_of(e),
                           .mid_lo = splat((float)-e->mid.zero),
                           .mid_hi = splat((float)(255 - e->mid.zero)),
                           .mid_ratio = splat(e->mid_ratio),
                           .add_ratio = splat(e->add_ratio),
                           .add_zero = splat((float)e->of_add.zero),
                           .add_base = splat(FLOAT_BASE + (float)e->of_add.zero),
                           .add_flip = e->of_add.flip - (vbytes){0},
                           .a = load(m->ratio),
                           .b = load(m->ratio + (vectors - 1) * LANES)};
}

/* Adds a residual: t is the scaled sum, not yet rounded, b the residual minus its zero point. */
INLINE vec add_to(const struct finish *f, vec t, vec b)
{
    const vec mid = round_float(vmin(vmax(t, f->mid_lo), f->mid_hi)) * f->mid_ratio;
    return mid + b * f->add_ratio;
}

INLINE vint add_int(const struct finish *f, vec t, vint b)
{
    return requantize_any(add_to(f, t, to_float(b) - f->add_zero), &f->p);
}

INLINE v16 finish_row(const struct qmicro *m, const struct finish *f, const vint *sums,
                      const int vectors, int64_t row)
{
    const vec a = to_float(sums[0]) * f->a, b = to_float(sums[vectors - 1]) * f->b;
    if (!m->add) {
        const vint q = requantize_any(a, &f->p);
        return vectors == 1 ? narrow1(q) : narrow2(q, requantize_any(b, &f->p));
    }
    const v16 other = widen(load_bytes(m->add + row * m->y_step, m->width) ^ f->add_flip);
    if (vectors == 1)
        return narrow1(add_int(f, a, widen_one(other)));
    return narrow2(add_int(f, a, widen_a(other)), add_int(f, b, widen_b(other)));
}

INLINE void finish_rows(const struct qmicro *m, const vint *sums, int rows, const int vectors)
{
    const struct ew_qend *e = m->end;
    const struct finish f = finish_of(m, vectors);
    for (int r = 0; r < rows; r++, sums += SIDE) {
        if (e->to_float) {
            finish_float(m, to_float(sums[0]) * f.a, 0, vectors, r);
            if (vectors == 2)
                finish_float(m, to_float(sums[1]) * f.b, 1, vectors, r);
            continue;
        }
        const vbytes q = plain_bytes(finish_row(m, &f, sums, vectors, r), &f.p);
        store_bytes((uint8_t *)m->y + r * m->y_step, e->table ? lookup(q, e->table) : q, m->width);
    }
}

/* True if the epilogue is a residual addition whose result fits into an int32: it needs no clamp
 * before rounding, since narrowing saturates. */
INLINE bool is_residual(const struct ew_qend *e)
{
    const bool fit = fabsf(e->mid_ratio) < 1e6f && fabsf(e->add_ratio) < 1e6f;
    return fit && e->add && !e->table && !e->to_float;
}

/* finish_rows for two vectors with a residual; members that stores to y might alias are read
 * before. */
INLINE void finish_residual(const struct qmicro *m, const vint *sums, int rows)
{
    const struct finish f = finish_of(m, 2);
    const int64_t y_step = m->y_step, width = m->width;
    const uint8_t *add = m->add;
    uint8_t *y = m->y;
    for (int r = 0; r < rows; r++, sums += SIDE, add += y_step, y += y_step) {
        const v16 other = widen(load_bytes(add, width) ^ f.add_flip);
        const vec a = add_to(&f, to_float(sums[0]) * f.a, float_a(other) - f.add_base);
        const vec b = add_to(&f, to_float(sums[1]) * f.b, float_b(other) - f.add_base);
        store_bytes(y, plain_bytes(narrow2(round_int(a), round_int(b)), &f.p), width);
    }
}

/* Not inlined: every instance of the micro-kernel would have a copy of all epilogues. */
__attribute__((noinline)) void EW_K(qfinish)(const struct qmicro *m, const vint *sums, int rows,
                                             int vectors)
{
    const struct ew_qend *e = m->end;
    const struct qplain p = plain_of(e);
    if (vectors == 2 && m->plain)
        finish_plain(m, &p, sums, rows, 2, NULL);
    else if (vectors == 2 && is_residual(e))
        finish_residual(m, sums, rows);
    else if (vectors == 2 && e->table && e->ratios_below_1 && !e->add && !e->to_float)
        finish_plain(m, &p, sums, rows, 2, e->table);
    else if (vectors == 2)
        finish_rows(m, sums, rows, 2);
    else
        finish_rows(m, sums, rows, 1);
}

/* ---- Sums ---- */

/* clang-format off */
#if QMR == 14
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif QMR == 8
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
/* clang-format on */

struct qsums {
    vint v[QMR][SIDE];
};

INLINE void begin(const struct qmicro *m, struct qsums *s, const int rows, const int vectors)
{
    UNROLL
    for (int v = 0; v < vectors; v++) {
        const vint bias = load_int(m->bias + v * LANES);
        UNROLL
        for (int r = 0; r < rows; r++)
            s->v[r][v] = bias;
    }
}

#if defined(EW_ISA_IS_avx2)
typedef struct plain_end block_end;
#define block_end_of plain_end_of

/* finish_plain for whole rows, two at a time, with sums kept in registers. */
INLINE void finish_whole(const struct qmicro *m, const struct plain_end *e, const struct qsums *s,
                         const int rows)
{
    const vec ratio[SIDE] = {load(m->ratio), load(m->ratio + LANES)};
    const int64_t y_step = m->y_step;
    uint8_t *y = m->y;
    UNROLL
    for (int r = 0; r < rows; r += 2, y += 2 * y_step) {
        const bool two = r + 1 < rows;
        const vint *a = s->v[r], *b = s->v[two ? r + 1 : r];
        store_two_rows(y, two ? y + y_step : y,
                       narrow2(requantize(a[0], ratio[0]), requantize(a[1], ratio[1])),
                       narrow2(requantize(b[0], ratio[0]), requantize(b[1], ratio[1])), e);
    }
}
#else
typedef struct qplain block_end;
#define block_end_of plain_of
#endif

/* `e` is computed once for all blocks of a panel. */
INLINE void finish(const struct qmicro *m, const block_end *e, struct qsums *s, const int rows,
                   const int vectors)
{
#if defined(EW_ISA_IS_avx2)
    if (m->plain && vectors == 2 && m->width == WIDE) {
        finish_whole(m, e, s, rows);
        return;
    }
    const struct qplain p = plain_of(m->end);
#else
    const struct qplain p = *e;
#endif
    struct qsums out; /* a copy: taking the address of the sums would keep them in memory */
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            out.v[r][v] = s->v[r][v];
    }
    if (m->plain)
        finish_plain(m, &p, out.v[0], rows, vectors, NULL);
    else
        EW_K(qfinish)(m, out.v[0], rows, vectors);
}

/* Constants of an instance. */
struct form {
    int rows, vectors;
    bool pairs; /* words of two int16 (qmicro_pairs) */
};

/* x86 addresses scale an index register by 1, 2, 4 or 8, so five pointers reach 14 rows. */
static const struct {
    int base, times;
} row_at[14] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {0, 4}, {1, 2}, {2, 0},
                {1, 4}, {0, 8}, {3, 0}, {2, 4}, {1, 8}, {4, 0}, {3, 4}};

/* The rows' current position in a line. */
struct rows {
    const uint8_t *a[5];
    int64_t step;
};

INLINE struct rows rows_at(const uint8_t *a, int64_t row)
{
    return (struct rows){{a, a + 3 * row, a + 6 * row, a + 9 * row, a + 12 * row}, row};
}

INLINE vint splat_row(const struct rows *a, const int r, const int64_t at)
{
    return splat_word(a->a[row_at[r].base] + row_at[r].times * a->step + at);
}

INLINE void next_rows(struct rows *a, const int64_t bytes)
{
    UNROLL
    for (int i = 0; i < 5; i++)
        a->a[i] += bytes;
}

INLINE void fetch(const int32_t *w, const struct form f, const int words)
{
    const int ahead = f.rows > 2 ? AHEAD : AHEAD_FEW;
    UNROLL
    for (int i = 0; i < words * f.vectors * LANES; i += LINE)
        __builtin_prefetch(w + ahead * words * f.vectors * LANES + i);
}

INLINE void step(const struct rows *a, const int32_t *w, struct qsums *s, const struct form f)
{
    vint wv[SIDE];
    fetch(w, f, 1);
    UNROLL
    for (int v = 0; v < f.vectors; v++)
        wv[v] = load_int(w + v * LANES);
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        const vint x = splat_row(a, r, 0);
        UNROLL
        for (int v = 0; v < f.vectors; v++)
            s->v[r][v] = (f.pairs ? dot_pairs : dot)(s->v[r][v], x, wv[v]);
    }
}

INLINE void sum_up(const struct qmicro *m, struct qsums *s, const struct form f)
{
    const int32_t *w = m->w;
    for (int64_t l = 0; l < m->lines; l++) {
        struct rows a = rows_at(m->a + l * m->line_step, m->row_step);
        TWO_STEPS
        for (int64_t k = 0; k < m->words; k++) {
            if (f.pairs) {
                UNROLL
                for (int i = 0; i < SIDE; i++)
                    __builtin_prefetch(m->prefetch[i] + k * SIDE * LANES, 0, 2);
            }
            step(&a, w, s, f);
            next_rows(&a, sizeof(int32_t));
            w += f.vectors * LANES;
        }
    }
}

#if SUMS_16
/* One step of byte products: sums of both words fit into 16 bits (`together`), or of each word
 * alone. */
INLINE void step_bytes(const struct rows *a, const int32_t *w, struct qsums *s, const bool together,
                       const struct form f)
{
    const __m256i one = _mm256_set1_epi16(1);
    fetch(w, f, STEP_WORDS);
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        const __m256i x = (__m256i)splat_row(a, r, 0), z = (__m256i)splat_row(a, r, 4);
        UNROLL
        for (int v = 0; v < f.vectors; v++) {
            const __m256i first = (__m256i)load_int(w + v * LANES);
            const __m256i next = (__m256i)load_int(w + (f.vectors + v) * LANES);
            const __m256i p = _mm256_maddubs_epi16(x, first), q = _mm256_maddubs_epi16(z, next);
            vint sum = s->v[r][v];
            if (together) {
                sum = wrap_add(sum, (vint)_mm256_madd_epi16(_mm256_add_epi16(p, q), one));
            } else {
                sum = in_order(wrap_add(sum, (vint)_mm256_madd_epi16(p, one)));
                sum = wrap_add(sum, (vint)_mm256_madd_epi16(q, one));
            }
            s->v[r][v] = in_order(sum);
        }
    }
}

/* A bit mask of the steps, of LIMITS, that might saturate. */
INLINE uint32_t large_steps(const uint8_t *most, const uint8_t *limit)
{
    const __m256i above = _mm256_subs_epu8(_mm256_loadu_si256((const void *)most),
                                           _mm256_loadu_si256((const void *)limit));
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(above, _mm256_setzero_si256()));
}

/* Widens the panel to 16 bits, the even bytes of each word first, and removes the overflow of
 * pixel_low: values become pixel - low. */
static __attribute__((noinline)) void widen_panel(struct qmicro *m, int rows)
{
    const __m128i byte = _mm_set1_epi16(255);
    const __m128i low_8 = _mm_set1_epi8((char)m->low), low_16 = _mm_set1_epi16(m->low);
    for (int r = 0; r < rows; r++) {
        __m128i *to = (void *)(m->wide + r * wide_row(m->lines * m->words));
        for (int64_t l = 0; l < m->lines; l++) {
            const uint8_t *const a = m->a + r * m->row_step + l * m->line_step;
            for (int64_t i = 0; i < m->words * (int64_t)sizeof(int32_t); i += STEP_BYTES, to++) {
                const __m128i x = _mm_add_epi8(_mm_loadl_epi64((const void *)(a + i)), low_8);
                const __m128i even = _mm_and_si128(x, byte), odd = _mm_srli_epi16(x, 8);
                _mm_storeu_si128(to, _mm_sub_epi16(_mm_unpacklo_epi32(even, odd), low_16));
            }
        }
    }
    m->is_widened = true;
}

/* One word of bytes, multiplied as two words of int16. */
INLINE void word_widened(const struct rows *a, const int32_t *w, struct qsums *s,
                         const struct form f)
{
    vint both[SIDE];
    UNROLL
    for (int v = 0; v < f.vectors; v++)
        both[v] = load_int(w + v * LANES);
    UNROLL
    for (int i = 0; i < 2; i++) {
        __m256i part[SIDE];
        UNROLL
        for (int v = 0; v < f.vectors; v++)
            part[v] = _mm256_srai_epi16(_mm256_slli_epi16((__m256i)both[v], i ? 0 : 8), 8);
        UNROLL
        for (int r = 0; r < f.rows; r++) {
            const vint x = splat_row(a, r, 4 * i);
            UNROLL
            for (int v = 0; v < f.vectors; v++)
                s->v[r][v] = in_order(dot(s->v[r][v], x, (vint)part[v]));
        }
    }
}

INLINE void copy_sums(struct qsums *to, const struct qsums *from, const struct form f)
{
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        UNROLL
        for (int v = 0; v < f.vectors; v++)
            to->v[r][v] = from->v[r][v];
    }
}

/* The steps in the bit mask `which`, by 16-bit products.  Not inlined: it would take registers from
 * the other loops. */
#define WIDENED(r, vectors)                                                                        \
    static __attribute__((noinline)) void widened_##r##x##vectors(                                 \
        const uint8_t *panel, int64_t row, const int32_t *w, uint32_t which, struct qsums *sums)   \
    {                                                                                              \
        const struct form f = {r, vectors, false};                                                 \
        struct qsums s;                                                                            \
        copy_sums(&s, sums, f);                                                                    \
        for (; which; which &= which - 1) {                                                        \
            const int64_t k = __builtin_ctz(which);                                                \
            struct rows a = rows_at(panel + k * 2 * STEP_BYTES, row);                              \
            for (int i = 0; i < STEP_WORDS; i++) {                                                 \
                word_widened(&a, w + (k * STEP_WORDS + i) * (vectors)*LANES, &s, f);               \
                next_rows(&a, 2 * sizeof(int32_t));                                                \
            }                                                                                      \
        }                                                                                          \
        copy_sums(sums, &s, f);                                                                    \
    }
#define WIDENED_BOTH(r)  WIDENED(r, 1) WIDENED(r, 2)
#define WIDENED_NAMES(r) {widened_##r##x1, widened_##r##x2},
EACH_ROWS(WIDENED_BOTH)

/* The same for steps from `at` of the panel on. */
INLINE void steps_widened(struct qmicro *m, int64_t at, const int32_t *w, uint32_t which,
                          struct qsums *s, const struct form f)
{
    static void (*const table[QMR][SIDE])(const uint8_t *, int64_t, const int32_t *, uint32_t,
                                          struct qsums *) = {EACH_ROWS(WIDENED_NAMES)};
    if (!m->is_widened)
        widen_panel(m, f.rows);
    struct qsums out; /* a copy: taking the address of the sums would keep them in memory */
    copy_sums(&out, s, f);
    table[f.rows - 1][f.vectors - 1](m->wide + at * 2 * STEP_BYTES, wide_row(m->lines * m->words),
                                     w, which, &out);
    copy_sums(s, &out, f);
}

INLINE void steps_bytes(const struct rows *a, const int32_t *w, uint32_t which, struct qsums *s,
                        const bool together, const struct form f)
{
    for (; which; which &= which - 1) {
        const int64_t k = __builtin_ctz(which);
        struct rows at = *a;
        next_rows(&at, k * STEP_BYTES);
        step_bytes(&at, w + k * STEP_WORDS * f.vectors * LANES, s, together, f);
    }
}

/* Integer sums do not depend on the order: all steps of one kind are computed together, so that
 * branches are predicted. */
INLINE void sum_up_bytes(struct qmicro *m, struct qsums *s, const struct form f)
{
    const int32_t *w = m->w;
    const uint8_t *most = m->most, *limit = m->limit;
    int64_t at = 0;
    for (int64_t l = 0; l < m->lines; l++, most += m->limits, limit += 2 * m->limits) {
        struct rows a = rows_at(m->a + l * m->line_step, m->row_step);
        for (int64_t k = 0, steps; k < m->words / STEP_WORDS; k += LIMITS, at += steps) {
            steps = min_i64(m->words / STEP_WORDS - k, LIMITS);
            const uint32_t all = (uint32_t)(~0ull >> (64 - steps));
            const uint32_t large = large_steps(most + k, limit + k);
            const uint32_t alone = large_steps(most + k, limit + m->limits + k);
            steps_bytes(&a, w, all & ~large, s, true, f);
            if (large & ~alone)
                steps_bytes(&a, w, large & ~alone, s, false, f);
            if (alone)
                steps_widened(m, at, w, alone, s, f);
            next_rows(&a, steps * STEP_BYTES);
            w += steps * STEP_WORDS * f.vectors * LANES;
        }
    }
}
#endif

INLINE void run_block(struct qmicro *m, const block_end *e, const int rows, const int vectors,
                      const bool bytes)
{
    struct qsums s;
    begin(m, &s, rows, vectors);
#if SUMS_16
    if (bytes)
        sum_up_bytes(m, &s, (struct form){rows, vectors, false});
    else
#endif
        sum_up(m, &s, (struct form){rows, vectors, false});
    finish(m, e, &s, rows, vectors);
}

/* Advances to the next block of WIDE columns. */
INLINE void next_block(struct qmicro *m)
{
    m->w = (const int32_t *)m->w + m->lines * m->words * WIDE;
#if SUMS_16
    m->limit += m->lines * 2 * m->limits;
#endif
    m->bias += WIDE;
    m->ratio += WIDE;
    m->y = (uint8_t *)m->y + WIDE * (m->end->to_float ? sizeof(float) : 1);
    m->add = m->add ? m->add + WIDE : NULL;
}

FORMED void run_rows(struct qmicro *m, const int rows, const int vectors, const bool bytes)
{
    const block_end e = block_end_of(m->end);
    int64_t left = m->width;
    for (;;) {
        m->width = min_i64(left, WIDE);
        run_block(m, &e, rows, vectors, bytes);
        left -= WIDE;
        if (left <= 0)
            break;
        next_block(m);
    }
}

FORMED void run_pairs(const struct qmicro *m, const int rows)
{
    struct qsums s = {0};
    sum_up(m, &s, (struct form){rows, SIDE, true});
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < SIDE; v++)
            store_int((int32_t *)m->y + r * m->y_step + v * LANES, s.v[r][v]);
    }
}

/* ---- All instances ---- */

#define INSTANCE(r, v)                                                                             \
    static void rows_##r##x##v(struct qmicro *m)                                                   \
    {                                                                                              \
        run_rows(m, r, v, false);                                                                  \
    }
#define BYTES_INSTANCE(r, v)                                                                       \
    static void bytes_##r##x##v(struct qmicro *m)                                                  \
    {                                                                                              \
        run_rows(m, r, v, true);                                                                   \
    }
#define PAIRS(r)                                                                                   \
    static void pairs_##r(const struct qmicro *m)                                                  \
    {                                                                                              \
        run_pairs(m, r);                                                                           \
    }
#define INSTANCES(r)       INSTANCE(r, 1) INSTANCE(r, 2) PAIRS(r)
#define BYTES_INSTANCES(r) BYTES_INSTANCE(r, 1) BYTES_INSTANCE(r, 2)
#define NAMES(r)           {rows_##r##x1, rows_##r##x2},
#define BYTES_NAMES(r)     {bytes_##r##x1, bytes_##r##x2},
#define PAIR_NAMES(r)      pairs_##r,

EACH_ROWS(INSTANCES)

#if SUMS_16
EACH_ROWS(BYTES_INSTANCES)
#endif

void EW_K(qmicro)(struct qmicro *m, int rows)
{
    static void (*const table[QMR][SIDE])(struct qmicro *) = {EACH_ROWS(NAMES)};
#if SUMS_16
    static void (*const of_bytes[QMR][SIDE])(struct qmicro *) = {EACH_ROWS(BYTES_NAMES)};
    if (m->bytes) {
        of_bytes[rows - 1][m->width > LANES](m);
        return;
    }
#endif
    table[rows - 1][m->width > LANES](m);
}

void EW_K(qmicro_pairs)(const struct qmicro *m, int rows)
{
    static void (*const table[QMR])(const struct qmicro *) = {EACH_ROWS(PAIR_NAMES)};
    table[rows - 1](m);
}
