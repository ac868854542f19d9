/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad by Winograd: for each point, the outer products of transformed x and dy are accumulated
 * over all tiles, and G' U G turns the sums into taps.
 *
 *   input --B'dB--> V [products][tiles][C]
 *   dy    --A dy A'-> Y [products][tiles][O]     U += Y' V, 36 times     dw = G' U G
 *
 * All threads work on one block of image tiles at a time: they transform both operands once, then
 * divide the products.  V, Y and U of one product stay in L2 while they are multiplied; all
 * products together stay in the last-level cache.  Work tiles of dw that transform their own
 * operands need no shared memory but repeat each transform several times, a third of their time.
 *
 * Taps in time are computed one after the other, each with the frames that it reads, so U is no
 * larger than for one frame.
 *
 * With few image tiles U is by far the largest operand: then a work tile computes all products and
 * taps of some outputs while their U is in L2 (`whole` in winograd_wgrad.h). */
#include <math.h>

#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/gemm/wgrad_sum.h"
#include "backend/cpu/kernel/winograd/winograd_wgrad.h"

struct job {
    const struct ew_conv_wgrad *f;
    struct wgrad_plan p;
    int64_t first, count; /* image tiles of the block */
    float *v, *y, *u, *bias, *zero, *cells;
    const float *pixel[PRODUCTS]; /* of one image tile */
};

/* ---- V: B' d B ---- */

/* Finds side x side pixels of an image tile, and prefetches those of the next one. */
static void find_pixels(struct job *j, const float *images, const struct wino_view *v, int64_t tile,
                        int side)
{
    int64_t at[PRODUCTS];
    grid_fetch(&j->p.grid, v, images, tile + 1, j->p.form, side);
    grid_find(&j->p.grid, v, tile, j->p.form, side, at);
    for (int i = 0; i < side * side; i++)
        j->pixel[i] = at[i] < 0 ? j->zero : images + at[i];
}

INLINE void input_vector(const struct job *j, float *v, int64_t c, int64_t n,
                         const struct wino_form f)
{
    const int points = points_of(f);
    vec t[WINO_POINTS][WINO_POINTS];
    input_columns(j->pixel, c, n, f, t);
    UNROLL
    for (int y = 0; y < points; y++) {
        vec row[WINO_POINTS];
        input_line(t[y], row, f);
        UNROLL
        for (int x = 0; x < points; x++)
            store(v + (y * points + x) * j->p.step + c, row[x]);
    }
}

FORMED void input_tile(const struct job *j, float *v, const struct wino_form f)
{
    int64_t c = 0;
    for (; c + LANES <= j->p.cin; c += LANES)
        input_vector(j, v, c, LANES, f);
    if (c < j->p.cin)
        input_vector(j, v, c, j->p.cin - c, f);
}

static void add_input(struct job *j, int64_t at)
{
    const struct ew_conv_shape *s = &j->f->shape;
    if (has_cells(s)) {
        const struct wino_cells cells = {j->f->x, frames_in(s, j->p.tap, j->p.frame)};
        cell_fetch(&j->p.grid, s, &cells, j->first + at + 1, j->p.form);
        cell_tile(&j->p.grid, s, &cells, j->first + at, j->p.form, j->cells);
        for (int64_t p = 0; p < j->p.products; p++)
            j->pixel[p] = j->cells + p * j->p.cin;
    } else {
        const struct wino_view v = view_in(s, j->p.tap, j->p.frame, j->p.images);
        find_pixels(j, j->f->x, &v, j->first + at, points_of(j->p.form));
    }
    WINO_EACH(j->p.form, input_tile, j, j->v + at * j->p.v_row);
}

/* ---- Y: A dy A' ---- */

INLINE void dy_line(const vec *y, vec *t, const struct wino_form f)
{
    t[0] = y[0];
    if (f.out == 2) {
        t[1] = y[0] + y[1];
        t[2] = y[0] - y[1];
        t[3] = points_of(f) == 4 ? -y[1] : y[0] + 2.0f * y[1];
        t[4] = y[0] - 2.0f * y[1];
        t[5] = y[1];
        return;
    }
    const vec even = y[0] + y[2], odd = y[1] + y[3];
    const vec far = y[0] + 4.0f * y[2], far_odd = 2.0f * y[1] + 8.0f * y[3];
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = far + far_odd;
    t[4] = far - far_odd;
    if (points_of(f) == 7)
        t[5] = y[0] + 0.5f * y[1] + 0.25f * y[2] + 0.125f * y[3];
    if (points_of(f) == 8) {
        const vec near = y[0] + 0.25f * y[2], near_odd = 0.5f * y[1] + 0.125f * y[3];
        t[5] = near + near_odd;
        t[6] = near - near_odd;
    }
    t[points_of(f) - 1] = y[3];
}

