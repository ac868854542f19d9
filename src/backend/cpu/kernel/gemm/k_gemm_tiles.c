/* SPDX-License-Identifier: Apache-2.0 */
/* The implicit GEMM's tiles: rows x blocks of outputs, with the epilogue.  k_implicit_gemm.c has
 * blocking and gathering. */
#include <math.h>

#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/gemm/implicit_gemm.h"
#include "backend/cpu/kernel/gemm/micro_strip.h"
#include "backend/cpu/kernel/norm/norm_rows.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

/* The outputs of one panel and one block. */
struct outputs {
    float *y;
    const float *add; /* added after the activation; NULL: none */
    const float *mask;
    const int64_t *row;
    int rows;
    int64_t width;
};

INLINE void finish_as(enum ew_act act, const struct ew_epilogue *e, const struct outputs *o)
{
    for (int r = 0; r < o->rows; r++) {
        float *p = o->y + o->row[r];
        int64_t i = 0;
        for (; !o->add && i + LANES <= o->width; i += LANES)
            store(p + i, vact_end(act, load(p + i), e->lo, e->hi));
        for (; i < o->width; i += LANES) {
            const int64_t n = o->width - i;
            const vec sum = load_n(p + i, n);
            const vec v = vact_end(act, sum, e->lo, e->hi);
            store_n(p + i, o->add ? v + load_n(o->add + o->row[r] + i, n) : v, n);
        }
    }
}

static void mask_rows(const struct outputs *o)
{
    for (int r = 0; r < o->rows; r++) {
        float *p = o->y + o->row[r];
        const float *mask = o->mask + o->row[r];
        for (int64_t i = 0; i < o->width; i += LANES) {
            const int64_t n = o->width - i;
            store_n(p + i, keep(load_n(mask + i, n) > 0.0f, load_n(p + i, n)), n);
        }
    }
}

/* The part of the epilogue beyond the micro-kernel's clamp, on rows that are still in L1.  Common
 * activations have specialised loops. */
static void finish_rows(const struct ew_epilogue *e, const struct outputs *o)
{
    if (o->mask)
        mask_rows(o);
    else if (e->act == EW_ACT_HARD_SWISH)
        finish_as(EW_ACT_HARD_SWISH, e, o);
    else if (e->act == EW_ACT_SILU)
        finish_as(EW_ACT_SILU, e, o);
    else if (e->act == EW_ACT_GELU)
        finish_as(EW_ACT_GELU, e, o);
    else
        finish_as(e->act, e, o);
}

/* Prefetches rows of a matrix into L2. */
static void fetch_rows(const float *p, int64_t row, int64_t rows, int64_t step)
{
    const float *const end = p + (row + rows) * step;
    for (p += row * step; p < end; p += LINE)
        __builtin_prefetch(p, 0, 2);
}

/* Prefetches n floats of each row into L1. */
static void fetch_parts(const float *p, const int64_t *row, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i += LINE)
            __builtin_prefetch(p + row[r] + i, 0, 3);
}

struct tile {
    const struct implicit_gemm_run *run;
    const float *x, *w, *bias, *add, *mask; /* of the group */
    float *y;
    int64_t block, blocks; /* blocks of NR outputs: [block, blocks) */
    int64_t k0, k1;
    float lo, hi;    /* the clamp, applied with the last chunk of k */
    bool plain;      /* the epilogue is the clamp alone */
    enum ew_act act; /* or this activation alone; EW_ACT_NONE: neither */
    float *stats;    /* statistics of the split and group; NULL: not wanted */
    bool begins;     /* the tile is the first of its split */
    bool first;      /* and the panel the first of that tile */
    float *panel;    /* the gathered panel, or the line buffer */
    const float *a;
    int64_t row_step, lines, line_step; /* strides of a, if it is not a panel; row_step 0: it is */
    int64_t row[MR];                    /* offsets of the current panel's outputs */
    const float *next;                  /* the next panel, to prefetch; NULL: none */
    const float *ahead;                 /* instead of it: input of the norm that makes the next
                                         * tile's rows */
};

