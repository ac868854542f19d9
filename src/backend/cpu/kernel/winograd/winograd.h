/* SPDX-License-Identifier: Apache-2.0 */
/* One-dimensional transforms of Winograd convolution F(m, r), m outputs of a filter of r taps
 * (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015).  Two dimensions are
 * nested: F(m x m, r x r) applies them along columns, then rows.
 *
 * Interpolation points (m + r - 1 of them): 0, 1, -1 and infinity for F(2, 3); also 2 and -2 for
 * F(4, 3) and F(2, 5), which therefore share the input transform; also 1/2 for F(4, 4), and -1/2
 * for F(4, 5).  Large coefficients cost some precision; tests/backend/test_kernel_conv.c states and
 * checks the bound. */
#ifndef EW_BACKEND_CPU_KERNEL_WINOGRAD_WINOGRAD_H
#define EW_BACKEND_CPU_KERNEL_WINOGRAD_WINOGRAD_H

#include "backend/cpu/kernel/gemm/micro.h"

#define WINO_POINTS 8 /* most points of a line */
#define WINO_TAPS   5
#define WINO_OUT    4

/* For estimates: FMAs a cycle, two vectors with AVX2, one with AVX-512 or NEON. */
#if defined(EW_ISA_IS_avx2)
#define A_CYCLE (2.0 * LANES)
#else
#define A_CYCLE (1.0 * LANES)
#endif

struct wino_form {
    int out, taps; /* of a line */
};

INLINE int points_of(const struct wino_form f)
{
    return f.out + f.taps - 1;
}

/* ---- Image tiles ----
 *
 * An image of 13x13 pixels fills only two thirds of its 16 tiles of 4x4 outputs.  So images are
 * placed side by side in a mosaic, `pitch` apart, so that the gap serves as padding for both
 * neighbours.  A tile may cover several images; outputs in the gaps are discarded. */

struct wino_grid {
    int64_t across, down;     /* images in a mosaic */
    int64_t pitch_y, pitch_x; /* pixels between images */
    int64_t high, wide;       /* tiles in a mosaic */
    int64_t tiles;            /* tiles in all mosaics */
};

/* The distance at which outputs do not overlap and no filter reads two images; 0: none, because the
 * image is cropped or read with a stride. */
INLINE int64_t grid_pitch(const struct ew_conv_axis *a)
{
    const int64_t behind = a->out + a->taps - 1 - a->pad - a->in;
    if (a->pad < 0 || behind < 0 || a->stride != 1)
        return 0;
    return max_i64(a->in + max_i64(a->pad, behind), a->out);
}

/* The grid with the fewest tiles for `count` images, with tiles of out x out outputs. */
INLINE void grid_init(struct wino_grid *g, const struct ew_conv_shape *s, int64_t count, int out)
{
    static const int64_t sizes[][2] = {{1, 1}, {1, 2}, {2, 2}, {2, 4}, {4, 4}};
    const struct ew_conv_axis *y = &s->axis[1], *x = &s->axis[2];
    const int64_t pitch_y = grid_pitch(y), pitch_x = grid_pitch(x);
    *g = (struct wino_grid){0};
    for (int i = 0; i < 5; i++) {
        const int64_t down = sizes[i][0], across = sizes[i][1], images = down * across;
        const int64_t high = div_up((down - 1) * pitch_y + y->out, out);
        const int64_t wide = div_up((across - 1) * pitch_x + x->out, out);
        const int64_t tiles = div_up(count, images) * high * wide;
        if (i > 0 && (pitch_y == 0 || pitch_x == 0 || images > count || tiles >= g->tiles))
            continue;
        *g = (struct wino_grid){across, down, pitch_y, pitch_x, high, wide, tiles};
    }
}

/* ---- 3-D filters: taps in time ----
 *
 * A filter with several taps in time is a sum of 2-D filters, one for each tap, on different
 * frames.  An image here is a frame of outputs, and the frames that it reads are its channels, tap
 * by tap, each padded to whole vectors.  Images are numbered time first ([T][N]), so that
 * neighbours have padding at the same taps, which are then neither transformed nor multiplied. */

