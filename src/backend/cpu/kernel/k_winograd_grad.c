/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient for the filter by Winograd's way: what the forward pass multiplies point by point is
 * summed up point by point, and G' ... G turns the sums into taps.
 *
 *   input --B'dB--> V [products][tiles][C]
 *   dy    --A dy A'-> Y [products][tiles][O]     U += Y' V, 36 times     dw = G' U G
 *
 * A work tile is OUTPUTS x CHANNELS of dw and some of the image tiles; U of a work tile stays in L2
 * while TILES image tiles at a time are transformed and multiplied. */
#include <math.h>

#include "backend/cpu/kernel/filter_sum.h"
#include "backend/cpu/kernel/micro.h"
#include "backend/cpu/kernel/winograd.h"

#define PRODUCTS (WINO_POINTS * WINO_POINTS)
#define TILES    64
#define BLOCKS   8 /* of MR outputs */
#define OUTPUTS  (BLOCKS * MR)
#define CHANNELS 64
/* From product to product: not a multiple of 4 KiB, or their lines would share cache sets. */
#define V_STEP  (TILES * KS + 5 * LINE)
#define U_STEP  (OUTPUTS * CHANNELS + 5 * LINE)
#define Y_STEP  (BLOCKS * Y_BLOCK + 5 * LINE)
#define WANTED  12                   /* work tiles to aim at */
#define Y_BLOCK (TILES * MR + LANES) /* whole vectors are stored */

struct plan {
    struct wino_form form;
    int64_t products, taps;
    int64_t high, wide, tiles; /* of images */
    int64_t o_splits, c_splits, splits;
    int64_t column, side; /* floats of a product in a row of V, and products side by side */
    int64_t size;         /* of dw */
};

static double form_cost(const struct ew_conv_shape *s, struct wino_form f)
{
    const double tiles = (double)s->batch * (double)div_up(s->axis[1].out, f.out) *
                         (double)div_up(s->axis[2].out, f.out);
    const double products = points_of(f) * points_of(f), cin = s->cin, cout = s->cout;
    const double transforms = cin * (double)div_up(s->cout, OUTPUTS) +
                              cout * (double)div_up(s->cin, CHANNELS) * LANES / MR;
    /* A transform takes about four operations a point; U is read and written for each TILES. */
    return tiles * products * (cin * cout * (1 + 4.0 / TILES) + 4 * transforms) +
           products * cin * cout * 4;
}

static struct wino_form form_of(const struct ew_conv_shape *s)
{
    const struct wino_form large = {4, 3}, small = {2, 3}, five = {2, 5};
    if (s->axis[1].taps == 5)
        return five;
    return form_cost(s, small) < form_cost(s, large) ? small : large;
}

bool EW_K(winograd_filter_fits)(const struct ew_conv_shape *s)
{
    if (!EW_K(winograd_fits)(s) || s->cin < LANES || s->cout < MR || s->batch == 0)
        return false;
    const double taps = (double)s->axis[1].taps * s->axis[2].taps;
    const double rows = (double)s->batch * s->axis[1].out * s->axis[2].out;
    return form_cost(s, form_of(s)) < 0.9 * rows * taps * s->cin * s->cout;
}

static void init(struct plan *p, const struct ew_conv_shape *s)
{
    p->form = form_of(s);
    p->products = points_of(p->form) * points_of(p->form);
    p->taps = p->form.taps * p->form.taps;
    p->high = div_up(s->axis[1].out, p->form.out);
    p->wide = div_up(s->axis[2].out, p->form.out);
    p->tiles = s->batch * p->high * p->wide;
    p->o_splits = div_up(s->cout, OUTPUTS);
    p->c_splits = div_up(s->cin, CHANNELS);
    const int64_t tiles = p->o_splits * p->c_splits, blocks = div_up(p->tiles, TILES);
    p->splits = min_i64(max_i64(WANTED / tiles, 1), blocks);
    p->column = min_i64(div_up(s->cin, LANES) * LANES, CHANNELS);
    p->side = KC / p->column;
    p->size = p->taps * s->cin * s->cout;
}

