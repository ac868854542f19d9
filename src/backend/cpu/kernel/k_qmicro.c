/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel of 8-bit products, once for every number of rows and width, and what becomes of
 * its sums. */
#include "backend/cpu/kernel/qcore.h"

#define AHEAD 8 /* words of k that weights are fetched ahead */

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

/* Adds and rounds once more: m is what is rounded so far, b what is added. */
INLINE vint add_int(const struct ew_qend *e, vec m, vint b)
{
    const vec mid = m * splat(e->mid_ratio);
    const vec other = to_float(b - e->of_add.zero) * splat(e->add_ratio);
    const float lo = (float)(e->lo - e->y.zero), hi = (float)(e->hi - e->y.zero);
    return round_int(clamp(mid + other, lo, hi));
}

/* Both vectors with what is added to them. */
static v16 finish_add(const struct qmicro *m, vec a, vec b, int vectors, int64_t row)
{
    const struct ew_qend *e = m->end;
    const float lo = (float)-e->mid.zero, hi = (float)(255 - e->mid.zero);
    const vbytes bytes = load_bytes(m->add + row * m->y_step, m->width);
    const v16 other = widen(bytes ^ (e->of_add.flip - (vbytes){0}));
    a = round_float(clamp(a, lo, hi));
    b = round_float(clamp(b, lo, hi));
    if (vectors == 1)
        return narrow1(add_int(e, a, widen_one(other)));
    return narrow2(add_int(e, a, widen_a(other)), add_int(e, b, widen_b(other)));
}

void EW_K(qfinish)(const struct qmicro *m, const vint *sums, int vectors, int64_t row)
{
    const struct ew_qend *e = m->end;
    const struct qplain p = plain_of(e);
    const vec a = to_float(sums[0]) * load(m->ratio);
    const vec b = vectors == 2 ? to_float(sums[1]) * load(m->ratio + LANES) : a;
    if (e->to_float) {
        finish_float(m, a, 0, vectors, row);
        if (vectors == 2)
            finish_float(m, b, 1, vectors, row);
        return;
    }
    const vint p_a = round_int(clamp(a, p.lo, p.hi)), p_b = round_int(clamp(b, p.lo, p.hi));
    const v16 q = m->add         ? finish_add(m, a, b, vectors, row)
                  : vectors == 2 ? narrow2(p_a, p_b)
                                 : narrow1(p_a);
    const vbytes bytes = plain_bytes(q, &p);
    store_bytes((uint8_t *)m->y + row * m->y_step, e->table ? lookup(bytes, e->table) : bytes,
                m->width);
}

/* ---- Sums ---- */

struct qsums {
    vint v[MR][SIDE];
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

INLINE void finish(const struct qmicro *m, struct qsums *s, const int rows, const int vectors)
{
    if (!m->plain) {
        struct qsums out; /* a copy: the sums themselves must not be addressed */
        UNROLL
        for (int r = 0; r < rows; r++) {
            UNROLL
            for (int v = 0; v < vectors; v++)
                out.v[r][v] = s->v[r][v];
        }
        for (int r = 0; r < rows; r++)
            EW_K(qfinish)(m, out.v[r], vectors, r);
        return;
    }
    const struct qplain p = plain_of(m->end);
    const vec a = load(m->ratio), b = vectors == 2 ? load(m->ratio + LANES) : a;
    uint8_t *y = m->y;
    UNROLL
    for (int r = 0; r < rows; r++) {
        const v16 q = vectors == 2
                          ? narrow2(requantize(s->v[r][0], a, &p), requantize(s->v[r][1], b, &p))
                          : narrow1(requantize(s->v[r][0], a, &p));
        store_bytes(y, plain_bytes(q, &p), m->width);
        y += m->y_step;
    }
}

/* Multiples 1, 2, 4 and 8 of an index register are free in an x86 address: five pointers reach 14
 * rows. */
INLINE void step(const uint8_t *const a[5], int64_t row, const int32_t *w, struct qsums *s,
                 const int rows, const int vectors)
{
    static const struct {
        int base, times;
    } at[14] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {0, 4}, {1, 2}, {2, 0},
                {1, 4}, {0, 8}, {3, 0}, {2, 4}, {1, 8}, {4, 0}, {3, 4}};
    vint wv[SIDE];
    UNROLL
    for (int v = 0; v < vectors; v++) {
        wv[v] = load_int(w + v * LANES);
        __builtin_prefetch(w + (AHEAD * vectors + v) * LANES);
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        const vint x = splat_word(a[at[r].base] + at[r].times * row);
        UNROLL
        for (int v = 0; v < vectors; v++)
            s->v[r][v] = dot(s->v[r][v], x, wv[v]);
    }
}

INLINE void sum_up(const struct qmicro *m, const int rows, const int vectors)
{
    struct qsums s;
    begin(m, &s, rows, vectors);
    const int64_t row = m->row_step;
    const int32_t *w = m->w;
    const uint8_t *a[5] = {m->a, m->a + 3 * row, m->a + 6 * row, m->a + 9 * row, m->a + 12 * row};
    for (int64_t k = m->words; k > 0; k--) {
        step(a, row, w, &s, rows, vectors);
        UNROLL
        for (int i = 0; i < 5; i++)
            a[i] += sizeof(int32_t);
        w += vectors * LANES;
    }
    finish(m, &s, rows, vectors);
}

/* ---- All instances ---- */

#define INSTANCE(r, v)                                                                             \
    static void rows_##r##x##v(const struct qmicro *m)                                             \
    {                                                                                              \
        sum_up(m, r, v);                                                                           \
    }
#define INSTANCES(r) INSTANCE(r, 1) INSTANCE(r, 2)
#define NAMES(r)     {rows_##r##x1, rows_##r##x2},

/* clang-format off */
#if MR == 14
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif MR == 8
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
/* clang-format on */

EACH_ROWS(INSTANCES)

void EW_K(qmicro)(const struct qmicro *m, int rows)
{
    static void (*const table[MR][SIDE])(const struct qmicro *) = {EACH_ROWS(NAMES)};
    table[rows - 1][m->width > LANES](m);
}
