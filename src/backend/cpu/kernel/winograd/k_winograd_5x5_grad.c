/* SPDX-License-Identifier: Apache-2.0 */
/* Fused dgrad + wgrad by F(5x5, 5x5) of few channels; winograd_5x5.h describes the method.
 *
 * A work tile is a slot: a fixed range of units, whose wgrad products are accumulated and
 * transformed back in the thread's scratch.  The resulting gradient is stored in shared memory;
 * there are at most SLOTS of them, which winograd_5x5_grad_sum adds in order. */
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/gemm/wgrad_sum.h"
#include "backend/cpu/kernel/winograd/winograd_5x5.h"

#define SLOTS F5X5_UNITS
#define TAPS  (F5X5_OUT * F5X5_OUT)
#define CARRY (F5X5_POINTS - F5X5_OUT) /* pixels that adjacent tiles share */

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define AT_ONCE 16 /* tiles of dgrad computed at once */
#else
#define AT_ONCE 8
#endif

struct grad {
    struct f5x5 p;
    const struct ew_unpacked_grads *g;
    int64_t slots;
    int64_t size, slot; /* floats of the filter; of a slot, filter and bias */
};

/* A unit of work; the buffers are parts of the thread's scratch. */
struct unit {
    float *w;         /* the transformed filter: [point][chunk][output][CHANNELS] */
    float *lines, *v; /* see f5x5_input */
    float *half;      /* [block][tile][line of points][F5X5_OUT][LANES] */
    float *y;         /* A dy A' of a line of points: [block][tile][point][LANES] */
    float *dv;        /* dgrad products of a line of points: [chunk][tile][point][CHANNELS] */
    float *back;      /* [image][row of tiles][line of points][line] */
    float *sum;       /* wgrad products: [block][line of points][point][input][LANES] */
    float *bias;      /* [block][LANES] */
    float *taps;      /* [tap][input][LANES] */
    float *pixels;    /* see f5x5_unpool */
    const struct grad *d;
    int64_t first, images, tiles;
    bool fresh; /* `sum` and `bias` are not initialised */
};

static void init(struct grad *d, const struct ew_unpacked_grads *g, const struct ew_conv_shape *s)
{
    EW_K(f5x5_init)(&d->p, s);
    d->g = g;
    d->slots = min_i64(d->p.units, SLOTS);
    d->size = TAPS * d->p.cin * d->p.cout;
    d->slot = div_up(d->size + d->p.cout, LANES) * LANES;
}

struct layout {
    float *base; /* NULL: only count */
    int64_t used;
};

static float *take(struct layout *r, int64_t n)
{
    float *p = r->base ? r->base + r->used : NULL;
    r->used += n;
    return p;
}

/* Assigns the parts of a thread's scratch; returns their size in floats. */
static int64_t lay_out(const struct f5x5 *p, float *scratch, struct unit *u)
{
    const int64_t points = F5X5_POINTS * F5X5_POINTS;
    struct layout r = {.base = scratch};
    u->lines = take(&r, f5x5_lines(p));
    u->v = take(&r, f5x5_products(p));
    u->half = take(&r, p->blocks * p->unit * F5X5_HALF);
    u->y = take(&r, p->blocks * p->unit * F5X5_OUTPUTS);
    u->sum = take(&r, p->blocks * points * p->cin * LANES);
    u->bias = take(&r, p->blocks * LANES);
    u->taps = take(&r, TAPS * p->cin * LANES);
    u->back = take(&r, p->images * p->high * F5X5_POINTS * p->line);
    u->dv = take(&r, p->chunks * p->unit * F5X5_INPUTS);
    u->pixels = take(&r, f5x5_pixels(p));
    u->w = take(&r, points * p->chunks * p->cout * CHANNELS);
    return r.used;
}

size_t EW_K(winograd_5x5_grad_shared)(const struct ew_conv_shape *s)
{
    struct grad d;
    init(&d, NULL, s);
    return (size_t)(d.slots * d.slot);
}

size_t EW_K(winograd_5x5_grad_scratch)(const struct ew_conv_shape *s)
{
    struct grad d;
    struct unit u;
    init(&d, NULL, s);
    return (size_t)lay_out(&d.p, NULL, &u) * sizeof(float);
}

int64_t EW_K(winograd_5x5_grad_tiles)(const struct ew_conv_shape *s)
{
    struct grad d;
    init(&d, NULL, s);
    return d.slots;
}

/* ---- The filter for dgrad: [point][chunk][output][CHANNELS], zeros after cin ---- */

