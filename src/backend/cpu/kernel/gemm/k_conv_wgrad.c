/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad: gradient of a convolution with respect to its filter, dw[o][k] = sum over output pixels of
 * dy[pixel][o] x[pixel][k], where x[pixel] is the row that the forward pass gathers.
 *
 * A tile is O_SPLIT outputs x one chunk of at most KC columns of k of one group.  For PIXELS pixels
 * at a time, its part of x is gathered ([PIXELS][KS], 136 KiB: in L2) and its part of dy is packed
 * ([outputs / MR][PIXELS][MR]); then MR outputs x NR columns of dw are accumulated in registers
 * over these pixels.  If there are fewer than WANTED tiles, pixels are split as well.
 *
 * First layers have few columns and many pixels, and packing dy would take as long as multiplying.
 * There the roles are swapped (`narrow`): rows are columns of k, lanes are outputs, x is read from
 * a line buffer and dy in place. */
#include <math.h>

#include "backend/cpu/kernel/gemm/implicit_gemm.h"
#include "backend/cpu/kernel/gemm/wgrad_sum.h"

#define PIXELS  128
#define O_SPLIT (9 * MR) /* about 128 with AVX-512 */
#define WANTED  12

struct plan {
    struct implicit_gemm core;
    int64_t chunks, o_splits, splits, blocks; /* blocks: of PIXELS pixels */
    int64_t tiles, size;                      /* size: floats of dw, without unused taps */
    bool partial; /* results go to f->partial: pixels are split, or taps are unused */
    bool narrow;
    int64_t outputs; /* of all groups */
};

/* Swapped roles need outputs in whole vectors, and must not increase the padded MACs. */
static bool is_narrow(const struct plan *p)
{
    const struct implicit_gemm *c = &p->core;
    return c->line_buffer && p->partial && p->chunks == 1 && p->o_splits == 1 &&
           c->og % PIECE == 0 && c->k * div_up(c->og, LANES) <= c->og * div_up(c->k, LANES);
}

static void init(struct plan *p, const struct ew_conv_shape *s)
{
    EW_K(implicit_gemm_init)(&p->core, s);
    const struct implicit_gemm *c = &p->core;
    p->chunks = c->k ? div_up(c->k, c->kc) : 0;
    p->o_splits = div_up(c->og, O_SPLIT);
    p->blocks = div_up(c->rows, PIXELS);
    const int64_t tiles = c->groups * p->chunks * p->o_splits;
    p->splits = tiles ? min_i64(max_i64(WANTED / tiles, 1), max_i64(p->blocks, 1)) : 1;
    p->tiles = tiles * p->splits;
    p->outputs = c->groups * c->og;
    p->size = p->outputs * c->k;
    p->partial = p->splits > 1 || c->used.trimmed;
    p->narrow = is_narrow(p);
}

size_t EW_K(conv_wgrad_partial)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return p.partial ? (size_t)(p.splits * (p.size + p.outputs)) : 0; /* dw, then db */
}

int64_t EW_K(conv_wgrad_tiles)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return p.tiles;
}

#define DY_BLOCK       (PIXELS * MR + LANES)
#define SCRATCH_FLOATS (PIXELS * KS + O_SPLIT / MR * DY_BLOCK + LINE_BUFFER_FLOATS + O_SPLIT * KC)

size_t EW_K(conv_wgrad_scratch)(const struct ew_conv_shape *s)
{
    return SCRATCH_FLOATS * sizeof(float);
}

struct work {
    const struct plan *plan;
    const struct ew_conv_wgrad *f;
    float *x, *dy, *line_buffer; /* scratch */
    float *sums;                 /* scratch: the tile's gradients before the optimiser update */
    float *out;                  /* dw of the tile's first output and column */
    int64_t out_step;            /* floats between outputs */
    int64_t outputs, width;
    bool add;
};

/* ---- The bias gradient: sums of dy, computed along the way ---- */

#define AHEAD 16 /* prefetch distance in pixels: hardware prefetchers miss parts of rows */