INLINE int time_taps(const struct ew_conv_shape *s)
{
    return s->axis[0].taps;
}

INLINE int64_t images_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->batch * s->axis[0].out;
}

/* Image i is frame (first + i / batch) * stride + shift of clip i % batch. */
struct wino_frames {
    int64_t batch, frames; /* clips, and frames of each */
    int64_t first, stride, shift;
};

/* The input frames of tap `tap`, and the output frames, from output `first` on. */
INLINE struct wino_frames frames_in(const struct ew_conv_shape *s, int tap, int64_t first)
{
    const struct ew_conv_axis *t = &s->axis[0];
    return (struct wino_frames){s->batch, t->in, first, t->stride, tap - t->pad};
}

INLINE struct wino_frames frames_out(const struct ew_conv_shape *s, int64_t first)
{
    return (struct wino_frames){s->batch, s->axis[0].out, first, 1, 0};
}

/* Index of image i in memory; -1: padding. */
INLINE int64_t frame_at(const struct wino_frames *f, int64_t i)
{
    if (f->frames == 1 && f->first == 0 && f->shift == 0 && i < f->batch)
        return i;
    const int64_t t = (f->first + i / f->batch) * f->stride + f->shift;
    return t >= 0 && t < f->frames ? i % f->batch * f->frames + t : -1;
}

/* How grid_find reads images: it gives the offsets of side x side pixels, beginning pad_y, pad_x
 * before a tile's first output; -1 outside of all images. */
struct wino_view {
    int64_t images, high, wide, step; /* step: pixel stride in floats */
    int64_t pad_y, pad_x;
    int64_t part; /* floats of a pixel that grid_fetch prefetches; 0: all */
    struct wino_frames frames;
};

/* The view of a tap's input frames, and of the output frames. */
INLINE struct wino_view view_in(const struct ew_conv_shape *s, int tap, int64_t first,
                                int64_t images)
{
    return (struct wino_view){.images = images,
                              .high = s->axis[1].in,
                              .wide = s->axis[2].in,
                              .step = x_step_of(s),
                              .pad_y = s->axis[1].pad,
                              .pad_x = s->axis[2].pad,
                              .part = s->cin,
                              .frames = frames_in(s, tap, first)};
}

INLINE struct wino_view view_out(const struct ew_conv_shape *s, int64_t first, int64_t images,
                                 int64_t part)
{
    return (struct wino_view){.images = images,
                              .high = s->axis[1].out,
                              .wide = s->axis[2].out,
                              .step = y_step_of(s),
                              .part = part,
                              .frames = frames_out(s, first)};
}

/* Along one axis: the image in the mosaic, and the pixel in it; -1: none. */
INLINE void grid_axis(int64_t at, int64_t images, int64_t pitch, int64_t size, int64_t to[2])
{
    const int64_t image = images == 1 || at < 0 ? 0 : at / pitch, pixel = at - image * pitch;
    to[0] = image;
    to[1] = image < images && pixel >= 0 && pixel < size ? pixel : -1;
}

INLINE void grid_find(const struct wino_grid *g, const struct wino_view *v, int64_t tile,
                      const struct wino_form f, int side, int64_t *at)
{
    const int64_t first = tile / g->wide / g->high * g->across * g->down;
    const int64_t y0 = tile / g->wide % g->high * f.out - v->pad_y;
    const int64_t x0 = tile % g->wide * f.out - v->pad_x;
    int64_t column[WINO_POINTS][2];
    for (int x = 0; x < side; x++)
        grid_axis(x0 + x, g->across, g->pitch_x, v->wide, column[x]);
    for (int y = 0; y < side; y++) {
        int64_t row[2];
        grid_axis(y0 + y, g->down, g->pitch_y, v->high, row);
        for (int x = 0; x < side; x++) {
            const int64_t image = first + row[0] * g->across + column[x][0];
            const bool inside = row[1] >= 0 && column[x][1] >= 0 && image < v->images;
            const int64_t n = inside ? frame_at(&v->frames, image) : -1;
            at[y * side + x] =
                n >= 0 ? ((n * v->high + row[1]) * v->wide + column[x][1]) * v->step : -1;
        }
    }
}