static void pack_output(const struct f5x5 *p, const float *w, int64_t n, float *to)
{
    const int64_t step = p->chunks * p->cout * CHANNELS;
    cvec half[F5X5_POINTS][F5X5_OUT];
    for (int x = 0; x < F5X5_OUT; x++) {
        cvec g[F5X5_OUT], u[F5X5_POINTS];
        UNROLL
        for (int y = 0; y < F5X5_OUT; y++)
            g[y] = channel_load(w + (y * F5X5_OUT + x) * p->cin, n);
        channel_filter(g, u);
        UNROLL
        for (int i = 0; i < F5X5_POINTS; i++)
            half[i][x] = u[i];
    }
    for (int i = 0; i < F5X5_POINTS; i++) {
        cvec u[F5X5_POINTS];
        channel_filter(half[i], u);
        UNROLL
        for (int j = 0; j < F5X5_POINTS; j++)
            *(cvec_u *)(to + (i * F5X5_POINTS + j) * step) = u[j];
    }
}

void EW_K(winograd_5x5_grad_pack)(const struct ew_unpacked_grads *g, void *scratch)
{
    struct grad d;
    struct unit u;
    init(&d, g, &g->filter.shape);
    lay_out(&d.p, scratch, &u);
    for (int64_t o = 0; o < d.p.cout; o++)
        for (int64_t c = 0; c < d.p.chunks; c++)
            pack_output(&d.p, g->w + o * TAPS * d.p.cin + c * CHANNELS,
                        min_i64(CHANNELS, d.p.cin - c * CHANNELS),
                        u.w + (c * d.p.cout + o) * CHANNELS);
}

/* ---- A dy A' ---- */

/* LANES outputs of an image's dy, with strides in floats between pixels and rows. */
struct source {
    const float *dy;
    int64_t n, pixel, row;
};

/* The transform along the columns of a tile; returns the sum of dy.  `whole`: no output or lane is
 * missing. */
INLINE vec dy_columns(const struct unit *u, const struct source *from, int64_t tile, float *to,
                      const bool whole)
{
    const struct f5x5 *p = &u->d->p;
    const struct ew_conv_shape *s = &u->d->g->filter.shape;
    const int64_t wide = s->axis[2].out, high = s->axis[1].out, row = from->row;
    const int64_t y0 = tile / p->wide * F5X5_OUT, x0 = tile % p->wide * F5X5_OUT;
    const float *dy = from->dy + y0 * row + x0 * from->pixel;
    vec sum = {0};
    for (int64_t x = 0; x < F5X5_OUT; x++, dy += from->pixel, to += LANES) {
        vec d[F5X5_OUT], out[F5X5_POINTS];
        UNROLL
        for (int y = 0; y < F5X5_OUT; y++)
            if (whole)
                d[y] = load(dy + y * row);
            else
                d[y] = x0 + x < wide && y0 + y < high ? load_n(dy + y * row, from->n) : (vec){0};
        line_output_back(d, out);
        sum += ((d[0] + d[1]) + (d[2] + d[3])) + d[4];
        UNROLL
        for (int i = 0; i < F5X5_POINTS; i++)
            store(to + i * F5X5_OUT * LANES, out[i]);
    }
    return sum;
}

/* Outputs [o, o + LANES) of dy of an image: in place, or computed from the gradient of a fused
 * pool. */
static struct source find_source(const struct unit *u, int64_t image, int64_t o)
{
    const struct ew_unpacked_grads *g = u->d->g;
    const struct ew_conv_shape *s = &g->filter.shape;
    const int64_t wide = s->axis[2].out, row = wide * s->cout;
    const struct f5x5_part part = {.image = u->first + image, .output = o, .pixels = u->pixels};
    if (!g->pool)
        return (struct source){.dy = g->filter.dy + part.image * s->axis[1].out * row + o,
                               .n = s->cout - o,
                               .pixel = s->cout,
                               .row = row};
    EW_K(f5x5_unpool)(s, g->pool, &part);
    return (struct source){.dy = u->pixels, .n = LANES, .pixel = LANES, .row = wide * LANES};
}

static void dy_all_columns(const struct unit *u)
{
    const struct f5x5 *p = &u->d->p;
    const struct ew_conv_axis *a = u->d->g->filter.shape.axis;
    const bool whole = a[1].out % F5X5_OUT == 0 && a[2].out % F5X5_OUT == 0;
    for (int64_t b = 0; b < p->blocks; b++) {
        vec sum = u->fresh ? (vec){0} : load(u->bias + b * LANES);
        float *to = u->half + b * p->unit * F5X5_HALF;
        for (int64_t n = 0; n < u->images; n++) {
            const struct source from = find_source(u, n, b * LANES);
            for (int64_t t = 0; t < p->tiles; t++, to += F5X5_HALF)
                if (whole && from.n >= LANES)
                    sum += dy_columns(u, &from, t, to, true);
                else
                    sum += dy_columns(u, &from, t, to, false);
        }
        store(u->bias + b * LANES, sum);
    }
}

