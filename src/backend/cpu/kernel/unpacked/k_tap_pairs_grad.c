/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on small feature maps and dense layers, backward: fused dgrad, wgrad and update, in
 * one pass over the filter.
 *
 *   dx[in]  [images x I] += dy[out] [images x O] w[tap] [O x I]
 *   dw[tap] [O x I]      += dy[out]' x[in]
 *
 * A tile is a range of outputs x a range of inputs.  A chunk of its filters is multiplied by dy for
 * dx, then updated by its gradient while it is still in the cache; meanwhile the optimiser's state
 * and the next chunk are prefetched.  If outputs are divided, each range writes a partial dx to
 * `shared`, which are added in order.  k_tap_pairs_dy.c has transposed dy. */
#include <math.h>

#include "backend/cpu/kernel/gemm/wgrad_sum.h"
#include "backend/cpu/kernel/unpacked/tap_pairs_grad.h"

#define X_STEP(wide) ((wide) + LINE) /* padded, so that pixels do not share cache sets */

static int64_t dx_size(const struct tap_pairs_plan *p)
{
    return pixels_of(&p->s, p->s.ins) * p->s.batch * p->s.cin;
}

size_t EW_K(tap_pairs_grad_shared)(const struct ew_conv_shape *s)
{
    struct tap_pairs_plan p;
    tap_pairs_plan_init(&p, s);
    const int64_t sums = p.splits > 1 ? p.splits * dx_size(&p) : 0;
    return (size_t)(p.y_size + p.t_size + sums);
}

int64_t EW_K(tap_pairs_grad_tiles)(const struct ew_conv_shape *s)
{
    struct tap_pairs_plan p;
    tap_pairs_plan_init(&p, s);
    return p.c_tiles * p.splits;
}

/* AVX2 multiplies a panel of images in several passes.  Filters that are a multiple of 4 KiB apart
 * share a set of L1 and would be read from L2 in each: NR inputs of the chunk are copied first. */
#if defined(EW_ISA_IS_avx2)
#define COPIES 1
#else
#define COPIES 0
#endif

/* Floats of a tap in `edge`, which holds the last, partial vector of each tap, or with folding or
 * COPIES NR inputs. */
static int64_t edge_step(const struct tap_pairs_plan *p)
{
    return p->s.folded || COPIES ? NR : PIECE;
}

/* Scratch: x and dx of the tile's inputs, sums of a block of filters and zeros, `edge`. */
size_t EW_K(tap_pairs_grad_scratch)(const struct ew_conv_shape *s)
{
    struct tap_pairs_plan p;
    tap_pairs_plan_init(&p, s);
    const int64_t rows = p.s.ins * p.s.batch;
    return (size_t)(rows * (X_STEP(p.wide) + p.wide) + (p.s.used * MR + 1) * p.wide +
                    p.per * MR * p.s.taps * edge_step(&p)) *
           sizeof(float);
}

struct work {
    const struct tap_pairs_plan *p;
    const struct ew_unpacked_grads *g;
    int64_t c0, inputs;                /* inputs [c0, c0 + inputs) of the tile */
    int64_t o, count;                  /* outputs of the chunk */
    float *x, *dx;                     /* [in][images][X_STEP], [in][images][wide] */
    float *sums;                       /* [used taps][MR][wide], then `wide` zeros */
    float *edge;                       /* [taps][outputs of the chunk][edge_step] */
    int64_t row[MR], sum_row[MR];      /* offsets of rows of dx, `wide` apart, and of sums, `wide`
                                        * or with folding NR apart */
    struct fetch filter, state;        /* prefetch of the next chunk's filters, and of this chunk's
                                        * optimiser state */
    int64_t filter_share, state_share; /* lines to prefetch during each product */
};

static void copy_inputs(const struct work *w)
{
    const struct tap_pairs *s = &w->p->s;
    for (int64_t in = 0; in < s->ins; in++)
        for (int64_t n = 0; n < s->batch; n++) {
            float *to = w->x + (in * s->batch + n) * X_STEP(w->p->wide);
            copy(to, w->g->filter.x + (n * s->ins + in) * s->cin + w->c0, w->inputs);
            clear(to + w->inputs, w->p->wide - w->inputs);
        }
}