#define NEAR_FLOATS (1 << 20) /* smaller images are in the caches anyway: 4 MiB */

/* Prefetches the pixels that grid_find returns: rows of a tile are too short for hardware
 * prefetchers. */
INLINE void grid_fetch(const struct wino_grid *g, const struct wino_view *v, const float *images,
                       int64_t tile, const struct wino_form f, int side)
{
    int64_t at[WINO_POINTS * WINO_POINTS];
    if (tile >= g->tiles || v->images * v->high * v->wide * v->step < NEAR_FLOATS)
        return;
    const int64_t part = v->part ? v->part : v->step;
    grid_find(g, v, tile, f, side, at);
    for (int i = 0; i < side * side; i++)
        for (int64_t c = 0; at[i] >= 0 && c < part; c += LINE)
            __builtin_prefetch(images + at[i] + c, 0, 2);
}

/* ---- Strides: cells ----
 *
 * A convolution with stride s is one with stride 1 over cells of s x s pixels (space to depth), the
 * first of which begins with the padding.  A cell's pixels, row by row, are its channels.  A filter
 * of 11 taps with stride 4 has 3 cells, padded with zeros; one of 7 taps with stride 2 has 4.  With
 * stride 1 a pixel is a cell. */

INLINE bool has_cells(const struct ew_conv_shape *s)
{
    return s->axis[1].stride > 1;
}

/* Channels of a cell in one frame; padded, of one tap in time; of all taps in time. */
INLINE int64_t frame_channels(const struct ew_conv_shape *s)
{
    return (int64_t)s->cin * s->axis[1].stride * s->axis[2].stride;
}

INLINE int64_t tap_channels(const struct ew_conv_shape *s)
{
    const int64_t channels = frame_channels(s);
    return time_taps(s) == 1 ? channels : div_up(channels, LANES) * LANES;
}

INLINE int64_t cell_channels(const struct ew_conv_shape *s)
{
    return time_taps(s) * tap_channels(s);
}

INLINE int cell_taps(const struct ew_conv_shape *s)
{
    return (int)div_up(s->axis[1].taps, s->axis[1].stride);
}

INLINE void copy_floats(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        store_n(to + i, load_n(from + i, n - i), n - i);
}

/* Copies a row of a cell, the pixels from x on of an image line (NULL: padding). */
INLINE void cell_row(const struct ew_conv_shape *s, const float *line, int64_t x, float *to)
{
    const int64_t stride = s->axis[2].stride, cin = s->cin;
    const int64_t first = max_i64(x, 0), last = min_i64(x + stride, s->axis[2].in);
    clear(to, stride * cin);
    if (line && first < last)
        copy_floats(to + (first - x) * cin, line + first * cin, (last - first) * cin);
}

/* Copies a row of `count` cells, `step` floats apart, all inside the image. */
INLINE void cell_rows(const float *from, int64_t n, float *to, int64_t step, int count)
{
    if (n <= LANES)
        for (int i = 0; i < count; i++)
            store_n(to + i * step, load_n(from + i * n, n), n);
    else
        for (int i = 0; i < count; i++)
            copy_floats(to + i * step, from + i * n, n);
}

/* The images that cells are taken from. */
struct wino_cells {
    const float *x;
    struct wino_frames frames;
};

/* Position of a tile of cells in its image. */
struct cell_place {
    const float *image; /* NULL: padding */
    int64_t y, x, side; /* in pixels, may be outside */
};

INLINE struct cell_place cell_find(const struct wino_grid *g, const struct ew_conv_shape *s,
                                   const struct wino_cells *c, int64_t tile,
                                   const struct wino_form f)
{
    const struct ew_conv_axis *ay = &s->axis[1], *ax = &s->axis[2];
    const int64_t image = frame_at(&c->frames, tile / g->wide / g->high);
    return (struct cell_place){image < 0 ? NULL : c->x + image * ay->in * ax->in * s->cin,
                               tile / g->wide % g->high * f.out * ay->stride - ay->pad,
                               tile % g->wide * f.out * ax->stride - ax->pad,
                               points_of(f) * ay->stride};
}

