/* SPDX-License-Identifier: Apache-2.0 */
/* The implicit GEMM: blocking, gathering of panels, tiles.  Packing is left to the users. */
#include "backend/cpu/kernel/gemm/implicit_gemm.h"

#include <math.h>

#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/silu.h"
#include "backend/cpu/kernel/norm/norm_rows.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

/* If any output sees the input through tap t, the first for which t is not before it does. */
static bool sees_input(const struct ew_conv_axis *a, int32_t t)
{
    const int64_t before = (int64_t)a->pad - (int64_t)t * a->dilation;
    const int64_t o = before > 0 ? div_up(before, a->stride) : 0;
    return o < a->out && o * a->stride - before < a->in;
}

void EW_KF(implicit_gemm_trim)(struct ew_conv_axis axis[3], struct used *used)
{
    used->trimmed = false;
    for (int i = 0; i < 3; i++) {
        struct ew_conv_axis *a = &axis[i];
        int32_t first = 0, last = a->taps - 1; /* one is left in any case */
        while (first < last && !sees_input(a, first))
            first++;
        while (last > first && !sees_input(a, last))
            last--;
        used->first[i] = first;
        used->all[i] = a->taps;
        used->trimmed = used->trimmed || last - first + 1 < a->taps;
        a->taps = last - first + 1;
        a->pad -= first * a->dilation;
    }
}

void EW_K(implicit_gemm_init)(struct implicit_gemm *c, const struct ew_conv_shape *s)
{
    memcpy(c->axis, s->axis, sizeof(c->axis));
    EW_KF(implicit_gemm_trim)(c->axis, &c->used);
    c->batch = s->batch;
    c->groups = s->groups;
    c->cg = s->cin / s->groups;
    c->og = s->cout / s->groups;
    int64_t xs = x_step_of(s), ys = y_step_of(s);
    for (int i = 2; i >= 0; i--) {
        c->x_step[i] = xs;
        c->y_step[i] = ys;
        xs *= s->axis[i].in;
        ys *= s->axis[i].out;
    }
    c->x_image = xs;
    c->y_image = ys;
    EW_K(implicit_gemm_plan)(c);
}

static void plan_feed(struct implicit_gemm *c)
{
    const struct ew_conv_axis *a = c->axis;
    /* Many rows a multiple of 4 KiB apart would share cache sets. */
    c->flat = c->x_step[2] % 1024 != 0 || c->rows <= 4;
    for (int i = 0; i < 3; i++)
        c->flat =
            c->flat && a[i].taps == 1 && a[i].stride == 1 && a[i].pad == 0 && a[i].in == a[i].out;
    c->flat = c->flat && c->x_step[1] == a[2].in * c->x_step[2] &&
              c->x_step[0] == a[1].in * c->x_step[1] && c->x_image == a[0].in * c->x_step[0];
    c->flat_y = c->y_step[1] == a[2].out * c->y_step[2] &&
                c->y_step[0] == a[1].out * c->y_step[1] && c->y_image == a[0].out * c->y_step[0];
    c->line_floats = ((int64_t)(a[2].out - 1) * a[2].stride + a[2].taps) * c->cg;
    c->lines = (int64_t)a[0].taps * a[1].taps;
    c->line_buffer = a[2].taps > 1 && a[2].dilation == 1 && c->lines > 0 && a[2].out > 0 &&
                     c->lines * c->line_floats <= LINE_BUFFER_MAX &&
                     c->k * c->og <= LINE_BUFFER_WEIGHTS;
}

/* Blocks of outputs that are summed at once, their weights beside each other: those of a single row
 * have too few sums to wait for each other's multiply-adds (of 4 cycles, two a cycle), but for 16
 * lanes, which are as fast as L2 is.  Weights that no cache holds are read from end to end. */
#define ROW_BLOCKS       4
#define ROW_BLOCKS_BYTES (16 << 20)