/* Transforms n outputs of one image tile, from o on. */
INLINE void dy_vector(const struct job *j, float *to, int64_t o, int64_t n,
                      const struct wino_form f)
{
    const int points = points_of(f);
    vec t[WINO_POINTS][WINO_OUT];
    UNROLL
    for (int x = 0; x < f.out; x++) {
        vec d[WINO_OUT], column[WINO_POINTS];
        UNROLL
        for (int y = 0; y < f.out; y++) {
            const float *p = j->pixel[y * f.out + x] + o;
            d[y] = load_n(p, n);
        }
        dy_line(d, column, f);
        UNROLL
        for (int y = 0; y < points; y++)
            t[y][x] = column[y];
    }
    UNROLL
    for (int y = 0; y < points; y++) {
        vec row[WINO_POINTS];
        dy_line(t[y], row, f);
        UNROLL
        for (int x = 0; x < points; x++)
            store_n(to + (y * points + x) * j->p.step, row[x], n);
    }
}

/* Outputs of block b. */
INLINE int64_t rows_of(const struct job *j, int64_t b)
{
    return min_i64(j->p.rows, j->f->shape.cout - b * j->p.rows);
}

FORMED void dy_tile(const struct job *j, int64_t at, const struct wino_form f)
{
    for (int64_t b = 0; b < j->p.o_blocks; b++)
        for (int64_t i = 0; i < rows_of(j, b); i += LANES)
            dy_vector(j, j->y + b * j->p.y_block + at * MR + i, b * j->p.rows + i,
                      min_i64(rows_of(j, b) - i, LANES), f);
}

static void add_output(struct job *j, int64_t at)
{
    const struct ew_conv_shape *s = &j->f->shape;
    const struct wino_view v = view_out(s, j->p.frame, j->p.images, s->cout);
    if (v.step != v.part) /* strided: hardware prefetchers fetch the gaps, and too late */
        grid_fetch(&j->p.grid, &v, j->f->dy, j->first + at + 1, j->p.form, j->p.form.out);
    find_pixels(j, j->f->dy, &v, j->first + at, j->p.form.out);
    WINO_EACH(j->p.form, dy_tile, j, at);
}

static void transform(struct job *j, int64_t group)
{
    const int64_t last = min_i64((group + 1) * GROUP, j->count);
    for (int64_t i = group * GROUP; i < last; i++) {
        add_input(j, i);
        add_output(j, i);
    }
}

/* ---- U += Y' V: U is [products][block of NR channels][O][NR] ---- */

static bool makes_bias(const struct job *j)
{
    return j->f->db && j->p.tap == bias_tap(&j->f->shape);
}

/* At the point (1, 1), Y is the sum of a tile's dy. */
static void add_bias(const struct job *j, int64_t begin, int64_t end, bool first)
{
    const float *y = j->y + (points_of(j->p.form) + 1) * j->p.step;
    for (int64_t b = begin; b < end; b++)
        for (int64_t i = 0; i < rows_of(j, b); i += LANES) {
            const int64_t n = rows_of(j, b) - i;
            const float *from = y + b * j->p.y_block + i;
            float *to = j->bias + b * j->p.rows + i;
            vec sum = first ? (vec){0} : load_n(to, n);
            for (int64_t tile = 0; tile < j->count; tile++)
                sum += load_n(from + tile * MR, n);
            store_n(to, sum, n);
        }
}

/* One product; prefetches the next product's operands and the next part of U. */
static void multiply(const struct job *j, int64_t index, bool first)
{
    const struct wgrad_plan *p = &j->p;
    const int64_t product = index / p->o_splits, split = index % p->o_splits;
    const int64_t begin = p->o_blocks * split / p->o_splits;
    const int64_t end = p->o_blocks * (split + 1) / p->o_splits;
    const int64_t calls = div_up(p->u_row, NR) * (end - begin), share = p->step / calls;
    const float *next = j->v + (product + 1) * p->step;
    if (product == points_of(p->form) + 1 && makes_bias(j))
        add_bias(j, begin, end, first);
    int64_t row[MR];
    for (int64_t r = 0; r < MR; r++)
        row[r] = r * NR;
    for (int64_t c = 0; c < p->u_row; c += NR)
        for (int64_t b = begin; b < end; b++, next += share) {
            float *u = j->u + product * p->u_step + c / NR * p->u_column + b * p->rows * NR;
            const struct micro_span span = {j->y + product * p->step + b * p->y_block,
                                            j->v + product * p->step + c};
            const struct micro m = {
                .span = &span,
                .lines = 1,
                .line_step = p->v_row,
                .kc = j->count,
                .next = {{product + 1 < p->products ? next : NULL, div_up(share, j->count)},
                         {first ? NULL : u + MR * NR, div_up(MR * NR, j->count)}},
                .from = first ? NULL : u,
                .c = u,
                .row = row,
                .width = min_i64(NR, p->u_row - c),
                .lo = -INFINITY,
                .hi = INFINITY};
            EW_K(micro_spans_next)(&m, (int)rows_of(j, b));
        }
}

