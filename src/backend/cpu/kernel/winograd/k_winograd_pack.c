/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolution: choice of the form, cost estimates, packing of weights. */
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/winograd/winograd.h"

/* ---- Choice of the form, and cost estimates ---- */

#define L2_BYTES    768e3 /* smaller weights mostly stay in L2 */
#define CACHE_BYTES 64e6  /* larger weights exceed all caches */

/* Estimated cycles of a product.  Reading weights is not overlapped with it: 32 bytes a cycle from
 * L2, 10 from the last-level cache, 4 from memory.  Measured on a Zen 4; only the ranking of forms
 * matters. */
static double product_cost(double rows, double weights, int packs)
{
    const double bytes = weights * sizeof(float);
    const double a_cycle = bytes < L2_BYTES ? 32 : bytes < CACHE_BYTES ? 10 : 4;
    return rows * weights / A_CYCLE + bytes * packs / a_cycle;
}

static int64_t tiles_of(const struct ew_conv_shape *s, int out)
{
    struct wino_grid g;
    grid_init(&g, s, images_of(s), out);
    return g.tiles;
}

double EW_K(winograd_seen)(const struct ew_conv_shape *s)
{
    int64_t seen = 0;
    for (int tap = 0; tap < time_taps(s); tap++) {
        const struct wino_frames f = frames_in(s, tap, 0);
        for (int64_t t = 0; t < s->axis[0].out; t++)
            seen += frame_at(&f, t * s->batch) >= 0;
    }
    return (double)seen / ((double)time_taps(s) * s->axis[0].out);
}

/* Cycles for each vector of weights and product: transformed into L2, then read. */
#define LATE_CYCLES 10

/* With shape.late_transform: each work tile reads and transforms the filters. */
static double late_cost(const struct ew_conv_shape *s, struct wino_form f, double tiles)
{
    const double weights = (double)cell_channels(s) * s->cout,
                 products = points_of(f) * points_of(f);
    const double blocks = (double)div_up((int64_t)tiles, WINO_LATE_BLOCK);
    return tiles * products * weights * EW_K(winograd_seen)(s) / A_CYCLE +
           product_cost(0, weights * f.taps * f.taps, (int)blocks) +
           blocks * weights / LANES * products * LATE_CYCLES;
}

static double form_cost(const struct ew_conv_shape *s, struct wino_form f, int packs)
{
    const double tiles = (double)tiles_of(s, f.out), products = points_of(f) * points_of(f);
    const double cin = (double)cell_channels(s), seen = cin * EW_K(winograd_seen)(s);
    const double transforms = tiles * products * (seen + s->cout) / A_CYCLE * 3;
    if (s->late_transform)
        return late_cost(s, f, tiles) + transforms;
    return product_cost(tiles * seen / cin, products * cin * s->cout, packs) + transforms;
}

static double cost_once(const struct ew_conv_shape *s, struct wino_form f)
{
    return form_cost(s, f, 1);
}

struct wino_form EW_K(winograd_form)(const struct ew_conv_shape *s)
{
    return wino_pick(s, cost_once);
}

/* Times that weights are moved: in training they are read, packed and read again at each step. */
static int packs_of(bool train)
{
    return train ? 3 : 1;
}

double EW_K(winograd_cycles)(const struct ew_conv_shape *s, bool train)
{
    return form_cost(s, EW_K(winograd_form)(s), packs_of(train));
}

double EW_K(conv_cycles)(const struct ew_conv_shape *s, bool train)
{
    double taps = 1, rows = s->batch;
    for (int i = 0; i < 3; i++) {
        taps *= s->axis[i].taps;
        rows *= s->axis[i].out;
    }
    return product_cost(rows, taps * s->cin * s->cout / s->groups, packs_of(train));
}

bool EW_K(winograd_pays)(const struct ew_conv_shape *s, bool train)
{
    return frame_channels(s) * time_taps(s) >= (has_cells(s) && train ? 12 : 16) && s->cout >= 16 &&
           EW_K(winograd_cycles)(s, train) < EW_K(conv_cycles)(s, train);
}

bool EW_K(winograd_fits)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    bool fits = s->groups == 1 && a[0].dilation == 1 && a[1].dilation == 1 && a[2].dilation == 1;
    fits = fits && a[1].stride == a[2].stride && s->batch > 0 && a[0].out > 0;
    const int taps = cell_taps(s);
    return fits && a[1].taps == a[2].taps &&
           (taps == 3 || taps == 5 || (taps == 4 && has_cells(s)));
}

/* ---- Weights: G g G', packed as [products][block of NR outputs][C][NR] like implicit_gemm.h's
 * ---- */

