/* SPDX-License-Identifier: Apache-2.0 */
/* F(5x5, 5x5) of few channels, forward; winograd_5x5.h describes the method. */
#include "backend/cpu/kernel/winograd/winograd_5x5.h"

#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/transpose_tile.h"

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define AT_ONCE 2 /* tiles computed at once, with 9 accumulators each */
#else
#define AT_ONCE 1
#endif

#define WEIGHTS_MAX  1024       /* most inputs x outputs: 324 KiB of transformed filters */
#define PRODUCTS_MAX (64 << 10) /* most floats of a unit's transformed inputs */
#define TILES_MAX    64         /* most tiles of an image: more would not fit into L2 */

/* ---- Geometry ---- */

void EW_K(f5x5_init)(struct f5x5 *p, const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    *p = (struct f5x5){.high = div_up(h->out, F5X5_OUT),
                       .wide = div_up(w->out, F5X5_OUT),
                       .cin = s->cin,
                       .chunks = div_up(s->cin, CHANNELS),
                       .cout = s->cout,
                       .blocks = div_up(s->cout, LANES),
                       .x_row = (int64_t)w->in * s->cin};
    p->x_image = p->x_row * h->in;
    p->tiles = p->high * p->wide;
    p->images = max_i64(min_i64(F5X5_UNIT / p->tiles, s->batch / F5X5_UNITS), 1);
    p->units = div_up(s->batch, p->images);
    p->unit = p->images * p->tiles;
    const int64_t line = (p->wide * F5X5_OUT + F5X5_POINTS - F5X5_OUT) * s->cin;
    p->line = div_up(line + LANES, LANES) * LANES;
}

/* Cropped images are excluded: their last lines would be in no tile. */
bool EW_K(winograd_5x5_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    bool fits = s->groups == 1 && s->batch > 0 && s->cin > 0 && s->cout > 0 && a[0].in == 1 &&
                a[0].out == 1 && a[0].taps == 1 && a[0].pad == 0;
    for (int i = 1; i < 3; i++)
        fits = fits && a[i].taps == F5X5_OUT && a[i].stride == 1 && a[i].dilation == 1 &&
               a[i].in > 0 && a[i].out > 0 && a[i].pad >= 0 &&
               a[i].out + a[i].taps - 1 - a[i].pad - a[i].in >= 0;
    return fits && div_up(a[1].out, F5X5_OUT) * div_up(a[2].out, F5X5_OUT) <= TILES_MAX;
}

/* Compares vector operations; those of the transforms are counted from winograd_5x5_lines.h.
 * Transformed filters and inputs must fit into L2, or winograd.h's blocking is faster. */
bool EW_K(winograd_5x5_pays)(const struct ew_conv_shape *s)
{
    if (!EW_K(winograd_5x5_fits)(s) || s->cin < 3 || s->cout < 8 || s->cin > 32 || s->cout > 64)
        return false;
    struct f5x5 p;
    EW_K(f5x5_init)(&p, s);
    if (p.cin * p.cout > WEIGHTS_MAX || f5x5_products(&p) > PRODUCTS_MAX)
        return false;
    const double vectors = (double)p.blocks, inputs = (double)(p.chunks * CHANNELS) / LANES;
    const double tile = 81.0 * (double)p.cin * vectors + 14 * 25 * vectors + 18 * 35 * inputs;
    const double direct = 25.0 * s->axis[1].out * s->axis[2].out * (double)p.cin * vectors;
    return 1.5 * tile * (double)p.tiles < direct;
}

/* ---- Weights: [block of outputs][line of points][input][point][LANES], then scratch for
 * transposes ---- */

size_t EW_K(winograd_5x5_pack_size)(const struct ew_conv_shape *s)
{
    const int64_t taps = F5X5_OUT * F5X5_OUT;
    const int64_t vectors = div_up(s->cout, LANES) * F5X5_POINTS * F5X5_POINTS + taps;
    return (size_t)(vectors * s->cin * LANES);
}

