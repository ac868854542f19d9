/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of dense layers and 1x1 convolutions with sparse dy: dgrad, and with few rows also
 * wgrad.
 *
 * A tile is up to WIDE inputs of some rows and all outputs.  For SPAN outputs at a time it
 * accumulates dx from their part of the filter, which is then updated by dy^T x while it is in the
 * cache.  If there are more rows than in a tile, k_sparse_wgrad.c computes wgrad. */
#include "backend/cpu/kernel/gemm/wgrad_sum.h"
#include "backend/cpu/kernel/sparse/sparse.h"

struct work {
    const struct ew_unpacked_grads *g;
    int64_t cin, cout, dy_step;
    int64_t wide;                    /* inputs of a whole tile */
    int64_t first, rows, c0, inputs; /* rows and inputs of this tile */
    float *dx;                       /* [ROWS][wide] */
    float *w;                        /* [SPAN][wide] */
    float *x;                        /* [ROWS][wide], if is_fused */
    float *sums;                     /* [SPAN][wide]: dw */
    float *transposed;               /* [SPAN][SPAN]: dy, outputs first */
};

/* True if a tile has all rows, so that it computes both gradients. */
static bool is_fused(const struct ew_conv_shape *s)
{
    return sparse_rows(s) <= ROWS;
}

int64_t EW_K(sparse_grad_tiles)(const struct ew_conv_shape *s)
{
    return div_up(sparse_rows(s), ROWS) * div_up(s->cin, tile_wide(s->cin));
}

size_t EW_K(sparse_grad_scratch)(const struct ew_conv_shape *s)
{
    const int64_t rows = min_i64(sparse_rows(s), ROWS);
    const int64_t filter = is_fused(s) ? (rows + SPAN) * WIDE + SPAN * SPAN : 0;
    return (size_t)((rows + SPAN) * WIDE + filter) * sizeof(float);
}

/* ---- Wgrad ---- */

static void finish_filter(const struct work *w, int64_t o, int64_t outputs)
{
    const struct ew_conv_wgrad *f = &w->g->filter;
    for (int64_t i = 0; i < outputs; i++) {
        const int64_t at = (o + i) * w->cin + w->c0;
        if (f->update)
            update_piece(f->update, at, w->sums + i * w->wide, w->inputs);
        else
            filter_sum(f, w->sums + i * w->wide, 1, 0, at, w->inputs);
    }
}

static void run_filter(const struct work *w, int64_t o, int64_t outputs, struct fetch *prefetch)
{
    clear_wide(w->sums, outputs, w->wide);
    for (int64_t r = 0; r < w->rows; r += SPAN) {
        const int64_t n = min_i64(SPAN, w->rows - r);
        const float *dy = w->g->filter.dy + r * w->dy_step + o;
        transpose_block(block_of(dy, w->dy_step, n, outputs), w->transposed, SPAN);
        sparse_add(&(struct sparse_product){.a = block_of(w->transposed, SPAN, outputs, n),
                                            .b = w->x + r * w->wide,
                                            .c = w->sums,
                                            .wide = w->wide,
                                            .prefetch = prefetch});
    }
    finish_filter(w, o, outputs);
}

/* ---- Dgrad ---- */

static void finish_data(const struct work *w)
{
    for (int64_t r = 0; r < w->rows; r++) {
        const int64_t at = (w->first + r) * w->cin + w->c0;
        for (int64_t c = 0; c < w->inputs; c += LANES) {
            const int64_t n = w->inputs - c;
            vec v = load(w->dx + r * w->wide + c);
            if (w->g->add_dx)
                v += load_n(w->g->dx + at + c, n);
            if (w->g->mask)
                v = keep(load_n(w->g->filter.x + at + c, n) > 0, v);
            store_n(w->g->dx + at + c, v, n);
        }
    }
}

static void run_data(const struct work *w, int64_t o, int64_t outputs, struct fetch *prefetch)
{
    const float *dy = w->g->filter.dy + w->first * w->dy_step + o;
    copy_wide(block_of(w->g->w + o * w->cin + w->c0, w->cin, outputs, w->inputs), w->w, w->wide);
    sparse_add(&(struct sparse_product){.a = block_of(dy, w->dy_step, w->rows, outputs),
                                        .b = w->w,
                                        .c = w->dx,
                                        .wide = w->wide,
                                        .prefetch = prefetch});
}

/* Prefetch of the weights, or optimiser state, of the outputs after o. */
static struct fetch prefetch_of(const struct work *w, int64_t o, const float *at)
{
    const int64_t next = o + SPAN;
    return (struct fetch){.at = at + next * w->cin + w->c0,
                          .step = w->cin,
                          .pieces = max_i64(min_i64(SPAN, w->cout - next), 0),
                          .lines = div_up(w->inputs, LINE)};
}

static const float *state_of(const struct ew_update *u)
{
    return !u ? NULL : u->is_adam ? u->adam.m : u->sgd.m;
}

static void run_tile(struct work *w, int64_t tile)
{
    const struct ew_conv_shape *s = &w->g->filter.shape;
    const int64_t wide = w->wide, across = div_up(w->cin, wide);
    const bool filter = is_fused(s) && !w->g->no_filter;
    const float *state = state_of(w->g->filter.update);
    w->first = tile / across * ROWS;
    w->rows = min_i64(ROWS, sparse_rows(s) - w->first);
    w->c0 = tile % across * wide;
    w->inputs = min_i64(wide, w->cin - w->c0);
    clear_wide(w->dx, w->rows, wide);
    if (filter)
        copy_wide(block_of(w->g->filter.x + w->c0, w->cin, w->rows, w->inputs), w->x, wide);
    for (int64_t o = 0; o < w->cout; o += SPAN) {
        struct fetch prefetch = prefetch_of(w, o, w->g->w), later = {.pieces = 0};
        if (state)
            later = prefetch_of(w, o, state);
        const int64_t outputs = min_i64(SPAN, w->cout - o);
        if (w->g->dx)
            run_data(w, o, outputs, &prefetch);
        if (filter)
            run_filter(w, o, outputs, &later);
    }
    if (w->g->dx)
        finish_data(w);
}

void EW_K(sparse_grad_run)(const struct ew_unpacked_grads *g, int64_t begin, int64_t end,
                           void *scratch)
{
    const struct ew_conv_shape *s = &g->filter.shape;
    const int64_t rows = min_i64(sparse_rows(s), ROWS);
    struct work w = {
        .g = g, .cin = s->cin, .cout = s->cout, .dy_step = y_step_of(s), .dx = scratch};
    w.wide = tile_wide(w.cin);
    w.w = w.dx + rows * w.wide;
    w.x = w.w + SPAN * w.wide;
    w.sums = w.x + rows * w.wide;
    w.transposed = w.sums + SPAN * w.wide;
    for (int64_t i = begin; i < end; i++)
        run_tile(&w, i);
}