int64_t EW_K(winograd_filter_tiles)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return p.o_splits * p.c_splits * p.splits;
}

size_t EW_K(winograd_filter_partial)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return p.splits > 1 ? (size_t)(p.splits * p.size) : 0;
}

static int64_t v_size(const struct plan *p)
{
    return div_up(p->products, p->side) * V_STEP;
}

/* V, Y, U, and zeros in place of pixels outside of the image.  At the end dw takes the place of V.
 */
size_t EW_K(winograd_filter_scratch)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    const int64_t v = max_i64(v_size(&p), OUTPUTS * p.taps * CHANNELS);
    return (size_t)(v + p.products * (Y_STEP + U_STEP) + CHANNELS + OUTPUTS + 2 * LANES) *
           sizeof(float);
}

struct job {
    const struct ew_conv_filter *f;
    struct plan p;
    int64_t o, outputs, c, channels; /* of the work tile */
    float *v, *y, *u, *zero;
    const float *pixel[PRODUCTS]; /* of one image tile */
};

/* ---- V: B' d B ---- */

/* Points at `side` x `side` pixels from (y0, x0) on, of an image [high, wide, channels]. */
static void find_pixels(struct job *j, const float *image, const int64_t size[3], int64_t y0,
                        int64_t x0, int side)
{
    for (int i = 0; i < side * side; i++) {
        const int64_t y = y0 + i / side, x = x0 + i % side;
        const bool inside = y >= 0 && y < size[0] && x >= 0 && x < size[1];
        j->pixel[i] = inside ? image + (y * size[1] + x) * size[2] : j->zero;
    }
}

INLINE int64_t v_at(const struct job *j, int64_t product)
{
    return product / j->p.side * V_STEP + product % j->p.side * j->p.column;
}

INLINE void input_vector(const struct job *j, float *v, int64_t c, int64_t n,
                         const struct wino_form f)
{
    const int points = points_of(f);
    vec t[WINO_POINTS][WINO_POINTS];
    UNROLL
    for (int x = 0; x < points; x++) {
        vec d[WINO_POINTS], column[WINO_POINTS];
        UNROLL
        for (int y = 0; y < points; y++) {
            const float *p = j->pixel[y * points + x] + c;
            d[y] = load_n(p, n);
        }
        input_line(d, column, f);
        UNROLL
        for (int y = 0; y < points; y++)
            t[y][x] = column[y];
    }
    UNROLL
    for (int y = 0; y < points; y++) {
        vec row[WINO_POINTS];
        input_line(t[y], row, f);
        UNROLL
        for (int x = 0; x < points; x++)
            store(v + v_at(j, y * points + x) + c, row[x]);
    }
}

INLINE void input_tile(const struct job *j, float *v, const struct wino_form f)
{
    int64_t c = 0;
    for (; c + LANES <= j->channels; c += LANES)
        input_vector(j, v, c, LANES, f);
    if (c < j->channels)
        input_vector(j, v, c, j->channels - c, f);
}

static void add_input(struct job *j, int64_t tile, int64_t at)
{
    const struct ew_conv_shape *s = &j->f->shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t out = j->p.form.out, size[3] = {a[1].in, a[2].in, s->cin};
    const int64_t n = tile / j->p.wide / j->p.high;
    find_pixels(j, j->f->x + n * size[0] * size[1] * size[2] + j->c, size,
                tile / j->p.wide % j->p.high * out - a[1].pad, tile % j->p.wide * out - a[2].pad,
                points_of(j->p.form));
    if (points_of(j->p.form) == 4)
        input_tile(j, j->v + at * KS, (struct wino_form){2, 3});
    else
        input_tile(j, j->v + at * KS, (struct wino_form){4, 3}); /* and of F(2, 5) */
}

