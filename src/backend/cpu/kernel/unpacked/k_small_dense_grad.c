/* SPDX-License-Identifier: Apache-2.0 */
/* Small dense layers, backward: fused dgrad, wgrad and update of a filter that fits into the
 * caches.
 *
 *   dx [images x I] = dy [images x O] w [O x I]
 *   dw [O x I]      = dy' x
 *
 * Tiles need no reduction (see small_dense.h).  A tile multiplies dy by its part of the filter,
 * which is still in L1 when it is updated, from gradients that stay in registers.  Larger layers
 * use k_tap_pairs_grad.c, which prefetches. */
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/pointwise/update_piece.h"
#include "backend/cpu/kernel/unpacked/small_dense.h"

#define ROWS 4 /* images for dx, outputs for dw */

/* Accumulators of ROWS x up to DENSE_VECS vectors, the last of which has `last` valid floats. */
struct block {
    vec v[ROWS][DENSE_VECS];
};

/* v[r][lane] = sum over k of a[r * a_row + k * a_step] b[k * b_step + lane] */
struct product {
    const float *a, *b;
    int64_t a_row, a_step, b_step, k;
};

INLINE void multiply(struct block *to, const struct product *p, int rows, int vecs, int64_t last)
{
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vecs; v++)
        to->v[r][v] = (vec){0};
    for (int64_t k = 0; k < p->k; k++) {
        const float *b = p->b + k * p->b_step;
        vec x[DENSE_VECS];
        UNROLL
        for (int v = 0; v < vecs; v++)
            x[v] = v < vecs - 1 ? load(b + v * LANES) : load_n(b + v * LANES, last);
        UNROLL
        for (int r = 0; r < rows; r++) {
            const vec f = splat(p->a[r * p->a_row + k * p->a_step]);
            UNROLL
            for (int v = 0; v < vecs; v++)
                to->v[r][v] += f * x[v];
        }
    }
}

struct tile {
    const struct ew_unpacked_grads *g;
    struct ew_update update; /* a copy, which stores cannot alias */
    int64_t c, last;         /* first input; floats of the last vector */
    int64_t o, end;          /* outputs */
    float *dx;               /* destination of dx; NULL: not wanted */
    bool add;                /* accumulate into dx */
};

INLINE void data_rows(const struct tile *t, int64_t n, int rows, int vecs)
{
    const struct ew_conv_shape *s = &t->g->filter.shape;
    const struct product p = {.a = t->g->filter.dy + n * s->cout + t->o,
                              .b = t->g->w + t->o * s->cin + t->c,
                              .a_row = s->cout,
                              .a_step = 1,
                              .b_step = s->cin,
                              .k = t->end - t->o};
    struct block sum;
    multiply(&sum, &p, rows, vecs, t->last);
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vecs; v++) {
        float *to = t->dx + (n + r) * s->cin + t->c + v * LANES;
        const int64_t width = v < vecs - 1 ? LANES : t->last;
        if (t->add)
            sum.v[r][v] += load_n(to, width);
        store_n(to, sum.v[r][v], width);
    }
}

/* Stores a vector of `width` gradients to dw, or applies the update. */
INLINE void finish_vec(const struct tile *t, int64_t at, vec sum, int64_t width)
{
    const struct ew_conv_wgrad *f = &t->g->filter;
    if (!f->update)
        store_n(f->dw + at, f->add ? sum + load_n(f->dw + at, width) : sum, width);
    else if (t->update.is_adam)
        adam_vec(&t->update.adam, at, sum, width);
    else
        sgd_vec(&t->update.sgd, at, sum, width);
}

ENDING void finish_part(const struct tile *t, int64_t at, vec sum, int64_t width)
{
    finish_vec(t, at, sum, width);
}

INLINE void finish(const struct tile *t, int64_t at, vec sum, int64_t width)
{
    if (width < LANES)
        finish_part(t, at, sum, width);
    else
        finish_vec(t, at, sum, LANES);
}