/* The weights and optimiser state from `at` on, to be prefetched in `calls` equal shares during the
 * products. */
struct prefetch {
    const float *at[2];
    int64_t share;
};

static struct prefetch prefetch_of(const struct job *j, int64_t at, int64_t n, int64_t calls)
{
    const struct ew_update *u = j->f->update;
    struct prefetch out = {.share = div_up(n, calls)};
    if (!u || time_taps(&j->f->shape) > 1) /* a tap's weights are not contiguous */
        return out;
    const float *state = u->is_adam ? u->adam.m : u->sgd.m;
    out.at[0] = (u->is_adam ? u->adam.w : u->sgd.w) + at;
    out.at[1] = state ? state + at : NULL;
    return out;
}

/* All products of output block b. */
static void multiply_block(const struct job *j, int64_t b)
{
    const struct wgrad_plan *p = &j->p;
    const int64_t size = p->taps * p->cin, columns = div_up(p->u_row, NR);
    const struct prefetch prefetch =
        prefetch_of(j, b * p->rows * size, rows_of(j, b) * size, p->products * columns);
    int64_t row[MR], done = 0;
    for (int64_t r = 0; r < MR; r++)
        row[r] = r * NR;
    for (int64_t i = 0; i < p->products * columns; i++, done += prefetch.share) {
        const int64_t product = i / columns, column = i % columns;
        const struct micro_span span = {j->y + product * p->step + b * p->y_block,
                                        j->v + product * p->step + column * NR};
        const int64_t step = div_up(prefetch.share, j->count);
        const struct micro m = {.span = &span,
                                .lines = 1,
                                .line_step = p->v_row,
                                .kc = j->count,
                                .next = {{prefetch.at[0] ? prefetch.at[0] + done : NULL, step},
                                         {prefetch.at[1] ? prefetch.at[1] + done : NULL, step}},
                                .c = j->u + product * p->u_step + column * p->u_column,
                                .row = row,
                                .width = min_i64(NR, p->u_row - column * NR),
                                .lo = -INFINITY,
                                .hi = INFINITY};
        EW_K(micro_spans_next)(&m, (int)rows_of(j, b));
    }
}

/* ---- dw = G' U G ---- */

INLINE void taps_8(const vec u[8], vec g[5])
{
    const vec even = (u[1] + u[2]) * (-2.0f / 9.0f), odd = (u[1] - u[2]) * (-2.0f / 9.0f);
    const vec far = (u[3] + u[4]) * (1.0f / 90.0f), far_odd = (u[3] - u[4]) * (1.0f / 90.0f);
    const vec near = (u[5] + u[6]) * (2.0f / 45.0f), near_odd = (u[5] - u[6]) * (2.0f / 45.0f);
    g[0] = u[0] + even + far + 16.0f * near;
    g[1] = odd + 2.0f * far_odd + 8.0f * near_odd;
    g[2] = even + 4.0f * far + 4.0f * near;
    g[3] = odd + 8.0f * far_odd + 2.0f * near_odd;
    g[4] = even + 16.0f * far + near + u[7];
}

INLINE void taps_7(const vec u[7], vec g[4])
{
    const vec one = u[1] * (-1.0f / 3.0f), minus = u[2] * (1.0f / 9.0f);
    const vec two = u[3] * (1.0f / 36.0f), minus_two = u[4] * (-1.0f / 60.0f);
    const vec even = one + minus, odd = one - minus, half = u[5] * (4.0f / 45.0f);
    const vec far = two + minus_two, far_odd = two - minus_two;
    g[0] = u[0] * -0.5f + even + far + 8.0f * half;
    g[1] = odd + 2.0f * far_odd + 4.0f * half;
    g[2] = even + 4.0f * far + 2.0f * half;
    g[3] = odd + 8.0f * far_odd + half + u[6];
}

INLINE void taps_line(const vec *u, vec *g, const struct wino_form f)
{
    if (points_of(f) == 4) {
        const vec even = (u[1] + u[2]) * 0.5f;
        g[0] = u[0] + even;
        g[1] = (u[1] - u[2]) * 0.5f;
        g[2] = even + u[3];
        return;
    }
    if (points_of(f) == 7) {
        taps_7(u, g);
        return;
    }
    if (points_of(f) == 8) {
        taps_8(u, g);
        return;
    }
    const vec even = (u[1] + u[2]) * (-1.0f / 6.0f), odd = (u[1] - u[2]) * (-1.0f / 6.0f);
    const vec far = u[3] + u[4], far_odd = u[3] - u[4];
    g[0] = u[0] * 0.25f + even + far * (1.0f / 24.0f);
    g[1] = odd + far_odd * (1.0f / 12.0f);
    g[2] = even + far * (1.0f / 6.0f);
    if (f.taps == 5) {
        g[3] = odd + far_odd * (1.0f / 3.0f);
        g[4] = even + far * (2.0f / 3.0f);
    }
    g[f.taps - 1] += u[5];
}