/* The weights to prefetch into L2 during block b: those of the next chunk of k, or of the next
 * tile.  Each panel prefetches one line for each step of k. */
static const float *weights_soon(const struct tile *t, int64_t b, int64_t panel)
{
    const struct implicit_gemm *c = t->run->core;
    const int64_t next = t->k1 < c->k ? b : b + c->o_block, from = t->k1 < c->k ? t->k1 : 0;
    const int64_t line = panel * (t->k1 - t->k0) * LINE;
    if (next >= c->blocks || line >= (t->k1 - t->k0) * NR)
        return NULL;
    return t->w + next * NR * c->k + from * packed_width(block_width(c->og, next)) + line;
}

/* What block b prefetches, one line for each step of k: the next panel's input, or with a line
 * buffer its output; else weights. */
static const float *prefetch_of(const struct tile *t, int64_t b, int64_t panel)
{
    const struct implicit_gemm *c = t->run->core;
    if (c->line_buffer)
        return t->next ? t->next + (b - t->block) * c->k * LINE : NULL;
    return t->next && b == t->block ? t->next : weights_soon(t, b, panel);
}

/* n blocks of a single row, as micro_direct; their weights are `step` floats apart. */
INLINE void add_blocks(const struct micro *m, int64_t step, const int n)
{
    vec sum[ROW_BLOCKS * NV];
    UNROLL
    for (int v = 0; v < n * NV; v++) {
        sum[v] = m->bias ? load(m->bias + v * LANES) : (vec){0};
        if (m->from)
            sum[v] += load(m->from + m->row[0] + v * LANES);
    }
    const float *w = m->w;
    for (int64_t k = 0; k < m->kc; k++, w += NR) {
        const vec x = splat(m->a[k]);
        UNROLL
        for (int v = 0; v < n * NV; v++)
            sum[v] += x * load(w + v / NV * step + v % NV * LANES);
    }
    const vec lo = splat(m->lo), hi = splat(m->hi);
    UNROLL
    for (int v = 0; v < n * NV; v++)
        store(m->c + m->row[0] + v * LANES, vmin(vmax(sum[v], lo), hi));
}

static void run_blocks(const struct micro *m, int64_t step, int64_t n)
{
    if (n == ROW_BLOCKS)
        add_blocks(m, step, ROW_BLOCKS);
    else if (n == 3)
        add_blocks(m, step, 3);
    else
        add_blocks(m, step, 2);
}

/* Number of whole blocks from b on to compute at once. */
static int64_t blocks_at(const struct tile *t, int64_t b)
{
    const struct implicit_gemm *c = t->run->core;
    const int64_t whole = block_width(c->og, c->blocks - 1) == NR ? c->blocks : c->blocks - 1;
    if (!t->row_step || t->stats || t->lines > 1)
        return 1;
    return max_i64(min_i64(c->at_once, min_i64(t->blocks, whole) - b), 1);
}

/* Multiplies a panel by a block packed in pairs, and takes the statistics of the outputs. */
static void run_pairs(const struct tile *t, const struct micro *m, int rows)
{
    const struct micro_strip strip = {.a = m->a,
                                      .row_step = m->row_step ? m->row_step : KS,
                                      .lines = m->lines,
                                      .line_step = m->line_step,
                                      .w = m->w,
                                      .kc = m->kc,
                                      .from = m->from ? m->from + m->row[0] : NULL,
                                      .bias = m->bias,
                                      .c = m->c + m->row[0],
                                      .c_step = t->run->core->y_step[2],
                                      .rows = rows,
                                      .width = m->width,
                                      .lo = m->lo,
                                      .hi = m->hi,
                                      .pairs = true};
    EW_K(micro_strip)(&strip);
    const struct stats to = {m->stats, m->stats_step, m->begins};
    for (int64_t i = 0; m->stats && i < m->width; i += LANES) {
        const int64_t n = m->width - i;
        struct stats_sums all = stats_load(&to, i, load_n(strip.c + i, n), n);
        for (int r = 0; r < rows; r++)
            stats_add(&all, load_n(strip.c + r * strip.c_step + i, n));
        stats_store(&to, i, &all, n);
    }
}