/* The transform along line i of all tiles. */
static void dy_line(const struct unit *u, int64_t i)
{
    for (int64_t b = 0; b < u->d->p.blocks; b++) {
        const float *from = u->half + b * u->d->p.unit * F5X5_HALF + i * F5X5_OUT * LANES;
        float *to = u->y + b * u->d->p.unit * F5X5_OUTPUTS;
        for (int64_t t = 0; t < u->tiles; t++, from += F5X5_HALF, to += F5X5_OUTPUTS) {
            vec d[F5X5_OUT], out[F5X5_POINTS];
            UNROLL
            for (int x = 0; x < F5X5_OUT; x++)
                d[x] = load(from + x * LANES);
            line_output_back(d, out);
            UNROLL
            for (int j = 0; j < F5X5_POINTS; j++)
                store(to + j * LANES, out[j]);
        }
    }
}

/* ---- Products of wgrad ---- */

/* Accumulates some inputs over all tiles. */
INLINE void filter_inputs(const float *v, const float *y, int64_t tiles, bool fresh, float *to,
                          const int inputs)
{
    vec sum[8];
    UNROLL
    for (int k = 0; k < inputs; k++)
        sum[k] = fresh ? (vec){0} : load(to + k * LANES);
    for (int64_t t = 0; t < tiles; t++) {
        const vec in = load(y + t * F5X5_OUTPUTS);
        UNROLL
        for (int k = 0; k < inputs; k++)
            sum[k] += in * v[t * F5X5_INPUTS + k];
    }
    UNROLL
    for (int k = 0; k < inputs; k++)
        store(to + k * LANES, sum[k]);
}

/* Accumulates n inputs of a chunk. */
static void filter_chunk(const struct unit *u, const float *v, const float *y, int64_t n, float *to)
{
    for (int64_t k = 0; k < n;) {
        float *at = to + k * LANES;
        const int64_t left = n - k, step = left >= 8 ? 8 : left >= 6 ? 6 : left >= 4 ? 4 : 1;
        if (step == 8)
            filter_inputs(v + k, y, u->tiles, u->fresh, at, 8);
        else if (step == 6)
            filter_inputs(v + k, y, u->tiles, u->fresh, at, 6);
        else if (step == 4)
            filter_inputs(v + k, y, u->tiles, u->fresh, at, 4);
        else
            filter_inputs(v + k, y, u->tiles, u->fresh, at, 1);
        k += step;
    }
}

static void filter_line(const struct unit *u, int64_t i)
{
    const struct f5x5 *p = &u->d->p;
    const int64_t point = p->cin * LANES;
    for (int64_t b = 0; b < p->blocks; b++) {
        const float *y = u->y + b * p->unit * F5X5_OUTPUTS;
        float *to = u->sum + (b * F5X5_POINTS + i) * F5X5_POINTS * point;
        for (int64_t j = 0; j < F5X5_POINTS; j++, y += LANES, to += point)
            for (int64_t c = 0; c < p->chunks; c++)
                filter_chunk(u, u->v + (i * p->chunks + c) * p->unit * F5X5_INPUTS + j * CHANNELS,
                             y, min_i64(CHANNELS, p->cin - c * CHANNELS),
                             to + c * CHANNELS * LANES);
    }
}

/* ---- Products of dgrad, and B .  B' ---- */

/* One point of some tiles; w is [output][CHANNELS]. */
INLINE void data_tiles(const struct f5x5 *p, const float *w, const float *y, float *to,
                       const int tiles)
{
    cvec sum[AT_ONCE];
    UNROLL
    for (int t = 0; t < tiles; t++)
        sum[t] = (cvec){0};
    for (int64_t o = 0; o < p->cout; o += LANES, y += p->unit * F5X5_OUTPUTS)
        for (int64_t l = 0; l < min_i64(LANES, p->cout - o); l++, w += CHANNELS) {
            const cvec in = *(const cvec_u *)w;
            UNROLL
            for (int t = 0; t < tiles; t++)
                sum[t] += in * y[t * F5X5_OUTPUTS + l];
        }
    UNROLL
    for (int t = 0; t < tiles; t++)
        *(cvec_u *)(to + t * F5X5_INPUTS) = sum[t];
}

