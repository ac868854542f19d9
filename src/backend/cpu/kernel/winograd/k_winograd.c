/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolution, F(m x m, r x r): with F(4x4, 3x3), 36 multiplications for 16 outputs
 * instead of 144.  winograd.h has the transforms, k_winograd_pack.c the weights.
 *
 *   input 6x6 --B'dB--> 36 x [tiles][C]  --36 matrix products--> 36 x [tiles][O] --A'mA--> 4x4
 *
 * There are five forms: F(4x4, 3x3); F(2x2, 3x3), 16 multiplications for 4 outputs, for images so
 * small that reading four times the weights takes longer than it saves; F(4x4, 5x5), 64 for 16
 * outputs instead of 400; F(2x2, 5x5), 36 for 4 outputs; F(4x4, 4x4), 49 for 16 outputs, for 7x7
 * filters with stride 2, where strides become channels (winograd.h).
 *
 * Each point of the transformed tile is one GEMM over channels, called a product here.  A work tile
 * is BLOCK image tiles.  Their transformed inputs V are panels of the micro-kernel, with as many
 * products side by side in a row as fit into KC columns; results M are kept for SLICE outputs at a
 * time.  With 64 channels V and M are 260 KiB each and stay in L2; the weights of a product are
 * streamed once for each BLOCK.
 *
 * In training, weights change at each step, and transforming all of them takes as long as the
 * products of a few images: 36 lines are written for 9 that are read.  If there are few image tiles
 * (shape.unpacked), a work tile transforms the filters of NR outputs itself, LATE_CHANNELS at a
 * time, and multiplies by them at once.  In inference that saves memory (shape.late_transform):
 * filters are packed untransformed, 9 floats instead of 36, in the order in which work tiles read
 * them. */
#include <math.h>

#include "backend/cpu/kernel/common/act.h"
#include "backend/cpu/kernel/common/fetch.h"
#include "backend/cpu/kernel/common/formed.h"
#include "backend/cpu/kernel/winograd/winograd.h"

#define PRODUCTS (WINO_POINTS * WINO_POINTS) /* at most */
#define PANELS   (28 / MR)                   /* panels of image tiles in a work tile */
#define BLOCK    (PANELS * MR)
#define SLICE    (2 * NR)
#define MIN_WORK 8 /* smallest number of work tiles for which outputs are not split */

/* Channels whose filters are transformed at a time. */
#define LATE_CHANNELS 64
/* Floats of a product; padded, so that products do not share cache sets. */
#define LATE_STEP (LATE_CHANNELS * NR + 5 * LINE)
/* Filters are unpacked if V takes at most UNPACKED_BYTES, or packed ones more than PACKED_BYTES. */
#define UNPACKED_BYTES (400 << 10)
#define PACKED_BYTES   ((size_t)64 << 20)

struct wino {
    struct wino_form form;
    int64_t products;
    int64_t cin, cout;
    struct wino_grid grid;
    int64_t blocks, block; /* work tiles along the tiles, and their size */
    int64_t splits, split; /* work tiles along the outputs, and their size */
    int64_t column;        /* columns of a panel for one product */
    int64_t side;          /* products side by side in a panel */
    int64_t chunks;        /* panels of KC columns for one product */
    int64_t slice;         /* outputs whose products are kept in m */
    int64_t m_step;        /* floats between products in m */
};

static void init(struct wino *w, const struct ew_conv_shape *s)
{
    w->form = EW_K(winograd_form)(s);
    w->products = points_of(w->form) * points_of(w->form);
    w->cin = cell_channels(s);
    w->cout = s->cout;
    grid_init(&w->grid, s, images_of(s), w->form.out);
    const bool late = transforms_filters(s);
    w->blocks = div_up(w->grid.tiles, late ? WINO_LATE_BLOCK : BLOCK);
    w->block = w->blocks ? div_up(w->grid.tiles, w->blocks) : 0;
    w->slice = late ? NR : SLICE;
    w->m_step = late ? WINO_LATE_BLOCK * NR : BLOCK * SLICE;
    /* Few tiles: divide the outputs too, although each part transforms the input again. */
    w->splits = w->blocks >= MIN_WORK ? 1 : div_up(MIN_WORK, max_i64(w->blocks, 1));
    w->split = late ? NR : div_up(div_up(w->cout, w->splits), SLICE) * SLICE;
    w->splits = div_up(w->cout, w->split);
    w->column = min_i64(div_up(w->cin, LANES) * LANES, KC);
    w->side = KC / w->column;
    w->chunks = div_up(w->cin, KC);
}