/* Transforms the filters of one input and a block of outputs; `taps` is [tap][cin][LANES]. */
static void pack_input(const float *taps, int64_t cin, float *to)
{
    vec half[F5X5_POINTS][F5X5_OUT];
    UNROLL
    for (int x = 0; x < F5X5_OUT; x++) {
        vec g[F5X5_OUT], u[F5X5_POINTS];
        UNROLL
        for (int y = 0; y < F5X5_OUT; y++)
            g[y] = load(taps + (y * F5X5_OUT + x) * cin * LANES);
        line_filter(g, u);
        UNROLL
        for (int i = 0; i < F5X5_POINTS; i++)
            half[i][x] = u[i];
    }
    for (int i = 0; i < F5X5_POINTS; i++) {
        vec u[F5X5_POINTS];
        line_filter(half[i], u);
        UNROLL
        for (int j = 0; j < F5X5_POINTS; j++)
            store(to + (i * cin * F5X5_POINTS + j) * LANES, u[j]);
    }
}

void EW_K(winograd_5x5_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const int64_t cin = s->cin, size = F5X5_OUT * F5X5_OUT * cin;
    const int64_t block = F5X5_POINTS * F5X5_POINTS * cin * LANES;
    float *taps = packed + div_up(s->cout, LANES) * block;
    for (int64_t o = 0; o < s->cout; o += LANES, packed += block) {
        for (int64_t t = 0; t < size; t += LANES) {
            vec r[LANES];
            transpose_load(w + o * size + t, size, s->cout - o, size - t, r);
            for (int64_t i = 0; i < min_i64(LANES, size - t); i++)
                store(taps + (t + i) * LANES, r[i]);
        }
        for (int64_t k = 0; k < cin; k++)
            pack_input(taps + k * LANES, cin, packed + k * F5X5_POINTS * LANES);
    }
}

/* ---- Inputs ---- */

/* The transform along the columns, for a row of tiles: vectors run along the pixels of a line. */
static void columns(const struct f5x5 *p, const float *const row[F5X5_POINTS], float *to)
{
    const int64_t n = p->x_row, line = p->line;
    for (int64_t at = 0; at < n; at += LANES) {
        const int64_t from = n < LANES ? 0 : min_i64(at, n - LANES);
        vec d[F5X5_POINTS], out[F5X5_POINTS];
        UNROLL
        for (int i = 0; i < F5X5_POINTS; i++)
            d[i] = load_n(row[i] + from, n);
        line_input(d, out);
        UNROLL
        for (int i = 0; i < F5X5_POINTS; i++)
            store(to + i * line + from, out[i]);
    }
}

/* The transform along the lines: CHANNELS inputs of a tile at a time, whatever follows the last
 * input. */
static void rows(const struct f5x5 *p, const float *lines, float *v)
{
    const int64_t cin = p->cin, wide = p->wide;
    for (int64_t i = 0; i < F5X5_POINTS; i++, lines += p->line)
        for (int64_t c = 0; c < p->chunks; c++, v += p->unit * F5X5_INPUTS)
            for (int64_t x = 0; x < wide; x++) {
                const float *from = lines + x * F5X5_OUT * cin + c * CHANNELS;
                float *to = v + x * F5X5_INPUTS;
                cvec d[F5X5_POINTS], out[F5X5_POINTS];
                UNROLL
                for (int j = 0; j < F5X5_POINTS; j++)
                    d[j] = *(const cvec_u *)(from + j * cin);
                channel_input(d, out);
                UNROLL
                for (int j = 0; j < F5X5_POINTS; j++)
                    *(cvec_u *)(to + j * CHANNELS) = out[j];
            }
}

void EW_K(f5x5_input)(const struct f5x5 *p, const struct ew_conv_shape *s, const float *x,
                      int64_t images, float *lines, float *v)
{
    const struct ew_conv_axis *h = &s->axis[1];
    const float *zero = lines + F5X5_POINTS * p->line;
    for (int64_t n = 0; n < images; n++)
        for (int64_t ty = 0; ty < p->high; ty++) {
            const float *row[F5X5_POINTS];
            for (int64_t i = 0; i < F5X5_POINTS; i++) {
                const int64_t y = ty * F5X5_OUT + i - h->pad;
                row[i] = y >= 0 && y < h->in ? x + n * p->x_image + y * p->x_row : zero;
            }
            columns(p, row, lines + s->axis[2].pad * p->cin);
            rows(p, lines, v + (n * p->tiles + ty * p->wide) * F5X5_INPUTS);
        }
}