static void data_line(const struct unit *u, int64_t i)
{
    const struct f5x5 *p = &u->d->p;
    const float *w = u->w + i * F5X5_POINTS * p->chunks * p->cout * CHANNELS;
    for (int64_t j = 0; j < F5X5_POINTS; j++)
        for (int64_t c = 0; c < p->chunks; c++, w += p->cout * CHANNELS) {
            const float *y = u->y + j * LANES;
            float *to = u->dv + c * p->unit * F5X5_INPUTS + j * CHANNELS;
            int64_t t = 0;
            for (; t + AT_ONCE <= u->tiles; t += AT_ONCE)
                data_tiles(p, w, y + t * F5X5_OUTPUTS, to + t * F5X5_INPUTS, AT_ONCE);
            for (; t + 4 <= u->tiles; t += 4)
                data_tiles(p, w, y + t * F5X5_OUTPUTS, to + t * F5X5_INPUTS, 4);
            for (; t < u->tiles; t++)
                data_tiles(p, w, y + t * F5X5_OUTPUTS, to + t * F5X5_INPUTS, 1);
        }
}

/* The transform along line i of a row of tiles; pixels shared with the next tile are carried over.
 * Whole vectors reach into the next pixel, which is stored later; with several vectors for each
 * pixel they must not. */
static void back_row(const struct f5x5 *p, const float *dv, int64_t n, float *to)
{
    const int64_t cin = p->cin;
    cvec carry[CARRY] = {{0}}, v[F5X5_POINTS], d[F5X5_POINTS];
    for (int64_t x = 0; x < p->wide; x++, dv += F5X5_INPUTS, to += F5X5_OUT * cin) {
        UNROLL
        for (int j = 0; j < F5X5_POINTS; j++)
            v[j] = *(const cvec_u *)(dv + j * CHANNELS);
        channel_input_back(v, d);
        UNROLL
        for (int j = 0; j < CARRY; j++) {
            d[j] += carry[j];
            carry[j] = d[F5X5_OUT + j];
        }
        UNROLL
        for (int j = 0; j < F5X5_OUT; j++)
            channel_store(to + j * cin, d[j], n);
    }
    UNROLL
    for (int j = 0; j < CARRY; j++)
        channel_store(to + j * cin, carry[j], n);
}

static void back_line(const struct unit *u, int64_t i)
{
    const struct f5x5 *p = &u->d->p;
    for (int64_t r = 0; r < u->images * p->high; r++)
        for (int64_t c = 0; c < p->chunks; c++)
            back_row(p, u->dv + (c * p->unit + r * p->wide) * F5X5_INPUTS,
                     p->chunks == 1 ? CHANNELS : min_i64(CHANNELS, p->cin - c * CHANNELS),
                     u->back + (r * F5X5_POINTS + i) * p->line + c * CHANNELS);
}

/* Stores n floats of line y of dx, unless it is padding. */
INLINE void put_line(const struct unit *u, float *dx, int64_t y, vec v, int64_t n)
{
    if (y < 0 || y >= u->d->g->filter.shape.axis[1].in)
        return;
    dx += y * u->d->p.x_row;
    store_n(dx, u->d->g->add_dx ? load_n(dx, n) + v : v, n);
}

/* The transform along the columns of an image, up to LANES floats of each line. */
static void back_columns(const struct unit *u, const float *back, float *dx, int64_t n)
{
    const struct f5x5 *p = &u->d->p;
    const int64_t pad = u->d->g->filter.shape.axis[1].pad;
    vec carry[CARRY] = {{0}}, v[F5X5_POINTS], d[F5X5_POINTS];
    for (int64_t y = 0; y < p->high; y++, back += F5X5_POINTS * p->line) {
        UNROLL
        for (int i = 0; i < F5X5_POINTS; i++)
            v[i] = load(back + i * p->line);
        line_input_back(v, d);
        UNROLL
        for (int i = 0; i < CARRY; i++) {
            d[i] += carry[i];
            carry[i] = d[F5X5_OUT + i];
        }
        UNROLL
        for (int i = 0; i < F5X5_OUT; i++)
            put_line(u, dx, y * F5X5_OUT + i - pad, d[i], n);
    }
    UNROLL
    for (int i = 0; i < CARRY; i++)
        put_line(u, dx, p->high * F5X5_OUT + i - pad, carry[i], n);
}