/* Multiplies a panel of `rows` pixels by all blocks of the tile, k in [k0, k1). */
static void run_panel(const struct tile *t, int64_t panel, int rows)
{
    const struct implicit_gemm *c = t->run->core;
    const bool first = t->k0 == 0, last = t->k1 == c->k;
    const float *from = !first ? t->y : t->run->end->add_after ? NULL : t->add;
    const float *bias = first ? t->bias : NULL, *stats = last ? t->stats : NULL;
    struct micro m = {.a = t->a,
                      .row_step = t->row_step,
                      .lines = t->lines,
                      .line_step = t->line_step,
                      .kc = (t->k1 - t->k0) / t->lines,
                      .row = t->row,
                      .lo = last ? t->lo : -INFINITY,
                      .hi = last ? t->hi : INFINITY,
                      .stats_step = stats_wide(c->groups * c->og),
                      .begins = t->first};
    for (int64_t b = t->block, n; b < t->blocks; b += n) {
        n = blocks_at(t, b);
        const int64_t o = b * NR, width = n > 1 ? n * NR : block_width(c->og, b);
        m.w = t->w + o * c->k + t->k0 * (n > 1 ? NR : packed_width(width));
        m.prefetch = prefetch_of(t, b, panel);
        m.from = from ? from + o : NULL;
        m.bias = bias ? bias + o : NULL;
        m.c = t->y + o;
        m.width = width;
        m.stats = stats ? t->stats + o : NULL;
        if (t->mask && last) /* hardware prefetchers miss it */
            fetch_parts(t->mask + o, t->row, rows, width);
        if (n > 1)
            run_blocks(&m, c->k * NR, n);
        else if (c->pairs && b == c->blocks - 1)
            run_pairs(t, &m, rows);
        else if (t->row_step)
            EW_K(micro_direct)(&m, rows);
        else
            EW_K(micro)(&m, rows);
        if (last && !t->plain) {
            const bool after = t->run->end->add_after && t->add;
            const struct outputs out = {.y = t->y + o,
                                        .add = after ? t->add + o : NULL,
                                        .mask = t->mask ? t->mask + o : NULL,
                                        .row = t->row,
                                        .rows = rows,
                                        .width = width};
            finish_rows(t->run->end, &out);
        }
    }
}

/* True if the rows can be one strip: outputs are rows of a matrix, so that a block of weights stays
 * in L1 for all rows of the tile. */
static bool is_strip(const struct tile *t, int64_t rows)
{
    return t->run->core->flat_y && !t->stats && !t->mask && rows > 1;
}

/* The input rows of the tile, k in [k0, k1): in place, or gathered. */
static const float *strip_rows(const struct tile *t, int64_t first, int64_t last)
{
    const struct implicit_gemm *c = t->run->core;
    struct pixel p[MR];
    if (c->flat || (STRIP_APART && c->apart))
        return t->x + first * c->x_step[2] + t->k0;
    for (int64_t at = first; at < last; at += MR) {
        const int rows = (int)min_i64(MR, last - at);
        EW_K(implicit_gemm_pixels)(c, at, rows, p);
        EW_K(implicit_gemm_gather)(c, t->x, p, rows, t->k0, t->k1, t->panel + (at - first) * KS);
    }
    return t->panel;
}

