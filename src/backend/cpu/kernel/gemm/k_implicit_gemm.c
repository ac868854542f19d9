/* SPDX-License-Identifier: Apache-2.0 */
/* The implicit GEMM: blocking and gathering.  k_gemm_tiles.c has the tiles; k_conv*.c pack the
 * weights. */
#include "backend/cpu/kernel/gemm/implicit_gemm.h"

#include "backend/cpu/kernel/gemm/micro_strip.h"
#include "backend/cpu/kernel/norm/norm_stats.h"

/* True if some output reads the input through tap t: if any does, the first output for which t is
 * not before the input does. */
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
        int32_t first = 0, last = a->taps - 1; /* at least one tap is left */
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

/* Not for dense layers and squeeze-and-excite: single rows are not strips. */
static void plan_pairs(struct implicit_gemm *c)
{
    const struct ew_conv_axis *a = c->axis;
    c->pairs = c->blocks > 0 && c->flat_y && !c->used.trimmed && c->k > 1 &&
               paired_width(block_width(c->og, c->blocks - 1)) &&
               (int64_t)a[0].out * a[1].out * a[2].out > MR;
    if (c->pairs)
        c->kc += c->kc % 2;
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
    plan_pairs(c);
}

static void plan_feed(struct implicit_gemm *c)
{
    const struct ew_conv_axis *a = c->axis;
    c->flat = true;
    for (int i = 0; i < 3; i++)
        c->flat =
            c->flat && a[i].taps == 1 && a[i].stride == 1 && a[i].pad == 0 && a[i].in == a[i].out;
    c->flat = c->flat && c->x_step[1] == a[2].in * c->x_step[2] &&
              c->x_step[0] == a[1].in * c->x_step[1] && c->x_image == a[0].in * c->x_step[0];
    /* Rows that are a multiple of 4 KiB apart share a set of L1. */
    c->apart = c->flat && c->x_step[2] % 1024 == 0 && c->rows > 4;
    c->flat = c->flat && !c->apart;
    c->flat_y = c->y_step[1] == a[2].out * c->y_step[2] &&
                c->y_step[0] == a[1].out * c->y_step[1] && c->y_image == a[0].out * c->y_step[0];
    c->line_floats = ((int64_t)(a[2].out - 1) * a[2].stride + a[2].taps) * c->cg;
    c->lines = (int64_t)a[0].taps * a[1].taps;
    c->line_buffer = a[2].taps > 1 && a[2].dilation == 1 && c->lines > 0 && a[2].out > 0 &&
                     c->lines * c->line_floats <= LINE_BUFFER_MAX &&
                     c->k * c->og <= LINE_BUFFER_WEIGHTS;
}

/* Blocks of outputs to compute at once.  A single row has too few accumulators per block to hide
 * the latency of FMAs (4 cycles, two per cycle); with 16 lanes L2 is the limit anyway.  Weights
 * beyond the last-level cache are read sequentially, one block at a time. */
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
    c->at_once = at_once(c);
    c->o_block = O_BLOCK;
    if (panels <= ROW_FEW)
        c->o_block = min_i64(max_i64(c->groups * c->blocks / MIN_WORK, c->at_once), O_BLOCK);
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
    /* Adjacent taps along the width are contiguous in memory: one run. */
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
    c->pairs = false;
    c->tiles = c->row_tiles * c->groups * c->o_tiles;
    c->split = max_i64(div_up(c->row_tiles, STATS_SPLITS), 1);
}

int64_t EW_K(implicit_gemm_group_size)(const struct implicit_gemm *c)
{
    if (!c->pairs)
        return c->k * packed_width(c->og);
    const int64_t whole = (c->blocks - 1) * NR, lines = pair_lines(c);
    return c->k * whole + lines * div_up(c->k / lines, 2) * 2 * packed_width(c->og - whole);
}

size_t EW_K(implicit_gemm_scratch)(const struct implicit_gemm *c)
{
    if (c->line_buffer)
        return LINE_BUFFER_FLOATS * sizeof(float);
    return (size_t)(c->flat ? 1 : c->row_block) * MR * KS * sizeof(float);
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
    int64_t taps;  /* taps in one run */
    int64_t first; /* the run that contains k0 */
    int64_t tap[3];
};

/* Copy and clear, whole vectors: they may write up to one vector too much, which the next run of
 * the panel's row overwrites, or which falls into the slack at its end. */
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

/* Gathers floats [from, to) of one run, whose first tap reads the pixel `at`. */
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
    /* The part of the run inside the image, in floats. */
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
    const int64_t across = g->taps == 1 ? a[2].taps : 1; /* runs along the width */
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

/* Fills one line with its padding; `from` is the first pixel of the input line. */
static void fill_line(const struct implicit_gemm *c, const float *from, float *line)
{
    const struct ew_conv_axis *a = &c->axis[2];
    const int64_t lo = min_i64(max_i64((int64_t)a->pad * c->cg, 0), c->line_floats);
    const int64_t hi = max_i64(min_i64(((int64_t)a->in + a->pad) * c->cg, c->line_floats), lo);
    from += (lo / c->cg - a->pad) * c->x_step[2];
    clear(line, lo);
    if (c->x_step[2] == c->cg)
        copy(line + lo, from, hi - lo);
    else /* one group of several: strided */
        for (int64_t i = lo; i < hi; i += c->cg, from += c->x_step[2])
            copy(line + i, from, c->cg);
    clear(line + hi, c->line_floats - hi);
}

/* Fills lines [span[0], span[1]) of the buffer. */
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

/* Line by line instead of pixel by pixel: short runs become a loop of one load and one store. */
void EW_K(implicit_gemm_gather_lines)(const struct implicit_gemm *c, const float *x,
                                      struct implicit_gemm_rows rows, float *line_buffer,
                                      float *panel)
{
    const int64_t out = c->axis[2].out, step = c->axis[2].stride * c->cg;
    const int64_t run = c->axis[2].taps * c->cg; /* in the line buffer, where a group's channels are
                                                  * contiguous */
    const int64_t lines[2] = {rows.k0 / run, div_up(rows.k1, run)}; /* lines that [k0, k1) reads */
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