static void back_all_columns(const struct unit *u)
{
    const struct f5x5 *p = &u->d->p;
    const int64_t left = u->d->g->filter.shape.axis[2].pad * p->cin;
    for (int64_t n = 0; n < u->images; n++)
        for (int64_t at = 0; at < p->x_row; at += LANES)
            back_columns(u, u->back + n * p->high * F5X5_POINTS * p->line + left + at,
                         u->d->g->dx + (u->first + n) * p->x_image + at, p->x_row - at);
}

/* ---- dw = G' .  G of the accumulated products ---- */

/* Transforms one input and LANES outputs to [tap][input][LANES]. */
static void taps_input(const struct f5x5 *p, const float *sum, float *taps)
{
    vec half[F5X5_POINTS][F5X5_OUT];
    for (int i = 0; i < F5X5_POINTS; i++) {
        vec u[F5X5_POINTS];
        UNROLL
        for (int j = 0; j < F5X5_POINTS; j++)
            u[j] = load(sum + (i * F5X5_POINTS + j) * p->cin * LANES);
        line_taps(u, half[i]);
    }
    for (int x = 0; x < F5X5_OUT; x++) {
        vec u[F5X5_POINTS], g[F5X5_OUT];
        UNROLL
        for (int i = 0; i < F5X5_POINTS; i++)
            u[i] = half[i][x];
        line_taps(u, g);
        UNROLL
        for (int y = 0; y < F5X5_OUT; y++)
            store(taps + (y * F5X5_OUT + x) * p->cin * LANES, g[y]);
    }
}

/* Writes the slot: the filter's layout, then the bias. */
static void finish_slot(const struct unit *u, float *slot)
{
    const struct f5x5 *p = &u->d->p;
    const int64_t size = TAPS * p->cin;
    for (int64_t o = 0; o < p->cout; o += LANES) {
        const float *sum = u->sum + o * F5X5_POINTS * F5X5_POINTS * p->cin;
        for (int64_t k = 0; k < p->cin; k++)
            taps_input(p, sum + k * LANES, u->taps + k * LANES);
        for (int64_t t = 0; t < size; t += LANES) {
            vec r[LANES];
            transpose_load(u->taps + t * LANES, LANES, size - t, LANES, r);
            for (int64_t i = 0; i < min_i64(LANES, p->cout - o); i++)
                store_n(slot + (o + i) * size + t, r[i], size - t);
        }
        store_n(slot + p->cout * size + o, load(u->bias + o), p->cout - o);
    }
}

/* ---- Units and slots ---- */

static void run_unit(const struct unit *u)
{
    const struct ew_unpacked_grads *g = u->d->g;
    const struct f5x5 *p = &u->d->p;
    if (!g->no_filter)
        EW_K(f5x5_input)
    (p, &g->filter.shape, g->filter.x + u->first * p->x_image, u->images, u->lines, u->v);
    dy_all_columns(u);
    for (int64_t i = 0; i < F5X5_POINTS; i++) {
        dy_line(u, i);
        if (!g->no_filter)
            filter_line(u, i);
        if (g->dx) {
            data_line(u, i);
            back_line(u, i);
        }
    }
    if (g->dx)
        back_all_columns(u);
}

void EW_K(winograd_5x5_grad_run)(const struct ew_unpacked_grads *g, int64_t begin, int64_t end,
                                 void *scratch)
{
    struct grad d;
    init(&d, g, &g->filter.shape);
    struct unit u = {.d = &d};
    lay_out(&d.p, scratch, &u);
    clear(u.lines, f5x5_lines(&d.p)); /* padding */
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = d.p.units * i / d.slots, last = d.p.units * (i + 1) / d.slots;
        for (int64_t n = first; n < last; n++) {
            u.fresh = n == first;
            u.first = n * d.p.images;
            u.images = min_i64(d.p.images, g->filter.shape.batch - u.first);
            u.tiles = u.images * d.p.tiles;
            run_unit(&u);
        }
        if (!g->no_filter)
            finish_slot(&u, g->shared + i * d.slot);
    }
}

void EW_K(winograd_5x5_grad_sum)(const struct ew_unpacked_grads *g)
{
    const struct ew_conv_wgrad *f = &g->filter;
    struct grad d;
    init(&d, g, &f->shape);
    filter_sum(f, g->shared, d.slots, d.slot, 0, d.size);
    for (int64_t o = 0; f->db && o < d.p.cout; o += LANES) {
        const int64_t n = d.p.cout - o;
        vec sum = f->add_db ? load_n(f->db + o, n) : (vec){0};
        for (int64_t s = 0; s < d.slots; s++)
            sum += load_n(g->shared + s * d.slot + d.size + o, n);
        store_n(f->db + o, sum, n);
    }
}