/* ---- Y: A dy A' ---- */

INLINE void spread_line(const vec *y, vec *t, const struct wino_form f)
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
    t[5] = y[3];
}

/* n outputs from o on, of one image tile; products are Y_STEP floats apart. */
INLINE void spread_vector(const struct job *j, float *to, int64_t o, int64_t n,
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
        spread_line(d, column, f);
        UNROLL
        for (int y = 0; y < points; y++)
            t[y][x] = column[y];
    }
    UNROLL
    for (int y = 0; y < points; y++) {
        vec row[WINO_POINTS];
        spread_line(t[y], row, f);
        UNROLL
        for (int x = 0; x < points; x++)
            store(to + (y * points + x) * Y_STEP, row[x]);
    }
}

/* Blocks of MR outputs.  Whole vectors are stored: what is too much is written anew with the next
 * tile, or is the room between blocks. */
INLINE void spread_tile(const struct job *j, int64_t at, const struct wino_form f)
{
    for (int64_t b = 0; b < j->outputs; b += MR)
        for (int64_t i = 0; i < min_i64(MR, j->outputs - b); i += LANES)
            spread_vector(j, j->y + b / MR * Y_BLOCK + at * MR + i, b + i,
                          min_i64(min_i64(MR, j->outputs - b) - i, LANES), f);
}

static void add_output(struct job *j, int64_t tile, int64_t at)
{
    const struct ew_conv_shape *s = &j->f->shape;
    const struct ew_conv_axis *a = s->axis;
    const int64_t out = j->p.form.out, size[3] = {a[1].out, a[2].out, s->cout};
    const int64_t n = tile / j->p.wide / j->p.high;
    find_pixels(j, j->f->dy + n * size[0] * size[1] * size[2] + j->o, size,
                tile / j->p.wide % j->p.high * out, tile % j->p.wide * out, (int)out);
    if (j->p.form.taps == 5)
        spread_tile(j, at, (struct wino_form){2, 5});
    else if (out == 2)
        spread_tile(j, at, (struct wino_form){2, 3});
    else
        spread_tile(j, at, (struct wino_form){4, 3});
}

/* ---- U += Y' V: U is [products][OUTPUTS][CHANNELS] ---- */

static void multiply(const struct job *j, int64_t count, bool first)
{
    int64_t row[MR];
    for (int64_t r = 0; r < MR; r++)
        row[r] = r * CHANNELS;
    for (int64_t p = 0; p < j->p.products; p++)
        for (int64_t c = 0; c < j->channels; c += NR)
            for (int64_t b = 0; b < j->outputs; b += MR) {
                float *u = j->u + p * U_STEP + b * CHANNELS + c;
                const struct micro m = {.a = j->y + p * Y_STEP + b / MR * Y_BLOCK,
                                        .w = j->v + v_at(j, p) + c,
                                        .kc = count,
                                        .from = first ? NULL : u,
                                        .c = u,
                                        .row = row,
                                        .width = min_i64(NR, j->channels - c),
                                        .lo = -INFINITY,
                                        .hi = INFINITY};
                EW_K(micro_outer)(&m, (int)min_i64(MR, j->outputs - b));
            }
}

/* ---- dw = G' U G ---- */