static int64_t at_once(const struct implicit_gemm *c)
{
    const int64_t bytes = c->k * c->og * c->groups * (int64_t)sizeof(float);
    return LANES < 16 && c->rows == 1 && bytes <= ROW_BLOCKS_BYTES ? ROW_BLOCKS : 1;
}

static void plan_tiles(struct implicit_gemm *c)
{
    const int64_t panels = div_up(c->rows, MR);
    c->blocks = block_count(c->og);
    c->o_block = O_BLOCK;
    if (panels <= ROW_FEW)
        c->o_block = min_i64(max_i64(c->groups * c->blocks / MIN_WORK, at_once(c)), O_BLOCK);
    c->o_tiles = div_up(c->blocks, c->o_block);
    const int64_t share = max_i64(panels * c->groups * c->o_tiles / MIN_WORK, 1);
    const int64_t most = panels <= ROW_FEW ? max_i64(panels, 1) : min_i64(share, ROW_MAX);
    c->row_tiles = div_up(panels, most);
    c->row_block = c->row_tiles ? div_up(panels, c->row_tiles) : 1;
    c->row_tiles = div_up(panels, c->row_block);
}

void EW_K(implicit_gemm_plan)(struct implicit_gemm *c)
{
    const struct ew_conv_axis *a = c->axis;
    c->rows = c->batch * a[0].out * a[1].out * a[2].out;
    /* Neighbouring taps of a row of the image are neighbours in memory: one run. */
    const bool whole = a[2].dilation == 1 && c->x_step[2] == c->cg;
    c->run = whole ? a[2].taps * c->cg : c->cg;
    c->runs = (int64_t)a[0].taps * a[1].taps * (whole ? 1 : a[2].taps);
    c->k = c->run * c->runs;
    c->kc = c->k ? div_up(c->k, div_up(c->k, KC)) : 0;
    plan_tiles(c);
    plan_feed(c);
    if (c->line_buffer) {
        c->row_tiles = c->batch * a[0].out * a[1].out;
        c->o_tiles = 1;
    }
    c->tiles = c->row_tiles * c->groups * c->o_tiles;
    c->split = max_i64(div_up(c->row_tiles, STATS_SPLITS), 1);
}

int64_t EW_K(implicit_gemm_group_size)(const struct implicit_gemm *c)
{
    return c->k * packed_width(c->og);
}

/* ---- Panels ---- */

void EW_K(implicit_gemm_pixels)(const struct implicit_gemm *c, int64_t row, int count,
                                struct pixel *out)
{
    const struct ew_conv_axis *a = c->axis;
    int64_t o[3], n = row;
    for (int i = 2; i >= 0; i--) {
        o[i] = n % a[i].out;
        n /= a[i].out;
    }
    for (int r = 0; r < count; r++) {
        out[r].x = n * c->x_image;
        out[r].y = n * c->y_image;
        for (int i = 0; i < 3; i++) {
            out[r].at[i] = o[i] * a[i].stride - a[i].pad;
            out[r].y += o[i] * c->y_step[i];
        }
        for (int i = 2; i >= 0 && ++o[i] == a[i].out; i--) {
            o[i] = 0;
            n += i == 0;
        }
    }
}

struct gather {
    const struct implicit_gemm *c;
    int64_t k0, k1;
    int64_t taps;  /* taps along the width in one run */
    int64_t first; /* the run that k0 is in */
    int64_t tap[3];
};

/* Copies and clears that may write up to a vector more than they should: what follows in a panel's
 * row is written later, and the row has room behind its last run. */
INLINE void copy_over(float *to, const float *from, int64_t n)
{
    for (; n >= LANES; n -= LANES, from += LANES, to += LANES)
        store(to, load(from));
    if (n > 0)
        store(to, load_part(from, n));
}

INLINE void clear_over(float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        store(to + i, (vec){0});
}

