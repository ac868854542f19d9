/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad of 1x1 filters that skips the zeros of x, or of dy if rows are many.
 *
 * One operand is sparse, the other is divided into tiles of up to WIDE channels.  SPAN rows at a
 * time, the sparse operand is transposed and the dense one made contiguous; all sums of a tile stay
 * in L2. */
#include "backend/cpu/kernel/gemm/wgrad_sum.h"
#include "backend/cpu/kernel/sparse/sparse.h"

#define MANY       1024                                 /* sparse channels at a time */
#define TRANSPOSED (SPAN * (WIDE > SPAN ? WIDE : SPAN)) /* floats of a transposed block */

/* An operand: x or dy. */
struct operand {
    const float *at;
    int64_t step, channels;
};

struct work {
    const struct ew_unpacked_grads *g;
    bool by_x;
    int64_t rows;
    struct operand sparse, dense;
    int64_t s0, some;  /* current sparse channels, [s0, s0 + some) */
    int64_t d0, count; /* dense channels of the tile, [d0, d0 + count) */
    int64_t wide;      /* of a whole tile: floats of a row of sums and b */
    float *sums;       /* [MANY][wide] */
    float *b;          /* [SPAN][wide]: the dense operand */
    float *transposed; /* [SPAN][SPAN] of the sparse operand, or [wide][SPAN] of sums */
};

static int64_t most(const struct ew_conv_shape *s)
{
    return min_i64(MANY, max_i64(s->cin, s->cout));
}

int64_t EW_K(sparse_wgrad_tiles)(const struct ew_conv_shape *s, bool by_x)
{
    const bool fused = sparse_rows(s) <= ROWS && !by_x; /* k_sparse_grad.c computes both */
    const int64_t channels = by_x ? s->cout : s->cin;
    return fused ? 0 : div_up(channels, tile_wide(channels));
}

size_t EW_K(sparse_wgrad_scratch)(const struct ew_conv_shape *s)
{
    return (size_t)((most(s) + SPAN) * WIDE + TRANSPOSED) * sizeof(float);
}

/* Stores or applies n floats of the gradient, from `at` on. */
static void finish_piece(const struct ew_conv_wgrad *f, const float *from, int64_t at, int64_t n)
{
    if (f->update)
        update_piece(f->update, at, from, n);
    else
        filter_sum(f, from, 1, 0, at, n);
}

#define UPDATE_AHEAD                                                                               \
    8 /* prefetch distance in pieces of the filter, which nothing read recently                    \
       */

/* Prefetches n floats of the filter and its optimiser state, from `at` on. */
INLINE void fetch_piece(const struct ew_update *u, int64_t at, int64_t n)
{
    const float *const w = u->is_adam ? u->adam.w : u->sgd.w;
    const float *const m = u->is_adam ? u->adam.m : u->sgd.m;
    for (int64_t i = 0; i < n; i += LINE) {
        __builtin_prefetch(w + at + i, 1);
        if (m)
            __builtin_prefetch(m + at + i, 1);
        if (u->is_adam)
            __builtin_prefetch(u->adam.v + at + i, 1);
    }
}

/* Finishes n sparse channels from s0 + i on.  Rows of sums are outputs if dy is sparse, inputs if x
 * is. */
static void finish(const struct work *w, int64_t i, int64_t n)
{
    const struct ew_conv_wgrad *f = &w->g->filter;
    const int64_t cin = f->shape.cin, s = w->s0 + i;
    const float *from = w->sums + i * w->wide;
    if (w->by_x) {
        transpose_block(block_of(from, w->wide, n, w->count), w->transposed, SPAN);
        from = w->transposed;
    }
    const int64_t pieces = w->by_x ? w->count : n, floats = w->by_x ? n : w->count;
    int64_t at = w->by_x ? w->d0 * cin + s : s * cin + w->d0;
    for (int64_t p = 0; p < pieces; p++, at += cin, from += w->by_x ? SPAN : w->wide) {
        if (f->update && p + UPDATE_AHEAD < pieces)
            fetch_piece(f->update, at + UPDATE_AHEAD * cin, floats);
        finish_piece(f, from, at, floats);
    }
}

/* Rows [r, r + SPAN); the last ones finish the tile. */
static void add_rows(const struct work *w, int64_t r)
{
    const int64_t n = min_i64(SPAN, w->rows - r);
    const float *dense = w->dense.at + r * w->dense.step + w->d0;
    copy_wide(block_of(dense, w->dense.step, n, w->count), w->b, w->wide);
    for (int64_t i = 0; i < w->some; i += SPAN) {
        const int64_t channels = min_i64(SPAN, w->some - i);
        const float *from = w->sparse.at + r * w->sparse.step + w->s0 + i;
        struct fetch prefetch = {from + SPAN, w->sparse.step, n, SPAN / LINE};
        transpose_block(block_of(from, w->sparse.step, n, channels), w->transposed, SPAN);
        sparse_add(&(struct sparse_product){.a = block_of(w->transposed, SPAN, channels, n),
                                            .b = w->b,
                                            .c = w->sums + i * w->wide,
                                            .wide = w->wide,
                                            .prefetch = &prefetch});
        if (r + n == w->rows)
            finish(w, i, channels);
    }
}

void EW_K(sparse_wgrad_run)(const struct ew_unpacked_grads *g, bool by_x, int64_t begin,
                            int64_t end, void *scratch)
{
    const struct ew_conv_shape *s = &g->filter.shape;
    const struct operand x = {g->filter.x, s->cin, s->cin};
    const struct operand dy = {g->filter.dy, y_step_of(s), s->cout};
    struct work w = {.g = g,
                     .by_x = by_x,
                     .rows = sparse_rows(s),
                     .sparse = by_x ? x : dy,
                     .dense = by_x ? dy : x,
                     .sums = scratch};
    w.wide = tile_wide(w.dense.channels);
    w.b = w.sums + most(s) * w.wide;
    w.transposed = w.b + SPAN * w.wide;
    for (int64_t tile = begin; tile < end; tile++) {
        w.d0 = tile * w.wide;
        w.count = min_i64(w.wide, w.dense.channels - w.d0);
        for (w.s0 = 0; w.s0 < w.sparse.channels; w.s0 += MANY) {
            w.some = min_i64(MANY, w.sparse.channels - w.s0);
            clear_wide(w.sums, w.some, w.wide);
            for (int64_t r = 0; r < w.rows; r += SPAN)
                add_rows(&w, r);
        }
    }
}
