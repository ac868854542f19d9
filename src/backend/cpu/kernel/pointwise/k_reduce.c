/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any axes.  If the innermost axis is kept, lanes are outputs; if it is
 * reduced, a run is reduced lane by lane and then across lanes.  Long sums are computed in pieces,
 * so that the error grows only with the square root of the length. */
#include "backend/cpu/kernel/common/across.h"

#define LANE_BLOCK 64 /* kept elements of a tile */
#define PIECES     64 /* rows, or vectors of a run, of a piece */

INLINE vec start_of(enum ew_reduction_kind kind)
{
    return kind == EW_REDUCTION_MAX   ? splat(-INFINITY)
           : kind == EW_REDUCTION_MIN ? splat(INFINITY)
                                      : (vec){0};
}

/* acc + one more element, or the maximum or minimum, which propagate NaN. */
INLINE vec reduce_step(enum ew_reduction_kind kind, vec acc, vec x)
{
    switch (kind) {
    case EW_REDUCTION_SQUARES:
        return acc + x * x;
    case EW_REDUCTION_ABS:
        return acc + vmax(x, -x);
    case EW_REDUCTION_MAX:
        return pick((acc > x) | (acc != acc), acc, x);
    case EW_REDUCTION_MIN:
        return pick((acc < x) | (acc != acc), acc, x);
    case EW_REDUCTION_SUM:
        break;
    }
    return acc + x;
}

/* Combines two partial results. */
INLINE vec reduce_join(enum ew_reduction_kind kind, vec a, vec b)
{
    return kind == EW_REDUCTION_MAX || kind == EW_REDUCTION_MIN ? reduce_step(kind, a, b) : a + b;
}

INLINE float reduce_across(enum ew_reduction_kind kind, vec v)
{
    if (kind != EW_REDUCTION_MAX && kind != EW_REDUCTION_MIN)
        return across_sum(v);
    float m = v[0];
    for (int i = 1; i < LANES; i++) {
        const bool keeps = kind == EW_REDUCTION_MAX ? m > v[i] : m < v[i];
        m = keeps || isnan(m) ? m : v[i];
    }
    return m;
}

/* ---- Positions ---- */

static int64_t count_of(const int64_t *dim, int n)
{
    int64_t count = 1;
    for (int i = 0; i < n; i++)
        count *= dim[i];
    return count;
}

static int64_t offset_at(const int64_t *dim, const int64_t *stride, int n, int64_t i)
{
    int64_t at = 0;
    for (int d = n - 1; d >= 0; d--) {
        at += i % dim[d] * stride[d];
        i /= dim[d];
    }
    return at;
}

/* Iterates over the reduced dimensions before the inner one. */
struct walk {
    const struct ew_reduction_axes *a;
    int64_t index[EW_REDUCTION_DIMS], at;
};

INLINE void walk_next(struct walk *w)
{
    for (int d = w->a->reduced - 1; d >= 0; d--) {
        w->at += w->a->reduced_stride[d];
        if (++w->index[d] < w->a->reduced_dim[d])
            return;
        w->at -= w->index[d] * w->a->reduced_stride[d];
        w->index[d] = 0;
    }
}

/* ---- Forward ---- */

int64_t EW_K(reduce_tiles)(const struct ew_reduction_axes *a)
{
    const int64_t kept = count_of(a->kept_dim, a->kept);
    return a->inner_kept ? kept * div_up(a->inner, LANE_BLOCK) : kept;
}

INLINE vec finish(const struct ew_reduction *f, vec v)
{
    v = v * f->scale;
    return f->root ? vsqrt(v) : v;
}

/* Reduces n kept elements at x. */
INLINE void reduce_lanes(const struct ew_reduction *f, const enum ew_reduction_kind kind,
                         const float *x, int64_t n, float *y)
{
    const int64_t rows = count_of(f->axes.reduced_dim, f->axes.reduced);
    for (int64_t c = 0; c < n; c += LANES) {
        struct walk w = {.a = &f->axes};
        vec all = start_of(kind);
        for (int64_t r = 0; r < rows; r += PIECES) {
            vec part = start_of(kind);
            for (int64_t i = min_i64(PIECES, rows - r); i > 0; i--, walk_next(&w))
                part = reduce_step(kind, part, load_n(x + w.at + c, n - c));
            all = reduce_join(kind, all, part);
        }
        store_n(y + c, finish(f, all), n - c);
    }
}