/* Floats [from, to) of one run, for the pixel at `at` (of the run's first tap). */
INLINE void gather_run(const struct gather *g, const float *x, const int64_t at[3], int64_t from,
                       int64_t to, float *out)
{
    const struct implicit_gemm *c = g->c;
    const struct ew_conv_axis *a = c->axis;
    const bool inside = at[0] >= 0 && at[0] < a[0].in && at[1] >= 0 && at[1] < a[1].in;
    const float *p = x + at[0] * c->x_step[0] + at[1] * c->x_step[1] + at[2] * c->x_step[2];
    if (inside && at[2] >= 0 && at[2] + g->taps <= a[2].in) {
        copy_over(out, p + from, to - from);
        return;
    }
    /* The part of the run that lies in the image, in floats. */
    int64_t lo = max_i64(-at[2], 0) * c->cg, hi = (a[2].in - at[2]) * c->cg;
    lo = min_i64(max_i64(lo, from), to);
    hi = inside ? max_i64(min_i64(hi, to), lo) : lo;
    clear_over(out, lo - from);
    copy_over(out + (lo - from), p + lo, hi - lo);
    clear_over(out + (hi - from), to - hi);
}

INLINE void gather_pixel(const struct gather *g, const float *x, const struct pixel *p, float *out)
{
    const struct implicit_gemm *c = g->c;
    const struct ew_conv_axis *a = c->axis;
    const int64_t across = g->taps == 1 ? a[2].taps : 1; /* runs in a row of taps */
    int64_t t0 = g->tap[0], t1 = g->tap[1], t2 = g->tap[2];
    for (int64_t k = g->first * c->run; k < g->k1; k += c->run) {
        const int64_t at[3] = {p->at[0] + t0 * a[0].dilation, p->at[1] + t1 * a[1].dilation,
                               p->at[2] + t2 * a[2].dilation};
        const int64_t from = max_i64(g->k0 - k, 0), to = min_i64(g->k1 - k, c->run);
        gather_run(g, x, at, from, to, out + (k + from - g->k0));
        if (++t2 == across) {
            t2 = 0;
            if (++t1 == a[1].taps) {
                t1 = 0;
                t0++;
            }
        }
    }
}

void EW_K(implicit_gemm_gather)(const struct implicit_gemm *c, const float *x,
                                const struct pixel *p, int count, int64_t k0, int64_t k1,
                                float *panel)
{
    if (k0 == k1)
        return;
    struct gather g = {.c = c, .k0 = k0, .k1 = k1, .taps = c->run / c->cg, .first = k0 / c->run};
    const int64_t across = g.taps == 1 ? c->axis[2].taps : 1;
    int64_t n = g.first;
    g.tap[2] = n % across;
    n /= across;
    g.tap[1] = n % c->axis[1].taps;
    g.tap[0] = n / c->axis[1].taps;
    for (int r = 0; r < count; r++)
        gather_pixel(&g, x + p[r].x, &p[r], panel + r * KS);
}

/* One line with its padding; `from` is the pixel at its beginning. */
static void fill_line(const struct implicit_gemm *c, const float *from, float *line)
{
    const struct ew_conv_axis *a = &c->axis[2];
    const int64_t lo = min_i64(max_i64((int64_t)a->pad * c->cg, 0), c->line_floats);
    const int64_t hi = max_i64(min_i64(((int64_t)a->in + a->pad) * c->cg, c->line_floats), lo);
    from += (lo / c->cg - a->pad) * c->x_step[2];
    clear(line, lo);
    if (c->x_step[2] == c->cg)
        copy(line + lo, from, hi - lo);
    else /* one of several groups */
        for (int64_t i = lo; i < hi; i += c->cg, from += c->x_step[2])
            copy(line + i, from, c->cg);
    clear(line + hi, c->line_floats - hi);
}

