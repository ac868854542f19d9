/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad of 1x1 filters that skips the zeros of x, or of dy if rows are many.
 *
 * One operand is sparse, the other is divided into tiles of WIDE channels.  SPAN rows at a time,
 * the sparse operand is transposed and the dense one made contiguous; all sums of a tile stay in
 * L2. */
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
    int64_t d0, wide;  /* dense channels of the tile, [d0, d0 + wide) */
    float *sums;       /* [MANY][WIDE] */
    float *b;          /* [SPAN][WIDE]: the dense operand */
    float *transposed; /* [SPAN][SPAN] of the sparse operand, or [WIDE][SPAN] of sums */
};

static int64_t most(const struct ew_conv_shape *s)
{
    return min_i64(MANY, max_i64(s->cin, s->cout));
}

int64_t EW_K(sparse_wgrad_tiles)(const struct ew_conv_shape *s, bool by_x)
{
    const bool fused = sparse_rows(s) <= ROWS && !by_x; /* k_sparse_grad.c computes both */
    return fused ? 0 : div_up(by_x ? s->cout : s->cin, WIDE);
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

/* Rows of sums are outputs if dy is sparse, inputs if x is. */
static void finish(const struct work *w)
{
    const struct ew_conv_wgrad *f = &w->g->filter;
    const int64_t cin = f->shape.cin;
    for (int64_t i = 0; !w->by_x && i < w->some; i++)
        finish_piece(f, w->sums + i * WIDE, (w->s0 + i) * cin + w->d0, w->wide);
    for (int64_t i = 0; w->by_x && i < w->some; i += SPAN) {
        const int64_t n = min_i64(SPAN, w->some - i);
        transpose_block(block_of(w->sums + i * WIDE, WIDE, n, w->wide), w->transposed, SPAN);
        for (int64_t o = 0; o < w->wide; o++)
            finish_piece(f, w->transposed + o * SPAN, (w->d0 + o) * cin + w->s0 + i, n);
    }
}

static void add_rows(const struct work *w, int64_t r)
{
    const int64_t n = min_i64(SPAN, w->rows - r);
    const float *dense = w->dense.at + r * w->dense.step + w->d0;
    copy_wide(block_of(dense, w->dense.step, n, w->wide), w->b);
    for (int64_t i = 0; i < w->some; i += SPAN) {
        const int64_t channels = min_i64(SPAN, w->some - i);
        const float *from = w->sparse.at + r * w->sparse.step + w->s0 + i;
        struct fetch prefetch = {from + SPAN, w->sparse.step, n, SPAN / LINE};
        transpose_block(block_of(from, w->sparse.step, n, channels), w->transposed, SPAN);
        sparse_add(block_of(w->transposed, SPAN, channels, n), w->b, w->sums + i * WIDE, &prefetch,
                   SPAN / LINE);
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
    w.b = w.sums + most(s) * WIDE;
    w.transposed = w.b + SPAN * WIDE;
    for (int64_t tile = begin; tile < end; tile++) {
        w.d0 = tile * WIDE;
        w.wide = min_i64(WIDE, w.dense.channels - w.d0);
        for (w.s0 = 0; w.s0 < w.sparse.channels; w.s0 += MANY) {
            w.some = min_i64(MANY, w.sparse.channels - w.s0);
            clear_wide(w.sums, w.some);
            for (int64_t r = 0; r < w.rows; r += SPAN)
                add_rows(&w, r);
            finish(&w);
        }
    }
}