static void strip_finish(const struct tile *t, int64_t o, int64_t width, int64_t first,
                         int64_t last)
{
    const bool after = t->run->end->add_after && t->add;
    const int64_t step = t->run->core->y_step[2];
    int64_t row[MR];
    for (int64_t at = first; at < last; at += MR) {
        const int rows = (int)min_i64(MR, last - at);
        for (int r = 0; r < rows; r++)
            row[r] = (at + r) * step;
        const struct outputs out = {.y = t->y + o,
                                    .add = after ? t->add + o : NULL,
                                    .row = row,
                                    .rows = rows,
                                    .width = width};
        finish_rows(t->run->end, &out);
    }
}

/* The next block's weights, to prefetch into L2: if they are read for the first time, or L2 does
 * not hold all of them. */
#define STRIP_FETCHED (64 << 10) /* floats */

static const float *strip_soon(const struct tile *t, int64_t b, int64_t first)
{
    const struct implicit_gemm *c = t->run->core;
    if (first > 0 && c->k * c->og < STRIP_FETCHED)
        return NULL;
    int64_t next = b + 1, k = t->k0;
    if (next == t->blocks) {
        k = t->k1 < c->k ? t->k1 : 0;
        next = t->k1 < c->k ? t->block : next;
    }
    if (next == c->blocks)
        return NULL;
    return t->w + next * NR * c->k + k * packed_width(block_width(c->og, next));
}

/* Input of a strip; k runs over `lines` pieces, line_step apart. */
struct strip_feed {
    const float *a;
    int64_t row_step, lines, line_step;
    int64_t most; /* most rows at once; 0: no limit */
};

/* Multiplies rows [first, last) by all blocks of the tile, k in [k0, k1). */
static void run_blocks_of_strip(const struct tile *t, const struct strip_feed *feed, int64_t first,
                                int64_t last)
{
    const struct implicit_gemm *c = t->run->core;
    const int64_t y = first * c->y_step[2];
    const bool begin = t->k0 == 0, end = t->k1 == c->k;
    const float *from = !begin ? t->y : t->run->end->add_after ? NULL : t->add;
    for (int64_t b = t->block; b < t->blocks; b++) {
        const int64_t o = b * NR, width = block_width(c->og, b);
        const struct micro_strip m = {.a = feed->a,
                                      .row_step = feed->row_step,
                                      .lines = feed->lines,
                                      .line_step = feed->line_step,
                                      .w = t->w + o * c->k + t->k0 * packed_width(width),
                                      .kc = (t->k1 - t->k0) / feed->lines,
                                      .most = feed->most,
                                      .from = from ? from + y + o : NULL,
                                      .bias = begin && t->bias ? t->bias + o : NULL,
                                      .c = t->y + y + o,
                                      .c_step = c->y_step[2],
                                      .rows = last - first,
                                      .width = width,
                                      .lo = end ? t->lo : -INFINITY,
                                      .hi = end ? t->hi : INFINITY,
                                      .pairs = c->pairs && b == c->blocks - 1,
                                      .act = end ? t->act : EW_ACT_NONE,
                                      .soon = strip_soon(t, b, first)};
        const int64_t done = EW_K(micro_strip)(&m);
        if (end && !t->plain)
            strip_finish(t, o, width, first + done, last);
    }
}

static void run_strips(struct tile *t, int64_t first, int64_t last)
{
    const struct implicit_gemm *c = t->run->core;
    const bool apart = STRIP_APART && c->apart;
    struct strip_feed feed = {.row_step = c->flat || apart ? c->x_step[2] : KS,
                              .lines = 1,
                              .most = apart ? STRIP_APART : 0};
    do {
        t->k1 = min_i64(t->k0 + c->kc, c->k);
        feed.a = strip_rows(t, first, last);
        run_blocks_of_strip(t, &feed, first, last);
        t->k0 = t->k1;
    } while (t->k0 < c->k);
}