/* Lines [span[0], span[1]) of the buffer. */
static void fill_some(const struct implicit_gemm *c, const float *x, int64_t row,
                      const int64_t span[2], float *line_buffer)
{
    const struct ew_conv_axis *a = c->axis;
    const int64_t z0 = row / a[1].out % a[0].out * a[0].stride - a[0].pad;
    const int64_t y0 = row % a[1].out * a[1].stride - a[1].pad;
    x += row / a[1].out / a[0].out * c->x_image;
    for (int64_t t = span[0]; t < span[1]; t++) {
        const int64_t z = z0 + t / a[1].taps * a[0].dilation;
        const int64_t y = y0 + t % a[1].taps * a[1].dilation;
        float *line = line_buffer + t * c->line_floats;
        if (z >= 0 && z < a[0].in && y >= 0 && y < a[1].in)
            fill_line(c, x + z * c->x_step[0] + y * c->x_step[1], line);
        else
            clear(line, c->line_floats);
    }
}

void EW_K(implicit_gemm_fill_lines)(const struct implicit_gemm *c, const float *x, int64_t row,
                                    float *line_buffer)
{
    fill_some(c, x, row, (const int64_t[]){0, c->lines}, line_buffer);
}

/* Line by line rather than pixel by pixel: a line of short runs is a loop of one load, one store.
 */
void EW_K(implicit_gemm_gather_lines)(const struct implicit_gemm *c, const float *x,
                                      struct implicit_gemm_rows rows, float *line_buffer,
                                      float *panel)
{
    const int64_t out = c->axis[2].out, step = c->axis[2].stride * c->cg;
    const int64_t run = c->axis[2].taps * c->cg; /* of the line buffer, where groups lie together */
    const int64_t lines[2] = {rows.k0 / run, div_up(rows.k1, run)}; /* that this part of k reads */
    for (int64_t row = rows.first; row < rows.last;) {
        const int64_t o = row % out, count = min_i64(out - o, rows.last - row);
        fill_some(c, x, row / out, lines, line_buffer);
        for (int64_t t = lines[0]; t < lines[1]; t++) {
            const int64_t from = max_i64(rows.k0 - t * run, 0);
            const int64_t n = min_i64(rows.k1 - t * run, run) - from;
            const float *line = line_buffer + t * c->line_floats + o * step + from;
            float *to = panel + (t * run + from - rows.k0);
            for (int64_t i = 0; i < count && n > 0; i++)
                for (int64_t j = 0; j < n; j += LANES)
                    store(to + i * KS + j, load(line + i * step + j));
        }
        row += count;
        panel += count * KS;
    }
}

/* ---- Tiles ---- */

/* One panel's outputs of one block. */
struct outputs {
    float *y;
    const float *add; /* behind the activation; NULL: nothing */
    const float *mask;
    const int64_t *row;
    int rows;
    int64_t width;
};