INLINE vec reduce_span(const enum ew_reduction_kind kind, const float *x, int64_t n)
{
    vec all = start_of(kind);
    for (int64_t from = 0; from < n; from += PIECES * LANES) {
        const int64_t to = min_i64(from + PIECES * LANES, n);
        vec part = start_of(kind);
        int64_t i = from;
        for (; i + LANES <= to; i += LANES)
            part = reduce_step(kind, part, load(x + i));
        if (i < to) {
            const float none = kind == EW_REDUCTION_MAX   ? -INFINITY
                               : kind == EW_REDUCTION_MIN ? INFINITY
                                                          : 0;
            part = reduce_step(kind, part, fill_part(load_part(x + i, to - i), to - i, none));
        }
        all = reduce_join(kind, all, part);
    }
    return all;
}

INLINE void reduce_tile(const struct ew_reduction *f, const enum ew_reduction_kind kind,
                        int64_t tile)
{
    const struct ew_reduction_axes *a = &f->axes;
    if (a->inner_kept) {
        const int64_t blocks = div_up(a->inner, LANE_BLOCK), row = tile / blocks;
        const int64_t c = tile % blocks * LANE_BLOCK;
        const int64_t at = offset_at(a->kept_dim, a->kept_stride, a->kept, row);
        reduce_lanes(f, kind, f->x + at + c, min_i64(LANE_BLOCK, a->inner - c),
                     f->y + row * a->inner + c);
        return;
    }
    const int64_t at = offset_at(a->kept_dim, a->kept_stride, a->kept, tile);
    struct walk w = {.a = a};
    vec all = start_of(kind);
    for (int64_t i = count_of(a->reduced_dim, a->reduced); i > 0; i--, walk_next(&w))
        all = reduce_join(kind, all, reduce_span(kind, f->x + at + w.at, a->inner));
    f->y[tile] = finish(f, splat(reduce_across(kind, all)))[0];
}

void EW_K(reduce_run)(const struct ew_reduction *f, int64_t begin, int64_t end)
{
    for (int64_t tile = begin; tile < end; tile++) {
        switch (f->kind) {
        case EW_REDUCTION_SUM:
            reduce_tile(f, EW_REDUCTION_SUM, tile);
            break;
        case EW_REDUCTION_SQUARES:
            reduce_tile(f, EW_REDUCTION_SQUARES, tile);
            break;
        case EW_REDUCTION_ABS:
            reduce_tile(f, EW_REDUCTION_ABS, tile);
            break;
        case EW_REDUCTION_MAX:
            reduce_tile(f, EW_REDUCTION_MAX, tile);
            break;
        case EW_REDUCTION_MIN:
            reduce_tile(f, EW_REDUCTION_MIN, tile);
            break;
        }
    }
}

/* ---- Backward of sums and means: broadcasts dy ---- */

/* n elements of dx from dy, or with `one` from its first element. */
INLINE void broadcast(const struct ew_reduction *f, const float *dy, bool one, int64_t n, float *dx)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const vec g = one ? splat(dy[0]) : load_n(dy + i, n - i);
        const vec old = f->add ? load_n(dx + i, n - i) : (vec){0};
        store_n(dx + i, old + g * f->scale, n - i);
    }
}

void EW_K(reduce_back)(const struct ew_reduction *f, int64_t begin, int64_t end)
{
    const struct ew_reduction_axes *a = &f->axes;
    const int64_t blocks = a->inner_kept ? div_up(a->inner, LANE_BLOCK) : 1;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t row = tile / blocks, c = tile % blocks * LANE_BLOCK;
        const int64_t at = offset_at(a->kept_dim, a->kept_stride, a->kept, row) + c;
        const int64_t n = a->inner_kept ? min_i64(LANE_BLOCK, a->inner - c) : a->inner;
        const float *dy = f->dy + (a->inner_kept ? row * a->inner + c : row);
        struct walk w = {.a = a};
        for (int64_t i = count_of(a->reduced_dim, a->reduced); i > 0; i--, walk_next(&w))
            broadcast(f, dy, !a->inner_kept, n, f->dx + at + w.at);
    }
}