/* Prefetches what cell_tile reads. */
INLINE void cell_fetch(const struct wino_grid *g, const struct ew_conv_shape *s,
                       const struct wino_cells *c, int64_t tile, const struct wino_form f)
{
    const struct cell_place p = cell_find(g, s, c, tile, f);
    const int64_t high = s->axis[1].in, wide = s->axis[2].in;
    const int64_t first = max_i64(p.x, 0) * s->cin, last = min_i64(p.x + p.side, wide) * s->cin;
    if (tile >= g->tiles || !p.image || s->batch * high * wide * s->cin < NEAR_FLOATS)
        return;
    for (int64_t y = max_i64(p.y, 0); y < min_i64(p.y + p.side, high); y++)
        for (int64_t i = first; i < last; i += LINE)
            __builtin_prefetch(p.image + y * wide * s->cin + i, 0, 2);
}

/* Gathers the cells that a tile reads, [points][points][frame_channels].  Mosaics have one
 * image. */
INLINE void cell_tile(const struct wino_grid *g, const struct ew_conv_shape *s,
                      const struct wino_cells *c, int64_t tile, const struct wino_form f, float *to)
{
    const struct cell_place p = cell_find(g, s, c, tile, f);
    const int64_t high = s->axis[1].in, wide = s->axis[2].in, stride = s->axis[2].stride;
    const int64_t channels = frame_channels(s), part = stride * s->cin, points = p.side / stride;
    const bool whole = p.x >= 0 && p.x + p.side <= wide;
    for (int64_t i = 0; i < p.side; i++) {
        const int64_t y = p.y + i;
        const bool there = p.image && y >= 0 && y < high;
        const float *line = there ? p.image + y * wide * s->cin : NULL;
        float *row = to + i / stride * points * channels + i % stride * part;
        if (line && whole)
            cell_rows(line + p.x * s->cin, part, row, channels, (int)points);
        else
            for (int64_t j = 0; j < points; j++)
                cell_row(s, line, p.x + j * stride, row + j * channels);
    }
}

/* ---- Filters: G g ---- */

/* g at 0, 1, -1 and infinity. */
INLINE void filter_4(const vec g[3], vec out[4])
{
    const vec even = (g[0] + g[2]) * 0.5f, odd = g[1] * 0.5f;
    out[0] = g[0];
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = g[2];
}

/* Also at 2 and -2; even and odd powers are shared. */
INLINE void filter_6(const vec *g, vec out[6], const int taps)
{
    vec even = g[0] + g[2], far = g[0] * (1.0f / 24.0f) + g[2] * (1.0f / 6.0f);
    vec odd = g[1], far_odd = g[1] * (1.0f / 12.0f);
    if (taps == 5) {
        even += g[4];
        far += g[4] * (2.0f / 3.0f);
        odd += g[3];
        far_odd += g[3] * (1.0f / 3.0f);
    }
    out[0] = g[0] * 0.25f;
    out[1] = (even + odd) * (-1.0f / 6.0f);
    out[2] = (even - odd) * (-1.0f / 6.0f);
    out[3] = far + far_odd;
    out[4] = far - far_odd;
    out[5] = g[taps - 1];
}

/* Also at 1/2; four taps. */
INLINE void filter_7(const vec g[4], vec out[7])
{
    const vec even = g[0] + g[2], odd = g[1] + g[3];
    const vec far = g[0] + 4.0f * g[2], far_odd = 2.0f * g[1] + 8.0f * g[3];
    out[0] = g[0] * -0.5f;
    out[1] = (even + odd) * (-1.0f / 3.0f);
    out[2] = (even - odd) * (1.0f / 9.0f);
    out[3] = (far + far_odd) * (1.0f / 36.0f);
    out[4] = (far - far_odd) * (-1.0f / 60.0f);
    out[5] = (8.0f * g[0] + 4.0f * g[1] + 2.0f * g[2] + g[3]) * (4.0f / 45.0f);
    out[6] = g[3];
}