/* ---- Products and outputs ---- */

/* The products of one line of points of some tiles, then the output transform along it.  `u` is
 * [input][point][LANES]; v and `half`, [tile][line of points][F5X5_OUT][LANES], point at the first
 * tile. */
INLINE void product_line(const struct f5x5 *p, const float *u, const float *v, float *half,
                         const int tiles)
{
    vec sum[AT_ONCE][F5X5_POINTS];
    UNROLL
    for (int t = 0; t < tiles; t++)
        UNROLL
    for (int j = 0; j < F5X5_POINTS; j++)
        sum[t][j] = (vec){0};
    for (int64_t c = 0; c < p->cin; c += CHANNELS, v += p->unit * F5X5_INPUTS)
        for (int64_t k = 0; k < min_i64(CHANNELS, p->cin - c); k++, u += F5X5_OUTPUTS)
            UNROLL
    for (int j = 0; j < F5X5_POINTS; j++) {
        const vec w = load(u + j * LANES);
        UNROLL
        for (int t = 0; t < tiles; t++)
            sum[t][j] += w * v[t * F5X5_INPUTS + j * CHANNELS + k];
    }
    UNROLL
    for (int t = 0; t < tiles; t++) {
        vec out[F5X5_OUT];
        line_output(sum[t], out);
        UNROLL
        for (int x = 0; x < F5X5_OUT; x++)
            store(half + t * F5X5_HALF + x * LANES, out[x]);
    }
}

/* The same for all tiles. */
static void product_lines(const struct f5x5 *p, const float *u, const float *v, float *half,
                          int64_t tiles)
{
    int64_t t = 0;
    for (; t + AT_ONCE <= tiles; t += AT_ONCE)
        product_line(p, u, v + t * F5X5_INPUTS, half + t * F5X5_HALF, AT_ONCE);
    for (; t < tiles; t++)
        product_line(p, u, v + t * F5X5_INPUTS, half + t * F5X5_HALF, 1);
}

/* Destination of outputs [o, o + n) of some images: y[at...], with strides in floats between
 * pixels, rows and images. */
struct sink {
    float *y;
    int64_t at, o, n, pixel, row, image;
};

/* Transforms and stores the outputs of a tile.  `plain`: a whole tile, whole vectors, and at most a
 * bias. */
INLINE void put_fixed(const struct ew_conv *c, const struct f5x5 *p, const struct sink *to,
                      int64_t tile, const float *half, const bool plain)
{
    const int64_t wide = c->shape.axis[2].out, high = c->shape.axis[1].out;
    const int64_t y0 = tile % p->tiles / p->wide * F5X5_OUT, x0 = tile % p->wide * F5X5_OUT;
    const vec bias = bias_at(&c->end, to->o, p->cout - to->o);
    int64_t at = to->at + tile / p->tiles * to->image + y0 * to->row + x0 * to->pixel;
    for (int64_t x = 0; x < (plain ? F5X5_OUT : min_i64(F5X5_OUT, wide - x0));
         x++, at += to->pixel) {
        vec m[F5X5_POINTS], out[F5X5_OUT];
        UNROLL
        for (int i = 0; i < F5X5_POINTS; i++)
            m[i] = load(half + (i * F5X5_OUT + x) * LANES);
        line_output(m, out);
        UNROLL
        for (int y = 0; y < F5X5_OUT; y++)
            if (plain)
                store(to->y + at + y * to->row, out[y] + bias);
            else if (y0 + y < high)
                put(&c->end, to->y, at + y * to->row, out[y] + bias, to->n);
    }
}