/* Unpacked filters are transformed again for each block of tiles, and V must stay in L2. */
bool EW_K(winograd_unpacked)(const struct ew_conv_shape *s)
{
    struct ew_conv_shape unpacked = *s;
    struct wino w;
    unpacked.unpacked = true;
    init(&w, &unpacked);
    const int64_t bytes = w.products * w.block * w.cin * (int64_t)sizeof(float);
    const bool far = EW_K(winograd_pack_size)(s) * sizeof(float) > PACKED_BYTES;
    return !has_cells(s) && w.blocks <= 2 && (bytes <= UNPACKED_BYTES || far);
}

/* ---- Input: B' d B ---- */

#define LIVE ((42 + MR - 1) / MR) /* most panels of a work tile */

/* A range of taps in time, [lo, hi). */
struct taps {
    int lo, hi;
};

struct job {
    const struct ew_conv *conv;
    struct wino w;
    int64_t first, count;    /* image tiles of this work tile */
    int64_t rows;            /* image tiles in a panel */
    int64_t chunk;           /* floats between chunks of KC channels */
    int64_t point[PRODUCTS]; /* offset of a product's panels in v */
    struct taps live[LIVE];  /* by panel */
    float *v, *m, *zero, *cells;
    float *u;                     /* filters transformed here, [products][LATE_STEP] */
    const float *pixel[PRODUCTS]; /* of one tile; outside of the image: zeros */
};

/* The taps in time that read a frame, not padding, for any of `count` image tiles. */
static struct taps live_taps(const struct job *j, int64_t tile, int64_t count)
{
    const struct ew_conv_shape *s = &j->conv->shape;
    const struct ew_conv_axis *t = &s->axis[0];
    const struct wino_grid *g = &j->w.grid;
    const int64_t mosaic = g->across * g->down, tiles = g->high * g->wide;
    const int64_t last = min_i64((tile + count - 1) / tiles * mosaic + mosaic, images_of(s)) - 1;
    const int64_t from = tile / tiles * mosaic / s->batch * t->stride;
    const int64_t to = last / s->batch * t->stride;
    const int64_t lo = max_i64(0, t->pad - to), hi = min_i64(t->taps, t->in + t->pad - from);
    if (lo >= hi) /* none: multiply by zeros */
        return (struct taps){0, t->taps};
    return (struct taps){(int)lo, (int)hi};
}

static void begin_block(struct job *j, int64_t block)
{
    const struct wino *w = &j->w;
    j->first = block * w->block;
    j->count = min_i64(w->block, w->grid.tiles - j->first);
    const int64_t panels = div_up(j->count, MR);
    j->rows = div_up(j->count, panels);
    j->chunk = panels * MR * KS;
    for (int64_t i = 0; i < panels; i++)
        j->live[i] = live_taps(j, j->first + i * j->rows, min_i64(j->rows, j->count - i * j->rows));
    for (int64_t p = 0; p < w->products; p++)
        j->point[p] = w->chunks > 1 ? p * w->chunks * j->chunk
                                    : p / w->side * j->chunk + p % w->side * w->column;
}

/* Offset of a tile's channel c in v, to be added to point[]. */
INLINE int64_t v_at(const struct job *j, int64_t tile, int64_t c)
{
    return c / KC * j->chunk + c % KC + (tile / j->rows * MR + tile % j->rows) * KS;
}

/* Finds a tile's pixels in the frame of a tap, and prefetches those of the next tile. */
static void find_pixels(struct job *j, int64_t tile, int tap)
{
    const struct ew_conv_shape *s = &j->conv->shape;
    if (has_cells(s)) { /* pixel[] points into j->cells already */
        const struct wino_cells cells = {j->conv->x, frames_in(s, tap, 0)};
        cell_fetch(&j->w.grid, s, &cells, tile + 1, j->w.form);
        cell_tile(&j->w.grid, s, &cells, tile, j->w.form, j->cells);
        return;
    }
    const struct wino_view v = view_in(s, tap, 0, images_of(s));
    int64_t at[PRODUCTS];
    grid_fetch(&j->w.grid, &v, j->conv->x, tile + 1, j->w.form, points_of(j->w.form));
    grid_find(&j->w.grid, &v, tile, j->w.form, points_of(j->w.form), at);
    for (int64_t i = 0; i < j->w.products; i++)
        j->pixel[i] = at[i] < 0 ? j->zero : j->conv->x + at[i];
}