static void fold_inputs(const struct work *w)
{
    const struct tap_pairs *s = &w->p->s;
    const int64_t wide = w->p->wide;
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t c = 0; c < wide; c += LANES) {
            const float *from = w->g->filter.x + n * SQUARE * s->cin + w->c0 + c;
            const int64_t there = max_i64(w->inputs - c, 0);
            vec pixels[SQUARE], out[FOLDED];
            for (int64_t i = 0; i < SQUARE; i++)
                pixels[i] = load_n(from + i * s->cin, there);
            fold_pixels(pixels, out, false);
            for (int64_t k = 0; k < FOLDED; k++)
                store(w->x + (k * s->batch + n) * X_STEP(wide) + c, out[k]);
        }
}

/* Folds NR inputs from c on of all filters of the chunk, zero padded; all taps stay in L1 until
 * they are multiplied. */
static void fold_filters(const struct work *w, int64_t c)
{
    const struct tap_pairs *s = &w->p->s;
    for (int64_t o = 0; o < w->count; o++)
        for (int64_t i = 0; i < NR; i += LANES) {
            const float *from = w->g->w + (w->o + o) * FOLDED * s->cin + w->c0 + c + i;
            const int64_t there = max_i64(w->inputs - c - i, 0);
            vec taps[FOLDED], out[FOLDED];
            UNROLL
            for (int t = 0; t < FOLDED; t++)
                taps[t] = load_n(from + t * s->cin, there);
            fold_taps(taps, out);
            UNROLL
            for (int t = 0; t < FOLDED; t++)
                store(w->edge + (t * w->count + o) * NR + i, out[t]);
        }
}

/* Copies up to edge_step inputs from c on of all filters of the chunk, zero padded, since whole
 * pieces are read. */
static void copy_edge(const struct work *w, int64_t c)
{
    const struct tap_pairs *s = &w->p->s;
    const int64_t step = edge_step(w->p);
    for (int64_t t = 0; t < s->taps; t++) {
        if (s->first[t] == s->first[t + 1])
            continue;
        for (int64_t o = 0; o < w->count; o++) {
            float *to = w->edge + (t * w->count + o) * step;
            const float *from = w->g->w + ((w->o + o) * s->taps + t) * s->cin + w->c0 + c;
            const int64_t n = min_i64(step, w->inputs - c);
            copy(to, from, n);
            clear(to + n, step - n);
        }
    }
}

/* The pairs of one input position. */
struct input_pairs {
    int count, pair[TAP_PAIRS_PAIRS];
};

static void find_pairs(const struct tap_pairs *s, int in, struct input_pairs *out)
{
    out->count = 0;
    for (int i = 0; i < s->count; i++)
        if (s->pair[i].in == in)
            out->pair[out->count++] = i;
}

/* dx of one input position, `width` inputs from c on; `edge`: filters are read from w->edge. */
static void multiply_data(struct work *w, const struct input_pairs *pairs, int64_t c, int64_t width,
                          bool edge)
{
    const struct tap_pairs *s = &w->p->s;
    struct micro_span span[TAP_PAIRS_PAIRS];
    const int64_t step = edge ? edge_step(w->p) : s->taps * s->cin;
    for (int64_t panel = 0; panel < w->p->panels; panel++) {
        const int64_t n = panel * w->p->rows;
        for (int i = 0; i < pairs->count; i++) {
            const struct tap_pair *p = &s->pair[pairs->pair[i]];
            span[i].a = w->g->shared + images_at(w->p, p->out, panel, w->o);
            span[i].w = edge ? w->edge + p->tap * w->count * step
                             : w->g->w + (w->o * s->taps + p->tap) * s->cin + w->c0 + c;
        }
        float *dx = w->dx + (s->pair[pairs->pair[0]].in * s->batch + n) * w->p->wide + c;
        const struct micro m = {.span = span,
                                .lines = pairs->count,
                                .line_step = step,
                                .kc = w->count,
                                .from = dx,
                                .c = dx,
                                .row = w->row,
                                .width = width,
                                .lo = -INFINITY,
                                .hi = INFINITY};
        if (w->g->no_filter)
            fetch_some(&w->filter, w->filter_share);
        else
            fetch_some(&w->state, w->state_share);
        EW_K(micro_spans)(&m, (int)min_i64(w->p->rows, s->batch - n));
    }
}

