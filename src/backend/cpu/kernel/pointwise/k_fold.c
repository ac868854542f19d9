/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions ("folds") over any axes.  If the innermost axis is kept, lanes are outputs; if it is
 * folded, a run is reduced lane by lane and then across lanes.  Long sums are computed in pieces,
 * so that the error grows only with the square root of the length. */
#include "backend/cpu/kernel/common/across.h"

#define LANE_BLOCK 64 /* kept elements of a tile */
#define PIECES     64 /* rows, or vectors of a run, of a piece */

INLINE vec start_of(enum ew_fold_kind kind)
{
    return kind == EW_FOLD_MAX   ? splat(-INFINITY)
           : kind == EW_FOLD_MIN ? splat(INFINITY)
                                 : (vec){0};
}

/* acc + one more element, or the maximum or minimum, which propagate NaN. */
INLINE vec fold_step(enum ew_fold_kind kind, vec acc, vec x)
{
    switch (kind) {
    case EW_FOLD_SQUARES:
        return acc + x * x;
    case EW_FOLD_ABS:
        return acc + vmax(x, -x);
    case EW_FOLD_MAX:
        return pick((acc > x) | (acc != acc), acc, x);
    case EW_FOLD_MIN:
        return pick((acc < x) | (acc != acc), acc, x);
    case EW_FOLD_SUM:
        break;
    }
    return acc + x;
}

/* Combines two partial results. */
INLINE vec fold_join(enum ew_fold_kind kind, vec a, vec b)
{
    return kind == EW_FOLD_MAX || kind == EW_FOLD_MIN ? fold_step(kind, a, b) : a + b;
}

INLINE float fold_across(enum ew_fold_kind kind, vec v)
{
    if (kind != EW_FOLD_MAX && kind != EW_FOLD_MIN)
        return across_sum(v);
    float m = v[0];
    for (int i = 1; i < LANES; i++) {
        const bool keeps = kind == EW_FOLD_MAX ? m > v[i] : m < v[i];
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

/* Iterates over the folded dimensions before the inner one. */
struct walk {
    const struct ew_fold_axes *a;
    int64_t index[EW_FOLD_DIMS], at;
};

INLINE void walk_next(struct walk *w)
{
    for (int d = w->a->folded - 1; d >= 0; d--) {
        w->at += w->a->fold_stride[d];
        if (++w->index[d] < w->a->fold_dim[d])
            return;
        w->at -= w->index[d] * w->a->fold_stride[d];
        w->index[d] = 0;
    }
}

/* ---- Forward ---- */

int64_t EW_K(fold_tiles)(const struct ew_fold_axes *a)
{
    const int64_t kept = count_of(a->kept_dim, a->kept);
    return a->inner_kept ? kept * div_up(a->inner, LANE_BLOCK) : kept;
}

INLINE vec finish(const struct ew_fold_map *f, vec v)
{
    v = v * f->scale;
    return f->root ? vsqrt(v) : v;
}

/* Reduces n kept elements at x. */
INLINE void fold_lanes(const struct ew_fold_map *f, const enum ew_fold_kind kind, const float *x,
                       int64_t n, float *y)
{
    const int64_t rows = count_of(f->axes.fold_dim, f->axes.folded);
    for (int64_t c = 0; c < n; c += LANES) {
        struct walk w = {.a = &f->axes};
        vec all = start_of(kind);
        for (int64_t r = 0; r < rows; r += PIECES) {
            vec part = start_of(kind);
            for (int64_t i = min_i64(PIECES, rows - r); i > 0; i--, walk_next(&w))
                part = fold_step(kind, part, load_n(x + w.at + c, n - c));
            all = fold_join(kind, all, part);
        }
        store_n(y + c, finish(f, all), n - c);
    }
}

INLINE vec fold_span(const enum ew_fold_kind kind, const float *x, int64_t n)
{
    vec all = start_of(kind);
    for (int64_t from = 0; from < n; from += PIECES * LANES) {
        const int64_t to = min_i64(from + PIECES * LANES, n);
        vec part = start_of(kind);
        int64_t i = from;
        for (; i + LANES <= to; i += LANES)
            part = fold_step(kind, part, load(x + i));
        if (i < to) {
            const float none = kind == EW_FOLD_MAX ? -INFINITY : kind == EW_FOLD_MIN ? INFINITY : 0;
            part = fold_step(kind, part, fill_part(load_part(x + i, to - i), to - i, none));
        }
        all = fold_join(kind, all, part);
    }
    return all;
}

INLINE void fold_tile(const struct ew_fold_map *f, const enum ew_fold_kind kind, int64_t tile)
{
    const struct ew_fold_axes *a = &f->axes;
    if (a->inner_kept) {
        const int64_t blocks = div_up(a->inner, LANE_BLOCK), row = tile / blocks;
        const int64_t c = tile % blocks * LANE_BLOCK;
        const int64_t at = offset_at(a->kept_dim, a->kept_stride, a->kept, row);
        fold_lanes(f, kind, f->x + at + c, min_i64(LANE_BLOCK, a->inner - c),
                   f->y + row * a->inner + c);
        return;
    }
    const int64_t at = offset_at(a->kept_dim, a->kept_stride, a->kept, tile);
    struct walk w = {.a = a};
    vec all = start_of(kind);
    for (int64_t i = count_of(a->fold_dim, a->folded); i > 0; i--, walk_next(&w))
        all = fold_join(kind, all, fold_span(kind, f->x + at + w.at, a->inner));
    f->y[tile] = finish(f, splat(fold_across(kind, all)))[0];
}

void EW_K(fold_run)(const struct ew_fold_map *f, int64_t begin, int64_t end)
{
    for (int64_t tile = begin; tile < end; tile++) {
        switch (f->kind) {
        case EW_FOLD_SUM:
            fold_tile(f, EW_FOLD_SUM, tile);
            break;
        case EW_FOLD_SQUARES:
            fold_tile(f, EW_FOLD_SQUARES, tile);
            break;
        case EW_FOLD_ABS:
            fold_tile(f, EW_FOLD_ABS, tile);
            break;
        case EW_FOLD_MAX:
            fold_tile(f, EW_FOLD_MAX, tile);
            break;
        case EW_FOLD_MIN:
            fold_tile(f, EW_FOLD_MIN, tile);
            break;
        }
    }
}

/* ---- Backward of sums and means: broadcasts dy ---- */

/* n elements of dx from dy, or with `one` from its first element. */
INLINE void broadcast(const struct ew_fold_map *f, const float *dy, bool one, int64_t n, float *dx)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const vec g = one ? splat(dy[0]) : load_n(dy + i, n - i);
        const vec old = f->add ? load_n(dx + i, n - i) : (vec){0};
        store_n(dx + i, old + g * f->scale, n - i);
    }
}

void EW_K(fold_back)(const struct ew_fold_map *f, int64_t begin, int64_t end)
{
    const struct ew_fold_axes *a = &f->axes;
    const int64_t blocks = a->inner_kept ? div_up(a->inner, LANE_BLOCK) : 1;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t row = tile / blocks, c = tile % blocks * LANE_BLOCK;
        const int64_t at = offset_at(a->kept_dim, a->kept_stride, a->kept, row) + c;
        const int64_t n = a->inner_kept ? min_i64(LANE_BLOCK, a->inner - c) : a->inner;
        const float *dy = f->dy + (a->inner_kept ? row * a->inner + c : row);
        struct walk w = {.a = a};
        for (int64_t i = count_of(a->fold_dim, a->folded); i > 0; i--, walk_next(&w))
            broadcast(f, dy, !a->inner_kept, n, f->dx + at + w.at);
    }
}