/* Transforms n <= LANES channels from c on. */
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
            store(v + j->point[y * points + x], row[x]);
    }
}

/* Transforms a tile; `base`: the tap's first channel in V. */
FORMED void input_tile(const struct job *j, int64_t tile, int64_t base, const struct wino_form f)
{
    const int64_t channels = frame_channels(&j->conv->shape);
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES)
        input_vector(j, j->v + v_at(j, tile, base + c), c, LANES, f);
    if (c < channels)
        input_vector(j, j->v + v_at(j, tile, base + c), c, channels - c, f);
}

static void input_tile_4(const struct job *j, int64_t tile, int64_t base)
{
    input_tile(j, tile, base, (struct wino_form){2, 3});
}

static void input_tile_6(const struct job *j, int64_t tile, int64_t base)
{
    input_tile(j, tile, base, (struct wino_form){4, 3}); /* F(2, 5) has the same input transform */
}

static void input_tile_7(const struct job *j, int64_t tile, int64_t base)
{
    input_tile(j, tile, base, (struct wino_form){4, 4});
}

static void input_tile_8(const struct job *j, int64_t tile, int64_t base)
{
    input_tile(j, tile, base, (struct wino_form){4, 5});
}

static void transform_tile(struct job *j, int64_t tile)
{
    const int points = points_of(j->w.form);
    const struct taps live = j->live[tile / j->rows];
    for (int tap = live.lo; tap < live.hi; tap++) {
        const int64_t base = tap * tap_channels(&j->conv->shape);
        find_pixels(j, j->first + tile, tap);
        if (points == 4)
            input_tile_4(j, tile, base);
        else if (points == 6)
            input_tile_6(j, tile, base);
        else if (points == 7)
            input_tile_7(j, tile, base);
        else
            input_tile_8(j, tile, base);
    }
}

/* The filters of NR outputs from o on, to prefetch; only if shape.unpacked. */
static struct fetch fetch_filters(const struct job *j, int64_t o)
{
    const struct ew_conv_shape *s = &j->conv->shape;
    const int64_t taps = s->axis[1].taps * s->axis[2].taps, n = min_i64(NR, s->cout - o);
    const int64_t filter = time_taps(s) * taps * s->cin;
    if (n <= 0 || !s->unpacked)
        return (struct fetch){0};
    if (j->conv->flip)
        return (struct fetch){j->conv->w + o, s->cout, filter, div_up(n, LINE), 0, 0};
    return (struct fetch){j->conv->w + o * filter, 0, 1, div_up(n * filter, LINE), 0, 0};
}

/* Transforms all tiles, and prefetches filters from output o on. */
static void transform_inputs(struct job *j, int64_t o)
{
    struct fetch next = fetch_filters(j, o);
    const int64_t share = div_up(next.pieces * next.lines, max_i64(j->count, 1));
    for (int64_t tile = 0; tile < j->count; tile++) {
        fetch_some(&next, share);
        transform_tile(j, tile);
    }
}

/* ---- Products ---- */

/* Product p of a panel of image tiles: channels [k, k + KC) without taps that read padding, NR
 * outputs from o on. */
static void multiply_panel(const struct job *j, int64_t p, int64_t k, int64_t tile, int64_t o)
{
    const struct wino *w = &j->w;
    const struct taps live = j->live[tile / j->rows];
    const int64_t tap = tap_channels(&j->conv->shape), lo = live.lo * tap, hi = live.hi * tap;
    const int64_t first = max_i64(k, lo), kc = min_i64(k + KC, hi) - first;
    if (kc <= 0)
        return;
    const int64_t size = wino_product_size(&j->conv->shape);
    const int64_t b = o % SLICE, wide = min_i64(NR, packed_width(w->cout) - o);
    const float *weights = j->conv->w + p * size + o * w->cin + first * wide;
    const bool last = k + KC >= hi;
    /* Prefetch the next weights of these outputs: the first panels take one line for each step of
     * k. */
    const int64_t line = tile / j->rows * kc * LINE;
    const float *prefetch =
        last ? j->conv->w + (p + 1) * size + o * w->cin + lo * wide : weights + kc * wide;
    float *m = j->m + p * w->m_step + tile * SLICE + b;
    int64_t row[MR];
    for (int64_t r = 0; r < MR; r++)
        row[r] = r * SLICE;
    const struct micro micro = {
        .a = j->v + j->point[p] + v_at(j, tile, first),
        .w = weights,
        .prefetch = line < kc * wide && (!last || p + 1 < w->products) ? prefetch + line : NULL,
        .kc = kc,
        .from = first > lo ? m : NULL,
        .c = m,
        .row = row,
        .width = wide,
        .lo = -INFINITY,
        .hi = INFINITY};
    EW_K(micro)(&micro, (int)min_i64(j->rows, j->count - tile));
}