/* Copies NR inputs at a time for all positions. */
static void run_copied_data(struct work *w)
{
    for (int64_t c = 0; c < w->inputs; c += NR) {
        copy_edge(w, c);
        for (int in = 0; in < w->p->s.ins; in++) {
            struct input_pairs pairs;
            find_pairs(&w->p->s, in, &pairs);
            if (pairs.count)
                multiply_data(w, &pairs, c, min_i64(NR, w->inputs - c), true);
        }
    }
}

static void run_data(struct work *w)
{
    const int64_t whole = w->inputs / PIECE * PIECE;
    if (COPIES) {
        run_copied_data(w);
        return;
    }
    if (whole < w->inputs)
        copy_edge(w, whole);
    for (int in = 0; in < w->p->s.ins; in++) {
        struct input_pairs pairs;
        find_pairs(&w->p->s, in, &pairs);
        if (pairs.count == 0)
            continue;
        for (int64_t c = 0; c < whole; c += NR)
            multiply_data(w, &pairs, c, min_i64(NR, whole - c), false);
        if (whole < w->inputs)
            multiply_data(w, &pairs, whole, w->inputs - whole, true);
    }
}

static void run_folded_data(struct work *w)
{
    for (int64_t c = 0; c < w->inputs; c += NR) {
        fold_filters(w, c);
        for (int k = 0; k < FOLDED; k++) {
            const struct input_pairs pair = {1, {k}};
            multiply_data(w, &pair, c, min_i64(NR, w->inputs - c), true);
        }
    }
}

/* Wgrad of one tap of a block of outputs, NR inputs from c on. */
static void multiply_filter(struct work *w, int64_t tap, int64_t block, int64_t c, float *sums)
{
    const struct tap_pairs *s = &w->p->s;
    struct micro_span span[TAP_PAIRS_PAIRS];
    const int first = s->first[tap], count = s->first[tap + 1] - first;
    for (int i = 0; i < count; i++) {
        const struct tap_pair *p = &s->pair[first + i];
        span[i] = (struct micro_span){w->g->shared + outputs_at(w->p, p->out, block),
                                      w->x + p->in * s->batch * X_STEP(w->p->wide) + c};
    }
    const struct micro m = {.span = span,
                            .lines = count,
                            .line_step = X_STEP(w->p->wide),
                            .kc = s->batch,
                            .c = sums,
                            .row = w->sum_row,
                            .width = min_i64(NR, w->inputs - c),
                            .lo = -INFINITY,
                            .hi = INFINITY};
    fetch_some(&w->filter, w->filter_share);
    EW_K(micro_spans)(&m, (int)min_i64(MR, s->cout - block * MR));
}

/* Stores the gradient g of n <= LANES weights from `at` on, or applies the update. */
INLINE void put_vec(const struct ew_conv_wgrad *f, const struct ew_update *u, int64_t at, vec g,
                    int64_t n)
{
    if (!f->update)
        store_n(f->dw + at, f->add ? g + load_n(f->dw + at, n) : g, n);
    else if (u->is_adam)
        adam_vec(&u->adam, at, g, n);
    else
        sgd_vec(&u->sgd, at, g, n);
}

/* Unfolds the sums of NR inputs from c on, and stores or applies them. */
static void finish_folded(const struct work *w, int64_t o, int64_t c)
{
    const struct tap_pairs *s = &w->p->s;
    const struct ew_conv_wgrad f = w->g->filter; /* copies, which stores cannot alias */
    const struct ew_update u = f.update ? *f.update : (struct ew_update){0};
    const int64_t n = min_i64(NR, w->inputs - c);
    for (int64_t r = 0; r < min_i64(MR, s->cout - o); r++)
        for (int64_t i = 0; i < n; i += LANES) {
            const int64_t at = (o + r) * FOLDED * s->cin + w->c0 + c + i;
            vec g[FOLDED], out[FOLDED];
            UNROLL
            for (int t = 0; t < FOLDED; t++)
                g[t] = load(w->sums + (t * MR + r) * NR + i);
            unfold_taps(g, out);
            UNROLL
            for (int t = 0; t < FOLDED; t++)
                put_vec(&f, &u, at + t * s->cin, out[t], n - i);
        }
}

static void run_folded_filter(struct work *w)
{
    for (int64_t o = w->o; o < w->o + w->count; o += MR)
        for (int64_t c = 0; c < w->inputs; c += NR) {
            for (int64_t t = 0; t < FOLDED; t++)
                multiply_filter(w, t, o / MR, c, w->sums + t * MR * NR);
            finish_folded(w, o, c);
        }
}