static void put_tile(const struct ew_conv *c, const struct f5x5 *p, const struct sink *to,
                     int64_t tile, const float *half)
{
    const bool whole = c->shape.axis[1].out % F5X5_OUT == 0 && c->shape.axis[2].out % F5X5_OUT == 0;
    if (whole && to->n >= LANES && !c->end.add && c->end.act == EW_ACT_NONE)
        put_fixed(c, p, to, tile, half, true);
    else
        put_fixed(c, p, to, tile, half, false);
}

/* Parts of a thread's scratch. */
struct buffers {
    float *lines, *v, *half; /* half: outputs transformed along one axis, of all tiles of a unit */
    float *pixels;           /* LANES outputs of an image, before a fused pool */
};

static struct buffers lay_out(const struct f5x5 *p, float *scratch)
{
    struct buffers r = {.lines = scratch};
    r.v = r.lines + f5x5_lines(p);
    r.half = r.v + f5x5_products(p);
    r.pixels = r.half + p->unit * F5X5_HALF;
    return r;
}

/* Stores outputs [o, o + LANES) of `images` images from `first` on. */
static void put_images(const struct ew_conv *c, const struct f5x5 *p, int64_t first, int64_t images,
                       int64_t o, const struct buffers *r)
{
    const int64_t wide = c->shape.axis[2].out, row = wide * p->cout;
    const struct sink y = {.y = c->y,
                           .at = o,
                           .o = o,
                           .n = p->cout - o,
                           .pixel = p->cout,
                           .row = row,
                           .image = c->shape.axis[1].out * row};
    for (int64_t t = 0; t < images * p->tiles; t++)
        put_tile(c, p, &y, first * p->tiles + t, r->half + t * F5X5_HALF);
}

static void pool_images(const struct ew_conv *c, const struct f5x5 *p, int64_t first,
                        int64_t images, int64_t o, const struct buffers *r)
{
    const struct sink pixels = {
        .y = r->pixels, .o = o, .n = LANES, .pixel = LANES, .row = c->shape.axis[2].out * LANES};
    for (int64_t n = 0; n < images; n++) {
        const struct f5x5_part part = {.image = first + n, .output = o, .pixels = r->pixels};
        for (int64_t t = 0; t < p->tiles; t++)
            put_tile(c, p, &pixels, t, r->half + (n * p->tiles + t) * F5X5_HALF);
        EW_K(f5x5_pool)(&c->shape, c->pool, &part);
    }
}

static void run_unit(const struct ew_conv *c, const struct f5x5 *p, int64_t unit,
                     const struct buffers *r)
{
    const int64_t first = unit * p->images, images = min_i64(p->images, c->shape.batch - first);
    const int64_t line = p->cin * F5X5_OUTPUTS;
    EW_K(f5x5_input)(p, &c->shape, c->x + first * p->x_image, images, r->lines, r->v);
    for (int64_t b = 0; b < p->blocks; b++) {
        for (int64_t i = 0; i < F5X5_POINTS; i++)
            product_lines(p, c->w + (b * F5X5_POINTS + i) * line,
                          r->v + i * p->chunks * p->unit * F5X5_INPUTS,
                          r->half + i * F5X5_OUT * LANES, images * p->tiles);
        if (c->pool)
            pool_images(c, p, first, images, b * LANES, r);
        else
            put_images(c, p, first, images, b * LANES, r);
    }
}

int64_t EW_K(winograd_5x5_tiles)(const struct ew_conv_shape *s)
{
    struct f5x5 p;
    EW_K(f5x5_init)(&p, s);
    return p.units;
}

size_t EW_K(winograd_5x5_scratch)(const struct ew_conv_shape *s)
{
    struct f5x5 p;
    EW_K(f5x5_init)(&p, s);
    const int64_t floats =
        f5x5_lines(&p) + f5x5_products(&p) + p.unit * F5X5_HALF + f5x5_pixels(&p);
    return (size_t)floats * sizeof(float);
}

void EW_K(winograd_5x5_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct f5x5 p;
    EW_K(f5x5_init)(&p, &c->shape);
    const struct buffers r = lay_out(&p, scratch);
    clear(r.lines, f5x5_lines(&p)); /* padding */
    for (int64_t i = begin; i < end; i++)
        run_unit(c, &p, i, &r);
}