INLINE void taps_line(const vec *u, vec *g, const struct wino_form f)
{
    if (points_of(f) == 4) {
        const vec even = (u[1] + u[2]) * 0.5f;
        g[0] = u[0] + even;
        g[1] = (u[1] - u[2]) * 0.5f;
        g[2] = even + u[3];
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

/* One output: taps go `step` floats apart, n channels each. */
INLINE void taps_vector(const float *u, float *dw, int64_t step, int64_t n,
                        const struct wino_form f)
{
    const int points = points_of(f);
    vec t[WINO_POINTS][WINO_TAPS];
    UNROLL
    for (int y = 0; y < points; y++) {
        vec line[WINO_POINTS];
        UNROLL
        for (int x = 0; x < points; x++)
            line[x] = load(u + (y * points + x) * U_STEP);
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
            store_n(dw + (y * f.taps + x) * step, column[y], n);
    }
}

/* Where finished sums go: rows of `step` floats. */
static void finish(const struct job *j, float *to, int64_t step)
{
    for (int64_t o = 0; o < j->outputs; o++)
        for (int64_t c = 0; c < j->channels; c += LANES) {
            const float *u = j->u + o * CHANNELS + c;
            float *dw = to + o * j->p.taps * step + c;
            const int64_t n = min_i64(LANES, j->channels - c);
            if (j->p.form.taps == 5)
                taps_vector(u, dw, step, n, (struct wino_form){2, 5});
            else if (j->p.form.out == 2)
                taps_vector(u, dw, step, n, (struct wino_form){2, 3});
            else
                taps_vector(u, dw, step, n, (struct wino_form){4, 3});
        }
}

/* Into dw, or the filter itself, through scratch. */
static void finish_whole(const struct job *j)
{
    float *const sums = j->v;
    const int64_t cin = j->f->shape.cin;
    finish(j, sums, CHANNELS);
    for (int64_t i = 0; i < j->outputs * j->p.taps; i++)
        filter_sum(j->f, sums + i * CHANNELS, 1, 0, (j->o * j->p.taps + i) * cin + j->c,
                   j->channels);
}

/* ---- Work tiles ---- */

static void run_tile(struct job *j, int64_t index)
{
    const struct plan *p = &j->p;
    const struct ew_conv_shape *s = &j->f->shape;
    const int64_t split = index / p->o_splits / p->c_splits;
    j->o = index % p->o_splits * OUTPUTS;
    j->c = index / p->o_splits % p->c_splits * CHANNELS;
    j->outputs = min_i64(OUTPUTS, s->cout - j->o);
    j->channels = min_i64(CHANNELS, s->cin - j->c);
    const int64_t begin = p->tiles * split / p->splits, end = p->tiles * (split + 1) / p->splits;
    for (int64_t tile = begin; tile < end; tile += TILES) {
        const int64_t count = min_i64(TILES, end - tile);
        for (int64_t i = 0; i < count; i++) {
            add_input(j, tile + i, i);
            add_output(j, tile + i, i);
        }
        multiply(j, count, tile == begin);
    }
    if (p->splits > 1)
        finish(j, j->f->partial + split * p->size + j->o * p->taps * s->cin + j->c, s->cin);
    else
        finish_whole(j);
}

void EW_K(winograd_filter_run)(const struct ew_conv_filter *f, int64_t begin, int64_t end,
                               void *scratch)
{
    struct job j = {.f = f, .v = scratch};
    init(&j.p, &f->shape);
    j.y = j.v + max_i64(v_size(&j.p), OUTPUTS * j.p.taps * CHANNELS);
    j.u = j.y + j.p.products * Y_STEP;
    j.zero = j.u + j.p.products * U_STEP;
    for (int64_t i = 0; i < CHANNELS + OUTPUTS; i += LANES)
        store(j.zero + i, (vec){0});
    clear(j.v,
          v_size(&j.p)); /* lanes behind the last channel are multiplied: they may not be slow */
    for (int64_t i = begin; i < end; i++)
        run_tile(&j, i);
}

int64_t EW_K(winograd_filter_sum_tiles)(const struct ew_conv_shape *s)
{
    struct plan p;
    init(&p, s);
    return p.splits > 1 ? div_up(p.size, FILTER_SUM) : 0;
}

void EW_K(winograd_filter_sum)(const struct ew_conv_filter *f, int64_t begin, int64_t end)
{
    struct plan p;
    init(&p, &f->shape);
    const int64_t at = begin * FILTER_SUM, last = min_i64(end * FILTER_SUM, p.size);
    filter_sum(f, f->partial + at, p.splits, p.size, at, last - at);
}