INLINE void finish_as(enum ew_act act, const struct ew_epilogue *e, const struct outputs *o)
{
    for (int r = 0; r < o->rows; r++) {
        float *p = o->y + o->row[r];
        for (int64_t i = 0; i < o->width; i += LANES) {
            const int64_t n = o->width - i;
            const vec sum = load_n(p + i, n);
            const vec v = act == EW_ACT_SILU ? vsilu_end(sum) : vact(act, sum, e->lo, e->hi);
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

/* What the micro-kernel's clamp cannot do, on rows that are still in L1.  Those that whole networks
 * use have loops of their own. */
static void finish_rows(const struct ew_epilogue *e, const struct outputs *o)
{
    if (o->mask)
        mask_rows(o);
    else if (e->act == EW_ACT_HARD_SWISH)
        finish_as(EW_ACT_HARD_SWISH, e, o);
    else if (e->act == EW_ACT_SILU)
        finish_as(EW_ACT_SILU, e, o);
    else
        finish_as(e->act, e, o);
}

/* Fetches rows of a matrix into L2 before their panel comes. */
static void fetch_rows(const float *p, int64_t row, int64_t rows, int64_t step)
{
    const float *const end = p + (row + rows) * step;
    for (p += row * step; p < end; p += LINE)
        __builtin_prefetch(p, 0, 2);
}

/* The same of n floats of each. */
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
    int64_t block, blocks; /* of NR outputs: [block, blocks) */
    int64_t k0, k1;
    float lo, hi; /* of the last chunk */
    bool plain;   /* lo and hi are all that is done to the sums */
    float *stats; /* the split's, of the group; NULL: not wanted */
    bool begins;  /* its tile is the first of the split */
    bool first;   /* and its panel */
    float *panel; /* or the line buffer */
    const float *a;
    int64_t row_step, lines, line_step; /* where a is no panel */
    int64_t row[MR];                    /* outputs of the present panel */
    const float *next;                  /* the next panel, to be fetched; NULL: not */
    const float *ahead;                 /* in its place: what the next tile makes its rows of */
};

/* Weights that the tile, or the one after it, reads after those of block b; each panel fetches as
 * many lines of them into L2 as it takes steps. */
static const float *weights_soon(const struct tile *t, int64_t b, int64_t panel)
{
    const struct implicit_gemm *c = t->run->core;
    const int64_t next = t->k1 < c->k ? b : b + c->o_block, from = t->k1 < c->k ? t->k1 : 0;
    const int64_t line = panel * (t->k1 - t->k0) * LINE;
    if (next >= c->blocks || line >= (t->k1 - t->k0) * NR)
        return NULL;
    return t->w + next * NR * c->k + from * packed_width(block_width(c->og, next)) + line;
}

/* What block b fetches while it multiplies, a line with each k: what the next panel reads or, with
 * a line buffer, writes; else weights. */
static const float *prefetch_of(const struct tile *t, int64_t b, int64_t panel)
{
    const struct implicit_gemm *c = t->run->core;
    if (c->line_buffer)
        return t->next ? t->next + (b - t->block) * c->k * LINE : NULL;
    return t->next && b == t->block ? t->next : weights_soon(t, b, panel);
}

/* n blocks of one row, as micro_direct; their weights lie `step` floats apart. */
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

/* Whole blocks from b on that are summed at once. */
static int64_t blocks_at(const struct tile *t, int64_t b)
{
    const struct implicit_gemm *c = t->run->core;
    const int64_t whole = block_width(c->og, c->blocks - 1) == NR ? c->blocks : c->blocks - 1;
    if (!t->row_step || t->stats || t->lines > 1)
        return 1;
    return max_i64(min_i64(at_once(c), min_i64(t->blocks, whole) - b), 1);
}

/* All outputs of the tile for its panel of `rows` pixels, k in [k0, k1). */
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
        if (t->mask && last) /* hardware does not see it coming */
            fetch_parts(t->mask + o, t->row, rows, width);
        if (n > 1)
            run_blocks(&m, c->k * NR, n);
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

/* One row of outputs. */
static void run_buffered_row(struct tile *t, int64_t row)
{
    const struct implicit_gemm *c = t->run->core;
    const int64_t out = c->axis[2].out, rows = div_up(out, div_up(out, MR));
    struct pixel p;
    EW_K(implicit_gemm_fill_lines)(c, t->x, row, t->panel);
    EW_K(implicit_gemm_pixels)(c, row * out, 1, &p);
    t->k1 = c->k;
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

/* The same where pixels are rows of two matrices. */
static void flat_panel(struct tile *t, int64_t row, int rows)
{
    const int64_t step = t->run->core->y_step[2];
    for (int r = 0; r < rows; r++)
        t->row[r] = (row + r) * step;
    t->a = t->x + row * t->row_step + t->k0;
}

/* Where all of a pixel is read and written at once, rows follow each other faster than hardware
 * fetches them. */
static bool fetches(const struct implicit_gemm *c)
{
    return c->flat && c->flat_y && c->o_tiles == 1 && c->groups == 1 && c->k <= c->kc;
}

/* The next rows of x, which have others between them: hardware would fetch those too. */
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

/* Rows [first, last), made by a batch norm. */
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

static void run_tile(const struct implicit_gemm_run *run, int64_t tile)
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
        .blocks = c->line_buffer ? c->blocks : min_i64((o + 1) * c->o_block, c->blocks),
        .plain = (clamp || e->act == EW_ACT_NONE) && !(e->add && e->add_after) && !e->mask,
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
    for (int64_t i = begin; i < end; i++)
        run_tile(run, i);
}