size_t EW_K(winograd_pack_size)(const struct ew_conv_shape *s)
{
    const struct wino_form f = EW_K(winograd_form)(s);
    const int side = s->late_transform ? f.taps : points_of(f);
    return s->unpacked ? 0 : (size_t)(side * side * wino_product_size(s));
}

/* The transform of one vector of weights. */
struct wino_filter {
    const float *g; /* [taps][taps] vectors, `step` floats apart */
    int64_t step;
    float *out; /* the products, `size` floats apart */
    int64_t size, width;
};

INLINE void filter_points(const struct wino_filter *p, const struct wino_form f)
{
    vec t[WINO_TAPS][WINO_POINTS];
    UNROLL
    for (int i = 0; i < f.taps; i++) {
        vec line[WINO_TAPS];
        UNROLL
        for (int j = 0; j < f.taps; j++)
            line[j] = load(p->g + (f.taps * i + j) * p->step);
        filter_line(line, t[i], f);
    }
    UNROLL
    for (int j = 0; j < points_of(f); j++) {
        vec line[WINO_TAPS], column[WINO_POINTS];
        UNROLL
        for (int i = 0; i < f.taps; i++)
            line[i] = t[i][j];
        filter_line(line, column, f);
        UNROLL
        for (int i = 0; i < points_of(f); i++)
            store_n(p->out + (i * points_of(f) + j) * p->size, column[i], p->width);
    }
}

/* A packing tile is a block of NR outputs. */
int64_t EW_K(winograd_pack_tiles)(const struct ew_conv_shape *s)
{
    return div_up(s->cout, NR);
}

#define FILTER_FLOATS (WINO_TAPS * WINO_TAPS * LANES * LANES)

/* A vector of channels, as a tap in time and channels of it. */
struct tap_part {
    int64_t tap, c, n; /* n: valid channels, at most LANES */
};

static struct tap_part tap_part(const struct ew_conv_shape *s, int64_t c)
{
    const int64_t each = tap_channels(s), at = c % each;
    return (struct tap_part){c / each, at, min_i64(LANES, frame_channels(s) - at)};
}

/* filter_square for strides (cells, see winograd.h). */
static void filter_cells(const struct ew_conv_shape *s, const float *w, int64_t c, int64_t o,
                         float *out)
{
    const int64_t high = s->axis[1].taps, wide = s->axis[2].taps, stride = s->axis[1].stride;
    const int64_t cin = s->cin, taps = cell_taps(s), frame = high * wide * cin;
    const int64_t size = time_taps(s) * frame;
    const struct tap_part part = tap_part(s, c);
    for (int64_t t = 0; t < taps * taps; t++, out += LANES * LANES)
        for (int64_t i = 0; i < part.n; i++) {
            const int64_t pixel = (part.c + i) / cin;
            const int64_t y = t / taps * stride + pixel / stride;
            const int64_t x = t % taps * stride + pixel % stride;
            const float *from =
                w + o * size + part.tap * frame + (y * wide + x) * cin + (part.c + i) % cin;
            const int64_t there = y < high && x < wide ? s->cout - o : 0;
            for (int64_t l = 0; l < LANES; l++)
                out[i * LANES + l] = l < there ? from[l * size] : 0;
        }
}

/* Gathers the filters of LANES input channels from c on and LANES outputs from o on, as
 * [taps][LANES of c][LANES of o], with zero padding. */
static void filter_square(const struct ew_conv_shape *s, const float *w, bool flip, int64_t c,
                          int64_t o, float out[FILTER_FLOATS])
{
    const int64_t cin = s->cin, cout = s->cout, taps = s->axis[1].taps * s->axis[2].taps;
    const int64_t all = time_taps(s) * taps;
    const struct tap_part part = tap_part(s, c);
    for (int64_t t = 0; t < taps; t++, out += LANES * LANES) {
        const int64_t tap = part.tap * taps + t;
        const float *from = w + (o * all + tap) * cin + part.c;
        vec line[LANES];
        if (!flip && part.n == LANES && cout - o >= LANES) { /* a full tile */
            transpose_load(from, all * cin, LANES, LANES, line);
            UNROLL
            for (int i = 0; i < LANES; i++)
                store(out + i * LANES, line[i]);
            continue;
        }
        if (flip) /* outputs are contiguous */
            for (int64_t i = 0; i < part.n; i++)
                line[i] = load_n(w + ((part.c + i) * all + all - 1 - tap) * cout + o, cout - o);
        else
            transpose_load(from, all * cin, cout - o, part.n, line);
        for (int64_t i = 0; i < part.n; i++)
            store(out + i * LANES, line[i]);
    }
}