/* All products of outputs [o, o + width): m is [products][BLOCK][SLICE]. */
static void multiply(const struct job *j, int64_t o, int64_t width)
{
    for (int64_t p = 0; p < j->w.products; p++)
        for (int64_t k = 0; k < j->w.cin; k += KC)
            for (int64_t tile = 0; tile < j->count; tile += j->rows)
                for (int64_t b = 0; b < width; b += NR)
                    multiply_panel(j, p, k, tile, o + b);
}

/* All products of the filters in u: kc channels from k on (of one tap) and `width` outputs, for the
 * image tiles in which that tap reads a frame. */
static void multiply_late(const struct job *j, int64_t k, int64_t kc, int64_t width,
                          struct fetch *next)
{
    const int64_t each = tap_channels(&j->conv->shape), tap = k / each;
    const int64_t calls = j->w.products * div_up(j->count, j->rows);
    const int64_t chunks = j->conv->shape.unpacked ? div_up(j->w.cin, kc) : 1;
    const int64_t share = div_up(next->pieces * next->lines, calls * chunks);
    int64_t row[MR];
    for (int64_t r = 0; r < MR; r++)
        row[r] = r * NR;
    for (int64_t p = 0; p < j->w.products; p++)
        for (int64_t tile = 0; tile < j->count; tile += j->rows) {
            const struct taps live = j->live[tile / j->rows];
            float *m = j->m + p * j->w.m_step + tile * NR;
            const struct micro micro = {.a = j->v + j->point[p] + v_at(j, tile, k),
                                        .w = j->u + p * LATE_STEP,
                                        .kc = kc,
                                        .from = k > live.lo * each ? m : NULL,
                                        .c = m,
                                        .row = row,
                                        .width = width,
                                        .lo = -INFINITY,
                                        .hi = INFINITY};
            fetch_some(next, share);
            if (tap >= live.lo && tap < live.hi)
                EW_K(micro)(&micro, (int)min_i64(j->rows, j->count - tile));
        }
}

/* The taps that read a frame for any image tile of the work tile. */
static struct taps any_live(const struct job *j)
{
    struct taps all = j->live[0];
    for (int64_t i = 1; i < div_up(j->count, j->rows); i++) {
        all.lo = j->live[i].lo < all.lo ? j->live[i].lo : all.lo;
        all.hi = j->live[i].hi > all.hi ? j->live[i].hi : all.hi;
    }
    return all;
}

/* NR outputs from o on, with filters transformed here. */
static void run_late(const struct job *j, int64_t o)
{
    const struct ew_conv_shape *s = &j->conv->shape;
    const int64_t width = min_i64(NR, packed_width(s->cout) - o);
    const int64_t each = tap_channels(s), taps = j->w.form.taps * j->w.form.taps;
    const struct taps live = any_live(j);
    struct fetch next = fetch_filters(j, o + NR);
    for (int64_t k = live.lo * each, kc; k < live.hi * each; k += kc) {
        kc = min_i64(min_i64(LATE_CHANNELS, each - k % each), KC - k % KC); /* within one panel */
        const struct wino_some part = {.w = j->conv->w,
                                       .flip = j->conv->flip,
                                       .c = k,
                                       .c_end = k + kc,
                                       .o = o,
                                       .width = width,
                                       .out = j->u,
                                       .size = LATE_STEP};
        if (s->unpacked) {
            EW_K(winograd_transform)(s, &part);
        } else { /* the next filters follow in memory */
            EW_K(winograd_transform_packed)(s, &part);
            next = fetch_lines(j->conv->w + (o * j->w.cin + (k + kc) * width) * taps,
                               LATE_CHANNELS * taps * width);
        }
        multiply_late(j, k, kc, width, &next);
    }
}

/* ---- Output: A' m A, and the epilogue ---- */