/* sum [outputs] += sums over `count` pixels of dy. */
static void add_bias(const struct work *w, const float *dy, int64_t count, float *sum)
{
    const int64_t step = w->plan->core.y_step[2];
    for (int64_t o = 0; o < w->outputs; o += LANES) {
        const int64_t n = min_i64(LANES, w->outputs - o);
        const float *p = dy + o;
        vec s[4] = {{0}};
        int64_t i = 0;
        for (; i + 4 <= count; i += 4, p += 4 * step) {
            UNROLL
            for (int j = 0; j < 4; j++) {
                __builtin_prefetch(p + (AHEAD + j) * step);
                s[j] += load_n(p + j * step, n);
            }
        }
        for (; i < count; i++, p += step)
            s[0] += load_n(p, n);
        store_n(sum + o, load_n(sum + o, n) + ((s[0] + s[1]) + (s[2] + s[3])), n);
    }
}

/* Stores a tile's sums, from output o on. */
static void put_bias(const struct work *w, int64_t split, int64_t o, const float *sum)
{
    const struct plan *p = w->plan;
    const struct ew_conv_wgrad *f = w->f;
    float *to = p->partial ? f->partial + p->splits * p->size + split * p->outputs : f->db;
    for (int64_t i = 0; i < w->outputs; i++)
        to[o + i] = sum[i] + (!p->partial && f->add_db ? to[o + i] : 0);
}

/* Reduces the splits' sums. */
static void sum_bias(const struct plan *p, const struct ew_conv_wgrad *f)
{
    const float *from = f->partial + p->splits * p->size;
    for (int64_t o = 0; o < p->outputs; o++) {
        float sum = f->add_db ? f->db[o] : 0;
        for (int64_t i = 0; i < p->splits; i++)
            sum += from[i * p->outputs + o];
        f->db[o] = sum;
    }
}

/* ---- Filters ---- */

/* Packs dy of `count` pixels, from output o on, as blocks [count][MR].  Stores are whole vectors:
 * the excess is overwritten by the next pixel, or falls into the gap between blocks. */
static void lay_out(const struct work *w, const struct pixel *pixel, int64_t count, int64_t o)
{
    for (int64_t i = 0; i < count; i++) {
        const float *from = w->f->dy + pixel[i].y + o;
        float *to = w->dy + i * MR;
        for (int64_t b = 0; b < w->outputs; b += MR, to += DY_BLOCK)
            for (int64_t j = 0; j < min_i64(MR, w->outputs - b); j += LANES)
                store(to + j, load_n(from + b + j, min_i64(MR, w->outputs - b) - j));
    }
}

/* Operands that are read in place. */
struct direct {
    const float *x, *dy;
};

static void multiply(const struct work *w, int64_t count, const struct direct *direct)
{
    const struct implicit_gemm *core = &w->plan->core;
    int64_t row[MR];
    for (int r = 0; r < MR; r++)
        row[r] = r * w->out_step;
    for (int64_t j = 0; j < w->width; j += NR) {
        const int64_t width = min_i64(NR, w->width - j);
        for (int64_t b = 0; b < w->outputs; b += MR) {
            float *c = w->out + b * w->out_step + j;
            const struct micro m = {.a = direct ? direct->dy + b : w->dy + b / MR * DY_BLOCK,
                                    .w = (direct ? direct->x : w->x) + j,
                                    .row_step = core->y_step[2],
                                    .line_step = core->x_step[2],
                                    .kc = count,
                                    .from = w->add ? c : NULL,
                                    .c = c,
                                    .row = row,
                                    .width = width,
                                    .lo = -INFINITY,
                                    .hi = INFINITY};
            if (direct)
                EW_K(micro_outer_direct)(&m, (int)min_i64(MR, w->outputs - b));
            else
                EW_K(micro_outer)(&m, (int)min_i64(MR, w->outputs - b));
        }
    }
}

/* Pixels of a multiple of so many channels are gathered, not read in place: they share so few sets
 * of L1 that lines are gone before their next use.  AVX2 uses each line at least twice, since a
 * block of MR rows takes two passes. */
#if defined(EW_ISA_IS_avx2)
#define APART 256
#else
#define APART 1024
#endif

/* True if pixels up to `last` can be read in place: 1x1 with stride 1, and whole vectors do not
 * reach beyond x. */
static bool is_direct(const struct implicit_gemm *c, int64_t last)
{
    return c->flat && c->x_step[2] % APART != 0 && c->y_step[2] % APART != 0 &&
           (c->rows - last) * c->cg >= NR;
}