/* One row of outputs, from a line buffer. */
static void run_buffered_row(struct tile *t, int64_t row)
{
    const struct implicit_gemm *c = t->run->core;
    const int64_t out = c->axis[2].out, rows = div_up(out, div_up(out, MR));
    struct pixel p;
    EW_K(implicit_gemm_fill_lines)(c, t->x, row, t->panel);
    t->k1 = c->k;
    if (is_strip(t, out)) {
        const struct strip_feed feed = {.a = t->panel,
                                        .row_step = c->axis[2].stride * c->cg,
                                        .lines = c->lines,
                                        .line_step = c->line_floats};
        run_blocks_of_strip(t, &feed, row * out, (row + 1) * out);
        return;
    }
    EW_K(implicit_gemm_pixels)(c, row * out, 1, &p);
    t->lines = c->lines;
    t->line_step = c->line_floats;
    t->row_step = c->axis[2].stride * c->cg;
    for (int64_t o = 0; o < out; o += rows) {
        const int count = (int)min_i64(rows, out - o);
        for (int r = 0; r < count; r++)
            t->row[r] = p.y + (o + r) * c->y_step[2];
        t->a = t->panel + o * t->row_step;
        t->next = t->y + t->row[count - 1] + c->y_step[2];
        t->first = t->begins && o == 0;
        run_panel(t, 0, count);
    }
}

static void gather_panel(struct tile *t, int64_t row, int rows)
{
    const struct implicit_gemm *c = t->run->core;
    struct pixel p[MR];
    EW_K(implicit_gemm_pixels)(c, row, rows, p);
    for (int r = 0; r < rows; r++)
        t->row[r] = p[r].y;
    t->a = c->flat ? t->x + row * t->row_step + t->k0 : t->panel;
    if (!c->flat)
        EW_K(implicit_gemm_gather)(c, t->x, p, rows, t->k0, t->k1, t->panel);
}

/* The same if both input and output are matrices. */
static void flat_panel(struct tile *t, int64_t row, int rows)
{
    const int64_t step = t->run->core->y_step[2];
    for (int r = 0; r < rows; r++)
        t->row[r] = (row + r) * step;
    t->a = t->x + row * t->row_step + t->k0;
}

/* True if each pixel is read and written once: then rows are streamed faster than hardware
 * prefetchers fetch them. */
static bool fetches(const struct implicit_gemm *c)
{
    return c->flat && c->flat_y && c->o_tiles == 1 && c->groups == 1 && c->k <= c->kc;
}

/* Prefetches the next strided rows of x; hardware prefetchers would fetch the gaps too. */
static void fetch_apart(const struct tile *t, int64_t first, int64_t rows)
{
    const int64_t step = t->run->core->x_step[2];
    int64_t row[MR];
    for (int64_t r = 0; r < rows; r++)
        row[r] = (first + r) * step;
    fetch_parts(t->x + t->k0, row, rows, t->k1 - t->k0);
}

static void run_rows(struct tile *t, int64_t first, int64_t last)
{
    if (is_strip(t, last - first)) {
        run_strips(t, first, last);
        return;
    }
    const struct implicit_gemm *c = t->run->core;
    const int64_t panels = div_up(last - first, MR), step = div_up(last - first, panels);
    const int64_t chunk = c->flat && panels == 1 ? c->k : c->kc;
    const bool fetch = fetches(c);
    t->lines = 1;
    t->row_step = c->flat ? c->x_step[2] : 0;
    do {
        t->k1 = min_i64(t->k0 + chunk, c->k);
        for (int64_t i = 0; i < panels; i++) {
            const int64_t row = first + i * step;
            const int rows = (int)min_i64(step, last - row);
            if (fetch) {
                const int64_t next = min_i64(step, c->rows - row - rows);
                t->next = next > 0 ? t->x + (row + rows) * c->x_step[2] : NULL;
                if (t->ahead)
                    t->next = t->ahead + row * c->x_step[2];
                fetch_rows(t->y, row + rows, next, c->y_step[2]);
            }
            if (c->flat && c->flat_y)
                flat_panel(t, row, rows);
            else
                gather_panel(t, row, rows);
            if (c->flat && c->x_step[2] > c->groups * c->cg) {
                fetch_apart(t, row + rows, min_i64(step, c->rows - row - rows));
                t->next = NULL;
            }
            t->first = t->begins && i == 0;
            run_panel(t, i, rows);
        }
        t->k0 = t->k1;
    } while (t->k0 < c->k);
}