/* Also at 1/2 and -1/2; five taps. */
INLINE void filter_8(const vec g[5], vec out[8])
{
    const vec even = (g[0] + g[2] + g[4]) * (-2.0f / 9.0f), odd = (g[1] + g[3]) * (-2.0f / 9.0f);
    const vec far = (g[0] + 4.0f * g[2] + 16.0f * g[4]) * (1.0f / 90.0f);
    const vec far_odd = (g[1] + 4.0f * g[3]) * (1.0f / 45.0f);
    const vec near = (16.0f * g[0] + 4.0f * g[2] + g[4]) * (2.0f / 45.0f);
    const vec near_odd = (4.0f * g[1] + g[3]) * (4.0f / 45.0f);
    out[0] = g[0];
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = far + far_odd;
    out[4] = far - far_odd;
    out[5] = near + near_odd;
    out[6] = near - near_odd;
    out[7] = g[4];
}

INLINE void filter_line(const vec *g, vec *out, const struct wino_form f)
{
    if (points_of(f) == 4)
        filter_4(g, out);
    else if (points_of(f) == 7)
        filter_7(g, out);
    else if (points_of(f) == 8)
        filter_8(g, out);
    else
        filter_6(g, out, f.taps);
}

/* ---- Inputs: B' d ---- */

INLINE void input_4(const vec d[4], vec out[4])
{
    out[0] = d[0] - d[2];
    out[1] = d[1] + d[2];
    out[2] = d[2] - d[1];
    out[3] = d[1] - d[3];
}