/* Clears the channels that pad a tap in time to whole vectors. */
static void clear_channels(const struct ew_conv_shape *s, int64_t c, const struct wino_some *a,
                           int64_t o, int64_t products)
{
    const struct tap_part part = tap_part(s, c);
    for (int64_t i = part.n; i < min_i64(LANES, a->c_end - c); i++)
        for (int64_t p = 0; p < products; p++)
            store_n(a->out + p * a->size + (c - a->c + i) * a->width + o, (vec){0}, a->width - o);
}

void EW_K(winograd_transform)(const struct ew_conv_shape *s, const struct wino_some *a)
{
    const struct wino_form f = EW_K(winograd_form)(s);
    const int64_t taps = f.taps * f.taps, all = taps * time_taps(s);
    for (int64_t o = 0; o < a->width; o += LANES)
        for (int64_t c = a->c; c < a->c_end; c += LANES) {
            float g[FILTER_FLOATS];
            const struct tap_part part = tap_part(s, c);
            const bool there = a->flip && s->cout - a->o - o >= LANES; /* no transpose */
            if (has_cells(s))
                filter_cells(s, a->w, c, a->o + o, g);
            else if (!there)
                filter_square(s, a->w, a->flip, c, a->o + o, g);
            const float *last =
                a->w + ((part.c + 1) * all - part.tap * taps - 1) * s->cout + a->o + o;
            for (int64_t i = 0; i < min_i64(part.n, a->c_end - c); i++) {
                const struct wino_filter p = {.g = there ? last + i * all * s->cout : g + i * LANES,
                                              .step = there ? -s->cout : LANES * LANES,
                                              .out = a->out + (c - a->c + i) * a->width + o,
                                              .size = a->size,
                                              .width = a->width - o};
                WINO_EACH(f, filter_points, &p);
            }
            clear_channels(s, c, a, o, points_of(f) * points_of(f));
        }
}

/* ---- shape.late_transform: as [block of NR outputs][C][taps][NR] ---- */

static void pack_late(const struct ew_conv_shape *s, const float *w, bool flip, int64_t o,
                      int64_t width, float *packed)
{
    const int64_t taps = s->axis[1].taps * s->axis[2].taps, cin = cell_channels(s);
    for (int64_t b = 0; b < width; b += LANES)
        for (int64_t c = 0; c < cin; c += LANES) {
            float g[FILTER_FLOATS] = {0};
            filter_square(s, w, flip, c, o + b, g);
            for (int64_t i = 0; i < min_i64(LANES, cin - c); i++)
                for (int64_t t = 0; t < taps; t++)
                    store_n(packed + ((c + i) * taps + t) * width + b,
                            load(g + (t * LANES + i) * LANES), width - b);
        }
}

void EW_K(winograd_transform_packed)(const struct ew_conv_shape *s, const struct wino_some *a)
{
    const struct wino_form f = EW_K(winograd_form)(s);
    const int64_t taps = f.taps * f.taps;
    const float *filters = a->w + a->o * cell_channels(s) * taps;
    for (int64_t c = a->c; c < a->c_end; c++)
        for (int64_t o = 0; o < a->width; o += LANES) {
            float part[WINO_TAPS * WINO_TAPS * LANES]; /* for fewer outputs than LANES */
            const float *g = filters + c * taps * a->width + o;
            const bool whole = a->width - o >= LANES;
            for (int64_t t = 0; t < taps && !whole; t++)
                store(part + t * LANES, load_n(g + t * a->width, a->width - o));
            const struct wino_filter p = {.g = whole ? g : part,
                                          .step = whole ? a->width : LANES,
                                          .out = a->out + (c - a->c) * a->width + o,
                                          .size = a->size,
                                          .width = a->width - o};
            WINO_EACH(f, filter_points, &p);
        }
}

void EW_K(winograd_pack)(const struct ew_conv_shape *s, const float *w, bool flip, float *packed,
                         int64_t begin, int64_t end)
{
    const int64_t whole = packed_width(s->cout), last = min_i64(end * NR, whole);
    const int64_t cin = cell_channels(s), taps = s->axis[1].taps * s->axis[2].taps;
    for (int64_t o = begin * NR; o < last; o += NR) {
        if (s->late_transform) {
            pack_late(s, w, flip, o, min_i64(NR, whole - o), packed + o * cin * taps);
            continue;
        }
        const struct wino_some all = {.w = w,
                                      .flip = flip,
                                      .c_end = cin,
                                      .o = o,
                                      .width = min_i64(NR, whole - o),
                                      .out = packed + o * cin,
                                      .size = wino_product_size(s)};
        EW_K(winograd_transform)(s, &all);
    }
}