INLINE void output_points(const float *m, int64_t step, vec out[WINO_OUT][WINO_OUT],
                          const struct wino_form f)
{
    const int points = points_of(f);
    vec t[WINO_POINTS][WINO_OUT];
    UNROLL
    for (int y = 0; y < points; y++) {
        vec line[WINO_POINTS];
        UNROLL
        for (int x = 0; x < points; x++)
            line[x] = load(m + (y * points + x) * step);
        output_line(line, t[y], f);
    }
    UNROLL
    for (int x = 0; x < f.out; x++) {
        vec line[WINO_POINTS], column[WINO_OUT];
        UNROLL
        for (int y = 0; y < points; y++)
            line[y] = t[y][x];
        output_line(line, column, f);
        UNROLL
        for (int y = 0; y < f.out; y++)
            out[y][x] = column[y];
    }
}

FORMED void output_tile(const struct job *j, int64_t tile, int64_t o, const struct wino_form f)
{
    const struct ew_conv *c = j->conv;
    const struct ew_conv_shape *s = &c->shape;
    const int64_t width = min_i64(j->w.slice, j->w.cout - o);
    const struct wino_view v = view_out(s, 0, images_of(s), width);
    int64_t at[WINO_OUT * WINO_OUT];
    grid_fetch(&j->w.grid, &v, c->y + o, j->first + tile + 1, f, f.out);
    grid_find(&j->w.grid, &v, j->first + tile, f, f.out, at);
    for (int64_t i = 0; i < width; i += LANES) {
        const int64_t part = width - i;
        const vec b = bias_at(&c->end, o + i, part);
        vec out[WINO_OUT][WINO_OUT];
        output_points(j->m + tile * j->w.slice + i, j->w.m_step, out, f);
        for (int y = 0; y < f.out; y++)
            for (int x = 0; x < f.out; x++)
                if (at[y * f.out + x] >= 0)
                    put(&c->end, c->y, at[y * f.out + x] + o + i, out[y][x] + b, part);
    }
}

/* Transforms and stores all tiles' outputs from o on. */
static void transform_outputs(const struct job *j, int64_t o)
{
    for (int64_t tile = 0; tile < j->count; tile++)
        WINO_EACH(j->w.form, output_tile, j, tile, o);
}

/* ---- Work tiles ---- */

int64_t EW_K(winograd_tiles)(const struct ew_conv_shape *s)
{
    struct wino w;
    init(&w, s);
    return w.blocks * w.splits;
}

static int64_t v_size(const struct wino *w)
{
    const int64_t slots = w->chunks > 1 ? w->products * w->chunks : div_up(w->products, w->side);
    return slots * div_up(w->block, MR) * MR * KS;
}

static int64_t u_size(const struct ew_conv_shape *s, const struct wino *w)
{
    return transforms_filters(s) ? w->products * LATE_STEP : 0;
}

size_t EW_K(winograd_scratch)(const struct ew_conv_shape *s)
{
    struct wino w;
    init(&w, s);
    const int64_t zeros = div_up(w.cin, LANES) * LANES;
    const int64_t cells = has_cells(s) ? w.products * frame_channels(s) : 0;
    return (size_t)(v_size(&w) + w.products * w.m_step + zeros + cells + u_size(s, &w)) *
           sizeof(float);
}

void EW_K(winograd_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct job j = {.conv = c, .v = scratch};
    init(&j.w, &c->shape);
    j.m = j.v + v_size(&j.w);
    j.zero = j.m + j.w.products * j.w.m_step;
    clear(j.zero, j.w.cin);
    j.cells = j.u = j.zero + div_up(j.w.cin, LANES) * LANES; /* only one of the two is used */
    for (int64_t p = 0; p < j.w.products; p++)
        j.pixel[p] = j.cells + p * frame_channels(&c->shape);
    int64_t last = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t block = i / j.w.splits, from = i % j.w.splits * j.w.split;
        if (block != last) { /* else V is that of the previous work tile */
            begin_block(&j, block);
            transform_inputs(&j, from);
        }
        last = block;
        for (int64_t o = from; o < min_i64(from + j.w.split, j.w.cout); o += j.w.slice) {
            if (transforms_filters(&c->shape))
                run_late(&j, o);
            else
                multiply(&j, o, min_i64(SLICE, j.w.cout - o));
            transform_outputs(&j, o);
        }
    }
}
