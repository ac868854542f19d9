/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel of 8-bit products, once for every number of rows and width, and what becomes of
 * its sums. */
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/int8/int8_gemm.h"

#define AHEAD     8  /* words of k that weights are fetched ahead */
#define AHEAD_FEW 32 /* where few rows wait for them */

/* ---- From sums to bytes ---- */

static void finish_float(const struct qmicro *m, vec t, int v, int vectors, int64_t row)
{
    float *y = (float *)m->y + row * m->y_step;
    for (int l = 0; l < LANES; l++) {
        const int column = vectors == 2 ? column_of(v, l) : l;
        if (column < m->width)
            y[column] = t[l];
    }
}

/* Sums whose ratios are below 1, a clamp, and a table where there is one. */
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

/* What does not change from row to row. */
struct finish {
    struct qplain p;
    vec mid_lo, mid_hi, mid_ratio, add_ratio;
    vec add_zero, add_base; /* and FLOAT_BASE more */
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

/* Rounds and adds: t is not rounded yet, b is what is added, less its zero point. */
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

/* Whether a residual is all that is added, and sums with it fit into an int32: they need not be
 * clamped before they are rounded, since integers saturate on the way to bytes. */
INLINE bool is_residual(const struct ew_qend *e)
{
    const bool fit = fabsf(e->mid_ratio) < 1e6f && fabsf(e->add_ratio) < 1e6f;
    return fit && e->add && !e->table && !e->to_float;
}

/* finish_rows of two vectors with a residual; what stores to y might change is read before. */
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

/* Not inline: the forms of the micro-kernel would each have a copy of all ends. */
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

/* Whole rows, two at a time, as finish_plain does one: sums do not leave registers. */
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

/* `e` is made once for all blocks of a panel. */
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
    struct qsums out; /* a copy: the sums themselves must not be addressed */
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

/* The words of weights: of bytes, of two 16-bit numbers, or of two such that are kept as bytes. */
enum words { WORDS_OWN, WORDS_PAIRS, WORDS_KEPT_AS_BYTES };

/* Constants of an instance. */
struct form {
    int rows, vectors;
    enum words words;
};

INLINE int64_t size_of(const enum words words)
{
    return words == WORDS_KEPT_AS_BYTES ? 2 : 4;
}

INLINE vint load_words(const uint8_t *w, const enum words words)
{
    return words == WORDS_KEPT_AS_BYTES ? load_byte_pairs((const int8_t *)w)
                                        : load_int((const int32_t *)(const void *)w);
}

INLINE int ahead(const struct form f)
{
    return f.rows > 2 && f.words != WORDS_KEPT_AS_BYTES ? AHEAD : AHEAD_FEW;
}

/* Multiples 1, 2, 4 and 8 of an index register are free in an x86 address: five pointers reach 14
 * rows. */
INLINE void step(const uint8_t *const a[5], int64_t row, const uint8_t *w, struct qsums *s,
                 const struct form f)
{
    static const struct {
        int base, times;
    } at[14] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {0, 4}, {1, 2}, {2, 0},
                {1, 4}, {0, 8}, {3, 0}, {2, 4}, {1, 8}, {4, 0}, {3, 4}};
    vint wv[SIDE];
    UNROLL
    for (int v = 0; v < f.vectors; v++) {
        wv[v] = load_words(w + v * LANES * size_of(f.words), f.words);
        if (v * LANES % LINE == 0)
            __builtin_prefetch(w + (ahead(f) * f.vectors + v) * LANES * 4);
    }
    UNROLL
    for (int r = 0; r < f.rows; r++) {
        const vint x = splat_word(a[at[r].base] + at[r].times * row);
        UNROLL
        for (int v = 0; v < f.vectors; v++)
            s->v[r][v] = (f.words == WORDS_PAIRS ? dot_pairs : dot)(s->v[r][v], x, wv[v]);
    }
}

INLINE void sum_up(const struct qmicro *m, struct qsums *s, const struct form f)
{
    const int64_t row = m->row_step;
    const uint8_t *w = m->w;
    for (int64_t l = 0; l < m->lines; l++) {
        const uint8_t *const line = m->a + l * m->line_step;
        const uint8_t *a[5] = {line, line + 3 * row, line + 6 * row, line + 9 * row,
                               line + 12 * row};
        TWO_STEPS
        for (int64_t k = 0; k < m->words; k++) {
            if (f.words == WORDS_PAIRS) {
                UNROLL
                for (int i = 0; i < SIDE; i++)
                    __builtin_prefetch(m->prefetch[i] + k * SIDE * LANES, 0, 2);
            }
            step(a, row, w, s, f);
            UNROLL
            for (int i = 0; i < 5; i++)
                a[i] += sizeof(int32_t);
            w += f.vectors * LANES * size_of(f.words);
        }
    }
}

INLINE void run_block(const struct qmicro *m, const block_end *e, const int rows, const int vectors)
{
    struct qsums s;
    begin(m, &s, rows, vectors);
    if (BYTE_ROWS && m->bytes)
        sum_up(m, &s, (struct form){rows, vectors, WORDS_KEPT_AS_BYTES});
    else
        sum_up(m, &s, (struct form){rows, vectors, WORDS_OWN});
    finish(m, e, &s, rows, vectors);
}

/* From one block of WIDE columns to the next. */
INLINE void next_block(struct qmicro *m)
{
    const int64_t word = m->bytes ? 2 : 4;
    m->w = (const uint8_t *)m->w + m->lines * m->words * WIDE * word;
    m->bias += WIDE;
    m->ratio += WIDE;
    m->y = (uint8_t *)m->y + WIDE * (m->end->to_float ? sizeof(float) : 1);
    m->add = m->add ? m->add + WIDE : NULL;
}

FORMED void run_rows(struct qmicro *m, const int rows, const int vectors)
{
    const block_end e = block_end_of(m->end);
    int64_t left = m->width;
    for (;;) {
        m->width = min_i64(left, WIDE);
        run_block(m, &e, rows, vectors);
        left -= WIDE;
        if (left <= 0)
            break;
        next_block(m);
    }
}

FORMED void run_pairs(const struct qmicro *m, const int rows)
{
    struct qsums s = {0};
    sum_up(m, &s, (struct form){rows, SIDE, WORDS_PAIRS});
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
        run_rows(m, r, v);                                                                         \
    }
#define PAIRS(r)                                                                                   \
    static void pairs_##r(const struct qmicro *m)                                                  \
    {                                                                                              \
        run_pairs(m, r);                                                                           \
    }
#define INSTANCES(r)  INSTANCE(r, 1) INSTANCE(r, 2) PAIRS(r)
#define NAMES(r)      {rows_##r##x1, rows_##r##x2},
#define PAIR_NAMES(r) pairs_##r,

/* clang-format off */
#if QMR == 14
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif QMR == 8
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
/* clang-format on */

EACH_ROWS(INSTANCES)

void EW_K(qmicro)(struct qmicro *m, int rows)
{
    static void (*const table[QMR][SIDE])(struct qmicro *) = {EACH_ROWS(NAMES)};
    table[rows - 1][m->width > LANES](m);
}

void EW_K(qmicro_pairs)(const struct qmicro *m, int rows)
{
    static void (*const table[QMR])(const struct qmicro *) = {EACH_ROWS(PAIR_NAMES)};
    table[rows - 1](m);
}