/* Gathers and multiplies the pixels and columns `at` of group g, outputs from o on. */
static void multiply_gathered(const struct work *w, struct implicit_gemm_rows at, int64_t g,
                              int64_t o)
{
    const struct implicit_gemm *c = &w->plan->core;
    const int64_t count = at.last - at.first;
    struct pixel pixel[PIXELS];
    EW_K(implicit_gemm_pixels)(c, at.first, (int)count, pixel);
    if (c->line_buffer)
        EW_K(implicit_gemm_gather_lines)(c, w->f->x + g * c->cg, at, w->line_buffer, w->x);
    else
        EW_K(implicit_gemm_gather)
    (c, w->f->x + g * c->cg, pixel, (int)count, at.k0, at.k1, w->x);
    lay_out(w, pixel, count, g * c->og + o);
    multiply(w, count, NULL);
}

/* Lanes beyond the tile's last column are computed and discarded; zeros avoid slow denormals
 * there. */
static void clear_behind(const struct work *w)
{
    const int64_t wide = div_up(w->width, NR) * NR;
    for (int64_t i = 0; i < PIXELS; i++)
        for (int64_t j = w->width; j < wide; j += LANES)
            store(w->x + i * KS + j, (vec){0});
}

/* Accumulates one row of output pixels into sums [k][og]. */
static void multiply_line(const struct work *w, int64_t line, int64_t g, bool first)
{
    const struct implicit_gemm *c = &w->plan->core;
    const int64_t run = c->axis[2].taps * c->cg, out = c->axis[2].out;
    const int64_t step = div_up(run, div_up(run, MR)); /* rows at a time, of about equal size */
    int64_t row[MR];
    for (int r = 0; r < MR; r++)
        row[r] = r * c->og;
    EW_K(implicit_gemm_fill_lines)(c, w->f->x + g * c->cg, line, w->line_buffer);
    for (int64_t t = 0; t < c->lines; t++)
        for (int64_t k = 0; k < run; k += step)
            for (int64_t o = 0; o < c->og; o += NR) {
                float *sums = w->sums + (t * run + k) * c->og + o;
                const struct micro m = {.a = w->line_buffer + t * c->line_floats + k,
                                        .w = w->f->dy + line * out * c->y_step[2] + g * c->og + o,
                                        .row_step = c->axis[2].stride * c->cg,
                                        .line_step = c->y_step[2],
                                        .kc = out,
                                        .from = first ? NULL : sums,
                                        .c = sums,
                                        .row = row,
                                        .width = min_i64(NR, c->og - o),
                                        .lo = -INFINITY,
                                        .hi = INFINITY};
                EW_K(micro_outer_direct)(&m, (int)min_i64(step, run - k));
            }
}

/* A tile is a range of rows of outputs. */
static void run_narrow(struct work *w, int64_t tile)
{
    const struct plan *p = w->plan;
    const struct implicit_gemm *c = &p->core;
    const int64_t split = tile % p->splits, g = tile / p->splits, lines = c->rows / c->axis[2].out;
    const int64_t first = lines * split / p->splits, last = lines * (split + 1) / p->splits;
    float *out = w->f->partial + split * p->size + g * c->og * c->k, bias[O_SPLIT + LANES] = {0};
    w->outputs = c->og;
    for (int64_t i = first; i < last; i++) {
        const int64_t out_line = c->axis[2].out * c->y_step[2];
        if (w->f->db)
            add_bias(w, w->f->dy + i * out_line + g * c->og, c->axis[2].out, bias);
        multiply_line(w, i, g, i == first);
    }
    if (w->f->db)
        put_bias(w, split, g * c->og, bias);
    for (int64_t o = 0; o < c->og; o++)
        for (int64_t k = 0; k < c->k; k++)
            out[o * c->k + k] = first < last ? w->sums[k * c->og + o] : 0;
}