INLINE void filter_rows(const struct tile *t, int64_t o, int rows, int vecs)
{
    const struct ew_conv_wgrad *f = &t->g->filter;
    const struct product p = {.a = f->dy + o,
                              .b = f->x + t->c,
                              .a_row = 1,
                              .a_step = f->shape.cout,
                              .b_step = f->shape.cin,
                              .k = f->shape.batch};
    struct block sum;
    multiply(&sum, &p, rows, vecs, t->last);
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vecs; v++)
        finish(t, (o + r) * f->shape.cin + t->c + v * LANES, sum.v[r][v],
               v < vecs - 1 ? LANES : t->last);
}

INLINE void run_tile(const struct tile *t, int vecs)
{
    const struct ew_conv_shape *s = &t->g->filter.shape;
    int64_t n = 0, o = t->o;
    for (; t->dx && n + ROWS <= s->batch; n += ROWS)
        data_rows(t, n, ROWS, vecs);
    for (; t->dx && n < s->batch; n++)
        data_rows(t, n, 1, vecs);
    if (t->g->no_filter)
        return;
    for (; o + ROWS <= t->end; o += ROWS)
        filter_rows(t, o, ROWS, vecs);
    for (; o < t->end; o++)
        filter_rows(t, o, 1, vecs);
}

static void run_piece(const struct tile *of, int64_t piece)
{
    const struct ew_conv_shape *s = &of->g->filter.shape;
    const int64_t c = dense_first(s, piece), width = dense_first(s, piece + 1) - c;
    const int64_t vecs = div_up(width, LANES);
    struct tile t = *of;
    t.c = c;
    t.last = width - (vecs - 1) * LANES;
    if (vecs == DENSE_VECS)
        run_tile(&t, DENSE_VECS);
    else if (DENSE_VECS > 3 && vecs == 3)
        run_tile(&t, 3);
    else if (DENSE_VECS > 2 && vecs == 2)
        run_tile(&t, 2);
    else
        run_tile(&t, 1);
}

/* A tile by outputs: all inputs and some outputs, with partial sums of dx. */
static void run_outputs(struct tile *t, int64_t part)
{
    const struct ew_conv_shape *s = &t->g->filter.shape;
    t->o = dense_output(s, part);
    t->end = dense_output(s, part + 1);
    t->dx = t->g->dx ? t->g->shared + part * s->batch * s->cin : NULL;
    t->add = false;
    for (int64_t i = 0; i < dense_pieces(s); i++)
        run_piece(t, i);
}

int64_t EW_K(small_dense_grad_tiles)(const struct ew_conv_shape *s)
{
    return dense_by_outputs(s) ? 2 : dense_pieces(s);
}

size_t EW_K(small_dense_grad_shared)(const struct ew_conv_shape *s)
{
    return dense_by_outputs(s) ? (size_t)(2 * s->batch) * (size_t)s->cin : 0;
}

void EW_K(small_dense_grad_run)(const struct ew_unpacked_grads *g, int64_t begin, int64_t end)
{
    struct tile t = {.g = g, .end = g->filter.shape.cout, .dx = g->dx, .add = g->add_dx};
    if (g->filter.update)
        t.update = *g->filter.update;
    for (int64_t i = begin; i < end; i++)
        if (dense_by_outputs(&g->filter.shape))
            run_outputs(&t, i);
        else
            run_piece(&t, i);
}

void EW_K(small_dense_grad_sum)(const struct ew_unpacked_grads *g)
{
    const struct ew_conv_shape *s = &g->filter.shape;
    const int64_t n = (int64_t)s->batch * s->cin;
    for (int64_t i = 0; g->dx && dense_by_outputs(s) && i < n; i += LANES) {
        const vec sum = load_n(g->shared + i, n - i) + load_n(g->shared + n + i, n - i);
        store_n(g->dx + i, g->add_dx ? load_n(g->dx + i, n - i) + sum : sum, n - i);
    }
}