/* Stores or applies the sums, output by output in memory order. */
static void finish_filter(const struct work *w, int64_t o)
{
    const struct tap_pairs *s = &w->p->s;
    const int64_t block = MR * w->p->wide;
    const struct ew_conv_wgrad f = w->g->filter; /* a copy, which stores cannot alias */
    for (int64_t r = 0; r < min_i64(MR, s->cout - o); r++) {
        const float *sums = w->sums + r * w->p->wide;
        for (int64_t t = 0; t < s->taps; t++) {
            const int64_t at = ((o + r) * s->taps + t) * s->cin + w->c0;
            const bool used = s->first[t] < s->first[t + 1];
            const float *from = used ? sums : w->sums + s->used * block; /* zeros */
            if (!used && w->g->skip_unmet)
                continue;
            if (f.update)
                update_piece(f.update, at, from, w->inputs);
            for (int64_t c = 0; !f.update && c < w->inputs; c += LANES)
                put_vec(&f, NULL, at + c, load(from + c), w->inputs - c);
            sums += used ? block : 0;
        }
    }
}

static void run_filter(struct work *w)
{
    const struct tap_pairs *s = &w->p->s;
    for (int64_t o = w->o; o < w->o + w->count; o += MR) {
        float *sums = w->sums;
        for (int64_t t = 0; t < s->taps; t++)
            if (s->first[t] < s->first[t + 1]) {
                for (int64_t c = 0; c < w->inputs; c += NR)
                    multiply_filter(w, t, o / MR, c, sums + c);
                sums += MR * w->p->wide;
            }
        finish_filter(w, o);
    }
}

static const float *state_of(const struct ew_unpacked_grads *g)
{
    const struct ew_update *u = g->no_filter ? NULL : g->filter.update;
    return !u ? NULL : u->is_adam ? u->adam.m : u->sgd.m;
}

/* The first output of a range. */
static int64_t split_at(const struct tap_pairs_plan *p, int64_t split)
{
    return min_i64(p->blocks * split / p->splits * MR, p->s.cout);
}

/* The part of p (weights or optimiser state) that the chunk from output o on of a tile needs: used
 * taps of whole filters, or only the tile's inputs if inputs are divided. */
static struct fetch fetch_chunk(const struct work *w, const float *p, int64_t tile, int64_t o)
{
    const struct tap_pairs *s = &w->p->s;
    const int64_t c0 = tile % w->p->c_tiles * w->p->wide;
    const int64_t last = split_at(w->p, tile / w->p->c_tiles + 1);
    const int64_t count = min_i64(w->p->per * MR, last - o);
    const int64_t first = s->count ? s->pair[0].tap : 0;
    const int64_t taps = s->count ? s->pair[s->count - 1].tap + 1 - first : 0;
    if (!p || count <= 0)
        return (struct fetch){0};
    if (w->p->c_tiles == 1)
        return (struct fetch){.at = p + (o * s->taps + first) * s->cin,
                              .step = s->taps * s->cin,
                              .pieces = count,
                              .lines = div_up(taps * s->cin, LINE)};
    return (struct fetch){.at = p + o * s->taps * s->cin + c0,
                          .step = s->cin,
                          .pieces = s->used == s->taps ? count * s->taps : 0,
                          .lines = div_up(min_i64(w->p->wide, s->cin - c0), LINE)};
}

/* Prefetches the optimiser's state of the chunk during dgrad, and the next chunk's filters (or the
 * next tile's first) during wgrad: both at once would not fit into L2. */
static void plan_fetch(struct work *w, int64_t tile)
{
    const struct tap_pairs *s = &w->p->s;
    const int64_t next = w->o + w->count, c_tiles = w->p->c_tiles;
    const bool ends = next >= split_at(w->p, tile / c_tiles + 1);
    const int64_t columns = div_up(w->inputs, NR);
    const int64_t data = w->g->dx ? columns * s->ins * w->p->panels : 0;
    const int64_t filter = w->g->no_filter ? 0 : columns * s->used * div_up(w->count, MR);
    w->state = fetch_chunk(w, state_of(w->g), tile, w->o);
    w->filter =
        fetch_chunk(w, w->g->w, tile + ends, ends ? split_at(w->p, (tile + 1) / c_tiles) : next);
    w->state_share = data ? div_up(w->state.pieces * w->state.lines, data) : 0;
    w->filter_share =
        div_up(w->filter.pieces * w->filter.lines, max_i64(filter ? filter : data, 1));
}