static void run_tile(struct work *w, int64_t tile)
{
    const struct plan *p = w->plan;
    const struct implicit_gemm *c = &p->core;
    const int64_t o = tile % p->o_splits * O_SPLIT, split = tile / p->o_splits % p->splits;
    const int64_t chunk = tile / p->o_splits / p->splits % p->chunks;
    const int64_t g = tile / p->o_splits / p->splits / p->chunks;
    const int64_t k0 = chunk * c->kc, k1 = min_i64(k0 + c->kc, c->k);
    w->outputs = min_i64(O_SPLIT, c->og - o);
    w->width = k1 - k0;
    clear_behind(w);
    const int64_t at = (g * c->og + o) * c->k + k0;
    const bool update = w->f->update && !p->partial;
    w->out = update ? w->sums : p->partial ? w->f->partial + split * p->size + at : w->f->dw + at;
    w->out_step = update ? KC : c->k;
    w->add = !p->partial && w->f->add;
    float bias[O_SPLIT + LANES] = {0};
    const bool sums = w->f->db && chunk == 0;
    const int64_t first = p->blocks * split / p->splits * PIXELS;
    const int64_t last = min_i64(p->blocks * (split + 1) / p->splits * PIXELS, c->rows);
    int64_t row = first;
    do { /* at least once: without pixels dw is set to zero */
        const int64_t count = max_i64(min_i64(PIXELS, last - row), 0);
        if (sums)
            add_bias(w, w->f->dy + row * c->y_step[2] + g * c->og + o, count, bias);
        if (is_direct(c, row + count)) {
            const struct direct d = {w->f->x + row * c->x_step[2] + g * c->cg + k0,
                                     w->f->dy + row * c->y_step[2] + g * c->og + o};
            multiply(w, count, &d);
        } else {
            multiply_gathered(w, (struct implicit_gemm_rows){row, row + count, k0, k1}, g, o);
        }
        w->add = true;
        row += PIXELS;
    } while (row < last);
    if (sums)
        put_bias(w, split, g * c->og + o, bias);
    for (int64_t i = 0; update && i < w->outputs; i++)
        update_piece(w->f->update, at + i * c->k, w->sums + i * KC, w->width);
}

void EW_K(conv_wgrad_run)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end, void *scratch)
{
    struct plan p;
    init(&p, &f->shape);
    struct work w = {.plan = &p, .f = f, .x = scratch};
    w.dy = w.x + PIXELS * KS;
    w.line_buffer = w.dy + O_SPLIT / MR * DY_BLOCK;
    w.sums = w.line_buffer + LINE_BUFFER_FLOATS;
    for (int64_t i = begin; i < end; i++)
        if (p.narrow)
            run_narrow(&w, i);
        else
            run_tile(&w, i);
}

int64_t EW_K(conv_wgrad_sum_tiles)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    if (p.core.used.trimmed)
        return p.core.groups * p.core.og;
    return p.partial ? div_up(p.size, FILTER_SUM) : 0;
}

/* One output's filter with unused taps, whose gradients are zero. */
static void sum_filter(const struct plan *p, const struct ew_conv_wgrad *f, int64_t o)
{
    const struct implicit_gemm *c = &p->core;
    const struct used *u = &c->used;
    const int64_t run = c->axis[2].taps * c->cg, line = u->all[2] * c->cg;
    const float *from = f->partial + o * c->k;
    int64_t at = o * u->all[0] * u->all[1] * line;
    for (int64_t t0 = 0; t0 < u->all[0]; t0++)
        for (int64_t t1 = 0; t1 < u->all[1]; t1++, at += line) {
            const int64_t u0 = t0 - u->first[0], u1 = t1 - u->first[1];
            if (u0 < 0 || u0 >= c->axis[0].taps || u1 < 0 || u1 >= c->axis[1].taps) {
                filter_sum(f, NULL, 0, 0, at, line);
                continue;
            }
            const int64_t before = u->first[2] * c->cg;
            filter_sum(f, NULL, 0, 0, at, before);
            filter_sum(f, from, p->splits, p->size, at + before, run);
            filter_sum(f, NULL, 0, 0, at + before + run, line - before - run);
            from += run;
        }
}

void EW_K(conv_wgrad_sum)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end)
{
    struct plan p;
    init(&p, &f->shape);
    if (f->db && begin == 0 && end > 0)
        sum_bias(&p, f);
    if (p.core.used.trimmed) {
        for (int64_t o = begin; o < end; o++)
            sum_filter(&p, f, o);
        return;
    }
    const int64_t at = begin * FILTER_SUM, last = min_i64(end * FILTER_SUM, p.size);
    filter_sum(f, f->partial + at, p.splits, p.size, at, last - at);
}
