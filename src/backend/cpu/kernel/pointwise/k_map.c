/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise functions of one operand, and of two of which one may be a scalar or a row that
 * repeats. */
#include "backend/cpu/kernel/common/act.h"

#define GELU_CUBIC 0.044715f /* Hendrycks and Gimpel, 2016 */

INLINE vec map_of(const enum ew_map_kind kind, vec x)
{
    switch (kind) {
    case EW_MAP_ERF:
        return verf(x);
    case EW_MAP_GELU:
        return vgelu(x);
    case EW_MAP_GELU_TANH:
        return 0.5f * x * (1.0f + vtanh(ROOT_2_PI * (x + GELU_CUBIC * x * x * x)));
    case EW_MAP_EXP:
        return vexp(x);
    case EW_MAP_SQRT:
        return vsqrt(x);
    case EW_MAP_NEG:
        return -x;
    case EW_MAP_ABS:
        return vmax(x, -x);
    }
    return x;
}

INLINE vec map_slope(const enum ew_map_kind kind, vec x)
{
    if (kind == EW_MAP_GELU)
        return vgelu_slope(x);
    const vec t = vtanh(ROOT_2_PI * (x + GELU_CUBIC * x * x * x));
    return 0.5f * (1.0f + t) +
           0.5f * ROOT_2_PI * x * (1.0f - t * t) * (1.0f + 3.0f * GELU_CUBIC * x * x);
}

INLINE void map_range(const struct ew_map *m, const enum ew_map_kind kind, int64_t begin,
                      int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES)
        store_n(m->y + i, map_of(kind, load_n(m->x + i, end - i)), end - i);
}

void EW_K(map_run)(const struct ew_map *m, int64_t begin, int64_t end)
{
#define MAP(kind)                                                                                  \
    case kind:                                                                                     \
        map_range(m, kind, begin, end);                                                            \
        break;
    switch (m->kind) {
        MAP(EW_MAP_ERF)
        MAP(EW_MAP_GELU)
        MAP(EW_MAP_GELU_TANH)
        MAP(EW_MAP_EXP)
        MAP(EW_MAP_SQRT)
        MAP(EW_MAP_NEG)
        MAP(EW_MAP_ABS)
    }
#undef MAP
}

INLINE void back_range(const struct ew_map *m, const enum ew_map_kind kind, int64_t begin,
                       int64_t end)
{
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t n = end - i;
        const vec old = m->add ? load_n(m->dx + i, n) : (vec){0};
        const vec d = load_n(m->dy + i, n) * map_slope(kind, load_n(m->x + i, n));
        store_n(m->dx + i, old + d, n);
    }
}

void EW_K(map_back)(const struct ew_map *m, int64_t begin, int64_t end)
{
    if (m->kind == EW_MAP_GELU)
        back_range(m, EW_MAP_GELU, begin, end);
    else
        back_range(m, EW_MAP_GELU_TANH, begin, end);
}

/* ---- Two operands ---- */

INLINE vec pair_of(const enum ew_pair_kind kind, vec a, vec b)
{
    switch (kind) {
    case EW_PAIR_SUB:
        return a - b;
    case EW_PAIR_MUL:
        return a * b;
    case EW_PAIR_DIV:
        return a / b;
    case EW_PAIR_PRELU:
        return pick(a > 0, a, a * b);
    case EW_PAIR_ADD:
        break;
    }
    return a + b;
}

/* True if all elements of a span have one value of this operand. */
INLINE bool is_one(const struct ew_pair_side *s)
{
    return s->one || (s->repeat && s->each > 1);
}

INLINE void pair_span(const struct ew_pair *p, const enum ew_pair_kind kind, const float *a,
                      const float *b, float *y, int64_t n)
{
    const bool one_a = is_one(&p->a), one_b = is_one(&p->b);
    for (int64_t i = 0; i < n; i += LANES) {
        const vec u = one_a ? splat(a[0]) : load_n(a + i, n - i);
        const vec v = one_b ? splat(b[0]) : load_n(b + i, n - i);
        store_n(y + i, pair_of(kind, u, v), n - i);
    }
}

static const float *operand(const struct ew_pair_side *s, int64_t i)
{
    return s->one ? s->x : s->x + (s->repeat ? i / s->each % s->repeat : i);
}

/* Elements until the end, or until a broadcast operand's next value or restart. */
static int64_t span_of(const struct ew_pair *p, int64_t i, int64_t end)
{
    const struct ew_pair_side *s = p->a.repeat ? &p->a : &p->b;
    const int64_t span = s->each > 1 ? s->each : s->repeat;
    return s->repeat ? min_i64(end - i, span - i % span) : end - i;
}

void EW_K(pair_run)(const struct ew_pair *p, int64_t begin, int64_t end)
{
    for (int64_t i = begin, n; i < end; i += n) {
        const float *a = operand(&p->a, i), *b = operand(&p->b, i);
        n = span_of(p, i, end);
        switch (p->kind) {
        case EW_PAIR_ADD:
            pair_span(p, EW_PAIR_ADD, a, b, p->y + i, n);
            break;
        case EW_PAIR_SUB:
            pair_span(p, EW_PAIR_SUB, a, b, p->y + i, n);
            break;
        case EW_PAIR_MUL:
            pair_span(p, EW_PAIR_MUL, a, b, p->y + i, n);
            break;
        case EW_PAIR_DIV:
            pair_span(p, EW_PAIR_DIV, a, b, p->y + i, n);
            break;
        case EW_PAIR_PRELU:
            pair_span(p, EW_PAIR_PRELU, a, b, p->y + i, n);
            break;
        }
    }
}