/* Rows [first, last), normalised by a batch norm. */
static void run_normed(struct tile *t, int64_t first, int64_t last)
{
    const struct implicit_gemm *c = t->run->core;
    const struct ew_batch_norm *norm = t->run->norm;
    norm_rows(norm, first, last - first, t->panel, 0);
    t->x = t->panel;
    t->y += first * c->y_step[2];
    t->add += t->add ? first * c->y_step[2] : 0;
    t->ahead = last < c->rows ? norm->x + last * c->x_step[2] : NULL;
    run_rows(t, 0, last - first);
}

/* Number of tiles from `tile` on that are computed as one: they share rows, which are gathered
 * once.  Results do not depend on it.  Their outputs must stay in L2 over all chunks of k. */
#define TOGETHER_FLOATS (64 << 10)

static int64_t tiles_together(const struct implicit_gemm_run *run, int64_t tile, int64_t end)
{
    const struct implicit_gemm *c = run->core;
    if (c->flat || c->line_buffer || !c->flat_y || run->stats || run->norm || run->end->mask)
        return 1;
    const int64_t floats = min_i64(c->row_block * MR, c->rows) * c->o_block * NR;
    const int64_t most = max_i64(TOGETHER_FLOATS / max_i64(floats, 1), 1);
    return min_i64(most, min_i64(c->o_tiles - tile % c->o_tiles, end - tile));
}

/* Computes n tiles, as tiles_together allows. */
static void run_tile(const struct implicit_gemm_run *run, int64_t tile, int64_t n)
{
    const struct implicit_gemm *c = run->core;
    const struct ew_epilogue *e = run->end;
    const int64_t o = tile % c->o_tiles, g = tile / c->o_tiles % c->groups;
    const int64_t row_tile = tile / c->o_tiles / c->groups, first = row_tile * c->row_block * MR;
    const int64_t last = min_i64(first + c->row_block * MR, c->rows);
    const bool clamp = e->act == EW_ACT_RELU || e->act == EW_ACT_CLIP;
    struct tile t = {
        .run = run,
        .x = run->x + g * c->cg,
        .w = run->w + g * EW_K(implicit_gemm_group_size)(c),
        .bias = e->bias ? e->bias + g * c->og : NULL,
        .add = e->add ? e->add + g * c->og : NULL,
        .mask = e->mask ? e->mask + g * c->og : NULL,
        .y = run->y + g * c->og,
        .block = o * c->o_block,
        .blocks = c->line_buffer ? c->blocks : min_i64((o + n) * c->o_block, c->blocks),
        .plain = (clamp || e->act == EW_ACT_NONE) && !(e->add && e->add_after) && !e->mask,
        .act = e->add && e->add_after ? EW_ACT_NONE : e->act,
        .lo = -INFINITY,
        .hi = INFINITY,
        .panel = run->scratch};
    if (t.plain && clamp) {
        t.lo = e->act == EW_ACT_RELU ? 0.0f : e->lo;
        t.hi = e->act == EW_ACT_RELU ? INFINITY : e->hi;
    }
    if (run->stats)
        t.stats = run->stats + row_tile / c->split * stats_size(c->groups * c->og) + g * c->og;
    t.begins = row_tile % c->split == 0;
    if (run->norm)
        run_normed(&t, first, last);
    else if (c->line_buffer)
        run_buffered_row(&t, tile / c->groups);
    else
        run_rows(&t, first, last);
}

void EW_K(implicit_gemm_run)(const struct implicit_gemm_run *run, int64_t begin, int64_t end)
{
    for (int64_t i = begin, n; i < end; i += n) {
        n = tiles_together(run, i, end);
        run_tile(run, i, n);
    }
}