INLINE void input_6(const vec d[6], vec out[6])
{
    const vec a = d[4] - 4.0f * d[2], b = d[3] - 4.0f * d[1];
    const vec e = d[4] - d[2], f = 2.0f * (d[3] - d[1]);
    out[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
    out[1] = a + b;
    out[2] = a - b;
    out[3] = e + f;
    out[4] = e - f;
    out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

/* One more point is one more factor of the polynomials, here t - 1/2. */
INLINE void input_7(const vec d[7], vec out[7])
{
    vec e[6];
    UNROLL
    for (int i = 0; i < 6; i++)
        e[i] = d[i + 1] - 0.5f * d[i];
    input_6(e, out);
    out[6] = out[5];
    out[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

INLINE void input_8(const vec d[8], vec out[8])
{
    const vec even = d[2] + d[6] - 4.25f * d[4], odd = d[1] + d[5] - 4.25f * d[3];
    const vec far = d[6] + 0.25f * d[2] - 1.25f * d[4];
    const vec far_odd = 0.5f * d[1] - 2.5f * d[3] + 2.0f * d[5];
    const vec near = d[6] + 4.0f * d[2] - 5.0f * d[4];
    const vec near_odd = 2.0f * d[1] - 2.5f * d[3] + 0.5f * d[5];
    out[0] = d[0] - d[6] + 5.25f * (d[4] - d[2]);
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = far + far_odd;
    out[4] = far - far_odd;
    out[5] = near + near_odd;
    out[6] = near - near_odd;
    out[7] = d[7] - d[1] + 5.25f * (d[3] - d[5]);
}

INLINE void input_line(const vec *d, vec *out, const struct wino_form f)
{
    if (points_of(f) == 4)
        input_4(d, out);
    else if (points_of(f) == 7)
        input_7(d, out);
    else if (points_of(f) == 8)
        input_8(d, out);
    else
        input_6(d, out);
}

/* The first half of the input transform, along the columns of a tile: n channels from c on of the
 * pixels at `pixel`. */
INLINE void input_columns(const float *const *pixel, int64_t c, int64_t n, const struct wino_form f,
                          vec t[WINO_POINTS][WINO_POINTS])
{
    const int points = points_of(f);
    UNROLL
    for (int x = 0; x < points; x++) {
        vec d[WINO_POINTS], column[WINO_POINTS];
        UNROLL
        for (int y = 0; y < points; y++)
            d[y] = load_n(pixel[y * points + x] + c, n);
        input_line(d, column, f);
        UNROLL
        for (int y = 0; y < points; y++)
            t[y][x] = column[y];
    }
}

/* ---- Outputs: A' m ---- */

INLINE void output_line(const vec *m, vec *out, const struct wino_form f)
{
    const vec s = m[1] + m[2], d = m[1] - m[2];
    if (points_of(f) == 4) {
        out[0] = m[0] + s;
        out[1] = d - m[3];
        return;
    }
    const vec t = m[3] + m[4], e = m[3] - m[4];
    if (points_of(f) == 7) {
        out[0] = m[0] + s + t + m[5];
        out[1] = d + 2.0f * e + 0.5f * m[5];
        out[2] = s + 4.0f * t + 0.25f * m[5];
        out[3] = d + 8.0f * e + 0.125f * m[5] + m[6];
        return;
    }
    if (points_of(f) == 8) {
        const vec n = m[5] + m[6], o = m[5] - m[6];
        out[0] = m[0] + s + t + n;
        out[1] = d + 2.0f * e + 0.5f * o;
        out[2] = s + 4.0f * t + 0.25f * n;
        out[3] = d + 8.0f * e + 0.125f * o + m[7];
        return;
    }
    out[0] = m[0] + s + t;
    if (f.out == 2) {
        out[1] = d + 2.0f * e + m[5];
        return;
    }
    out[1] = d + 2.0f * e;
    out[2] = s + 4.0f * t;
    out[3] = d + 8.0f * e + m[5];
}

/* ---- The forms ---- */

/* Calls `each`, an INLINE function, with the form f as a constant last argument. */
#define WINO_EACH(f, each, ...)                                                                    \
    do {                                                                                           \
        if ((f).taps == 4)                                                                         \
            each(__VA_ARGS__, (struct wino_form){4, 4});                                           \
        else if ((f).taps == 5 && (f).out == 4)                                                    \
            each(__VA_ARGS__, (struct wino_form){4, 5});                                           \
        else if ((f).taps == 5)                                                                    \
            each(__VA_ARGS__, (struct wino_form){2, 5});                                           \
        else if ((f).out == 4)                                                                     \
            each(__VA_ARGS__, (struct wino_form){4, 3});                                           \
        else                                                                                       \
            each(__VA_ARGS__, (struct wino_form){2, 3});                                           \
    } while (0)

/* The cheaper of the two forms for a filter, by `cost`; for four taps there is only one. */
INLINE struct wino_form wino_pick(const struct ew_conv_shape *s,
                                  double (*cost)(const struct ew_conv_shape *, struct wino_form))
{
    const int taps = cell_taps(s);
    const struct wino_form large = {4, taps}, small = {2, taps};
    return taps != 4 && cost(s, small) < cost(s, large) ? small : large;
}

/* ---- Weights: G g G' ---- */

/* The form for a forward convolution or dgrad. */
struct wino_form EW_K(winograd_form)(const struct ew_conv_shape *s);

/* The share of taps in time that read a frame, not padding, over all outputs. */
double EW_K(winograd_seen)(const struct ew_conv_shape *s);

/* Floats between the packed weights of two products. */
INLINE int64_t wino_product_size(const struct ew_conv_shape *s)
{
    return cell_channels(s) * packed_width(s->cout);
}

/* Filters to transform: channels [c, c_end) of cell_channels and `width` <= NR outputs from o on,
 * into [products][channels][width]; `flip` as in winograd_pack. */
struct wino_some {
    const float *w;
    bool flip;
    int64_t c, c_end, o, width;
    float *out;
    int64_t size; /* floats between products */
};

void EW_K(winograd_transform)(const struct ew_conv_shape *s, const struct wino_some *a);
/* The same for filters packed with shape.late_transform. */
void EW_K(winograd_transform_packed)(const struct ew_conv_shape *s, const struct wino_some *a);

/* Image tiles of a work tile that transforms filters. */
#define WINO_LATE_BLOCK (div_up(42, MR) * MR)

/* True if work tiles transform filters. */
INLINE bool transforms_filters(const struct ew_conv_shape *s)
{
    return s->unpacked || s->late_transform;
}

#endif