/* Transforms n channels of one output into dw [taps][C]. */
FORMED void taps_vector(const struct job *j, const float *u, float *dw, int64_t n,
                        const struct wino_form f)
{
    const int points = points_of(f);
    vec t[WINO_POINTS][WINO_TAPS];
    UNROLL
    for (int y = 0; y < points; y++) {
        vec line[WINO_POINTS];
        UNROLL
        for (int x = 0; x < points; x++)
            line[x] = load(u + (y * points + x) * j->p.u_step);
        taps_line(line, t[y], f);
    }
    UNROLL
    for (int x = 0; x < f.taps; x++) {
        vec line[WINO_POINTS], column[WINO_TAPS];
        UNROLL
        for (int y = 0; y < points; y++)
            line[y] = t[y][x];
        taps_line(line, column, f);
        UNROLL
        for (int y = 0; y < f.taps; y++)
            store_n(dw + (y * f.taps + x) * j->p.cin, column[y], n);
    }
}

/* Unpacks the taps from cells, without their padding. */
static void cells_to_taps(const struct job *j, const float *cells, float *dw)
{
    const struct ew_conv_shape *s = &j->f->shape;
    const int64_t high = s->axis[1].taps, wide = s->axis[2].taps, stride = s->axis[1].stride;
    const int64_t across = j->p.form.taps, part = stride * s->cin;
    for (int64_t y = 0; y < high; y++)
        for (int64_t x = 0; x < across; x++)
            copy_floats(dw + (y * wide + x * stride) * s->cin,
                        cells + (y / stride * across + x) * j->p.cin + y % stride * part,
                        min_i64(part, (wide - x * stride) * s->cin));
}

/* The gradient of output o; U begins with output `first`. */
static void finish(const struct job *j, int64_t o, int64_t first, float *dw)
{
    if (makes_bias(j))
        j->f->db[o] = j->bias[o] + (j->f->add_db ? j->f->db[o] : 0);
    const struct ew_conv_shape *s = &j->f->shape;
    const int64_t cin = j->p.cin, size = (int64_t)s->axis[1].taps * s->axis[2].taps * s->cin;
    for (int64_t c = 0; c < cin; c += LANES) {
        const float *u = j->u + c / NR * j->p.u_column + (o - first) * NR + c % NR;
        WINO_EACH(j->p.form, taps_vector, j, u, dw + c, cin - c);
    }
    if (has_cells(s)) {
        cells_to_taps(j, dw, j->cells);
        dw = j->cells;
    }
    const int64_t at = (o * time_taps(s) + j->p.tap) * size;
    if (j->f->update)
        update_piece(j->f->update, at, dw, size);
    else
        filter_sum(j->f, dw, 1, 0, at, size);
}

static void run_block(const struct job *j, int64_t b, float *dw)
{
    const int64_t first = b * j->p.rows;
    if (makes_bias(j))
        add_bias(j, b, b + 1, true);
    multiply_block(j, b);
    for (int64_t o = first; o < first + rows_of(j, b); o++)
        finish(j, o, first, dw);
}

/* ---- Phases ---- */

void EW_K(winograd_wgrad_run)(const struct ew_conv_wgrad *f, int64_t phase, int64_t begin,
                              int64_t end, void *scratch)
{
    struct job j = {
        .f = f, .bias = f->partial, .v = f->partial + bias_size(&f->shape), .zero = scratch};
    phase = wgrad_phase_init(&j.p, &f->shape, phase);
    j.y = j.v + j.p.v_size;
    j.cells = j.zero + zeros_size(&j.p, &f->shape);
    j.u = j.p.whole ? j.cells : j.v + j.p.products * j.p.step;
    j.first = phase / 2 * j.p.block;
    j.count = min_i64(j.p.block, j.p.grid.tiles - j.first);
    if (phase % 2 == 0 && phase < 2 * j.p.blocks)
        clear(j.zero, max_i64(j.p.cin, f->shape.cout) + LANES);
    for (int64_t i = begin; i < end; i++)
        if (phase == 2 * j.p.blocks)
            finish(&j, i, 0, scratch);
        else if (phase % 2 && j.p.whole)
            run_block(&j, i, scratch);
        else if (phase % 2)
            multiply(&j, i, phase == 1);
        else
            transform(&j, i);
}