/* Unfolds dx to pixels, in place. */
static void unfold_data(const struct work *w)
{
    const int64_t size = w->p->s.batch * w->p->wide;
    for (int64_t i = 0; i < size; i += LANES) {
        vec m[FOLDED], out[SQUARE];
        for (int64_t k = 0; k < FOLDED; k++)
            m[k] = load(w->dx + k * size + i);
        unfold_pixels(m, out, true);
        for (int64_t k = 0; k < SQUARE; k++)
            store(w->dx + k * size + i, out[k]);
    }
}

static void finish_data(const struct work *w, int64_t split)
{
    const struct tap_pairs *s = &w->p->s;
    const int64_t ins = pixels_of(s, s->ins);
    const bool whole = w->p->splits == 1;
    if (s->folded)
        unfold_data(w);
    float *to =
        whole ? w->g->dx : w->g->shared + w->p->y_size + w->p->t_size + split * dx_size(w->p);
    for (int64_t i = 0; i < ins * s->batch; i++) {
        const float *from = w->dx + i * w->p->wide;
        float *out = to + (i % s->batch * ins + i / s->batch) * s->cin + w->c0;
        for (int64_t c = 0; c < w->inputs; c += LANES) {
            const int64_t n = w->inputs - c;
            vec v = load_n(from + c, n);
            if (whole && w->g->add_dx)
                v += load_n(out + c, n);
            store_n(out + c, v, n);
        }
    }
}

static void run_tile(struct work *w, int64_t tile)
{
    const struct tap_pairs_plan *p = w->p;
    const int64_t split = tile / p->c_tiles;
    const int64_t last = split_at(p, split + 1);
    w->c0 = tile % p->c_tiles * p->wide;
    w->inputs = min_i64(p->wide, p->s.cin - w->c0);
    if (p->s.folded)
        fold_inputs(w);
    else
        copy_inputs(w);
    clear(w->dx, p->s.ins * p->s.batch * p->wide);
    for (w->o = split_at(p, split); w->o < last; w->o += w->count) {
        w->count = min_i64(p->per * MR, last - w->o);
        plan_fetch(w, tile);
        if (w->g->dx && p->s.folded)
            run_folded_data(w);
        else if (w->g->dx)
            run_data(w);
        if (!w->g->no_filter && p->s.folded)
            run_folded_filter(w);
        else if (!w->g->no_filter)
            run_filter(w);
    }
    if (w->g->dx)
        finish_data(w, split);
}

void EW_K(tap_pairs_grad_run)(const struct ew_unpacked_grads *g, int64_t begin, int64_t end,
                              void *scratch)
{
    struct tap_pairs_plan p;
    tap_pairs_plan_init(&p, &g->filter.shape);
    const int64_t rows = p.s.ins * p.s.batch;
    struct work w = {.p = &p, .g = g, .x = scratch};
    w.dx = w.x + rows * X_STEP(p.wide);
    w.sums = w.dx + rows * p.wide;
    w.edge = w.sums + (p.s.used * MR + 1) * p.wide;
    clear(w.edge - p.wide, p.wide);
    for (int r = 0; r < MR; r++) {
        w.row[r] = r * p.wide;
        w.sum_row[r] = p.s.folded ? r * NR : w.row[r];
    }
    for (int64_t i = begin; i < end; i++)
        run_tile(&w, i);
}

/* ---- Reduction of partial dx ---- */

int64_t EW_K(tap_pairs_grad_sum_tiles)(const struct ew_conv_shape *s)
{
    struct tap_pairs_plan p;
    tap_pairs_plan_init(&p, s);
    return p.splits > 1 ? div_up(dx_size(&p), FILTER_SUM) : 0;
}

void EW_K(tap_pairs_grad_sum)(const struct ew_unpacked_grads *g, int64_t begin, int64_t end)
{
    struct tap_pairs_plan p;
    tap_pairs_plan_init(&p, &g->filter.shape);
    const int64_t size = dx_size(&p), at = begin * FILTER_SUM;
    const struct ew_conv_wgrad sum = {.dw = g->dx, .add = g->add_dx};
    filter_sum(&sum, g->shared + p.y_size + p.t_size + at, p.splits, size, at,
               min_i64(end * FILTER_SUM, size) - at);
}
