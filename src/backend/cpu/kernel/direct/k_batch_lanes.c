/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution with the batch in the lanes: few output channels, many images.  Also dgrad
 * with stride 1, a convolution of dy with the rotated filter. */
#include "backend/cpu/kernel/direct/batch_lanes.h"

#include "backend/cpu/kernel/common/act.h"

#define OUTPUTS 6 /* outputs at once, times PIXELS: accumulators that fit beside PIXELS inputs */
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define PIXELS 4
#else
#define PIXELS 2
#endif

/* ---- Geometry ---- */

bool EW_K(batch_lanes_init)(struct batch_lanes *f, const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    f->s = s;
    f->columns = max_i64((int64_t)(w->out - 1) * w->stride + w->taps, w->in + w->pad);
    f->line = f->columns * s->cin * LANES;
    f->x_row = (int64_t)w->in * s->cin;
    f->x_image = f->x_row * h->in;
    f->y_row = (int64_t)w->out * s->cout;
    f->y_image = f->y_row * h->out;
    f->groups = div_up(s->batch, LANES);
    /* At least 4 tiles for each group of images, if there are as many rows. */
    for (f->row_tiles = min_i64(h->out, 4);; f->row_tiles = min_i64(h->out, f->row_tiles * 2)) {
        f->rows = div_up(h->out, f->row_tiles);
        f->lines = (f->rows - 1) * h->stride + h->taps;
        if (f->lines * f->line * (int64_t)sizeof(float) <= BATCH_LANES_BUFFER ||
            f->row_tiles == h->out)
            break;
    }
    return f->lines * f->line * (int64_t)sizeof(float) <= BATCH_LANES_BUFFER;
}

struct batch_lanes_tile EW_K(batch_lanes_tile)(const struct batch_lanes *f, int64_t index)
{
    const int64_t tile_row = index % f->row_tiles, rows = f->s->axis[1].out;
    struct batch_lanes_tile t = {.row = rows * tile_row / f->row_tiles,
                                 .image = index / f->row_tiles * LANES};
    t.rows = rows * (tile_row + 1) / f->row_tiles - t.row;
    t.images = min_i64(LANES, f->s->batch - t.image);
    return t;
}

void EW_K(batch_lanes_transpose_line)(const struct batch_lanes *f, const struct batch_lanes_tile *t,
                                      const float *x, int64_t y, float *to)
{
    const int64_t pad = (int64_t)f->s->axis[2].pad * f->s->cin * LANES;
    const int64_t end = pad + f->x_row * LANES;
    clear(to, pad);
    batch_lanes_transpose_in(x + t->image * f->x_image + y * f->x_row, f->x_image, t->images,
                             f->x_row, to + pad);
    clear(to + end, f->line - end);
}

void EW_K(batch_lanes_fill_lines)(const struct batch_lanes *f, const struct batch_lanes_tile *t,
                                  const float *x, float *line_buffer)
{
    const struct ew_conv_axis *h = &f->s->axis[1];
    const int64_t first = t->row * h->stride - h->pad;
    const int64_t last = first + (t->rows - 1) * h->stride + h->taps;
    for (int64_t y = max_i64(first, 0); y < min_i64(last, h->in); y++) /* others are not read */
        EW_K(batch_lanes_transpose_line)(f, t, x, y, line_buffer + (y - first) * f->line);
}

bool EW_K(batch_lanes_is_plain)(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    bool fits = s->groups == 1 && s->cout > 0 && s->batch >= LANES && a[0].in == 1 &&
                a[0].out == 1 && a[0].taps == 1 && a[0].pad == 0;
    for (int i = 1; i < 3; i++)
        fits = fits && a[i].dilation == 1 && a[i].pad >= 0 && a[i].out > 0 && a[i].in > 0 &&
               a[i].taps > 0;
    return fits;
}

bool EW_K(batch_lanes_fits)(const struct ew_conv_shape *s)
{
    struct batch_lanes f;
    return s->cout < LANES && EW_K(batch_lanes_is_plain)(s) && EW_K(batch_lanes_init)(&f, s);
}

bool EW_K(batch_lanes_dgrad_fits)(const struct ew_conv_shape *s)
{
    return s->axis[1].stride == 1 && s->axis[2].stride == 1 && EW_K(batch_lanes_fits)(s);
}

/* ---- Weights: [chunk of OUTPUTS][line][column][input][outputs of the chunk] ---- */

size_t EW_K(batch_lanes_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)s->cout * (size_t)s->cin * (size_t)s->axis[1].taps * (size_t)s->axis[2].taps;
}

/* The weight of tap t, input c and output o is at t * step[0] + c * step[1] + o * step[2]. */
static void pack(const struct ew_conv_shape *s, const float *w, const int64_t step[3],
                 float *packed)
{
    const int64_t taps = (int64_t)s->axis[1].taps * s->axis[2].taps;
    for (int64_t o = 0; o < s->cout; o += OUTPUTS)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t c = 0; c < s->cin; c++)
                for (int64_t i = 0; i < min_i64(OUTPUTS, s->cout - o); i++)
                    *packed++ = w[t * step[0] + c * step[1] + (o + i) * step[2]];
}

void EW_K(batch_lanes_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const int64_t taps = (int64_t)s->axis[1].taps * s->axis[2].taps;
    pack(s, w, (int64_t[]){s->cin, 1, taps * s->cin}, packed);
}

/* s is the shape of dgrad: its inputs are the filter's outputs, and taps are reversed. */
void EW_K(batch_lanes_dgrad_pack)(const struct ew_conv_shape *s, const float *w, float *packed)
{
    const int64_t taps = (int64_t)s->axis[1].taps * s->axis[2].taps;
    pack(s, w + (taps - 1) * s->cout, (int64_t[]){-(int64_t)s->cout, taps * s->cout, 1}, packed);
}

/* ---- Rows ---- */

/* Consecutive pixels of one row of outputs. */
struct run {
    const struct batch_lanes *f;
    const float *line_buffer; /* line of tap 0; lines outside the image are undefined */
    int64_t tap_y, last_y;    /* rows of taps inside the image, [tap_y, last_y) */
    const float *w;           /* of the chunk */
    const float *bias;        /* of the chunk; NULL: none */
    int64_t x;
    float *out; /* [pixel][cout][LANES], of the chunk's first output */
};

INLINE void run_fixed(const struct run *r, const int pixels, const int outputs)
{
    const struct batch_lanes *f = r->f;
    const struct ew_conv_axis *a = &f->s->axis[2];
    const int64_t cin = f->s->cin, first = r->x * a->stride - a->pad;
    /* Taps inside the image for any of the pixels. */
    const int64_t lo = max_i64(-first - (int64_t)(pixels - 1) * a->stride, 0);
    const int64_t hi = min_i64(a->taps, a->in - first);
    const int64_t step = a->stride * cin * LANES;
    vec sum[PIXELS][OUTPUTS];
    UNROLL
    for (int p = 0; p < pixels; p++)
        UNROLL
    for (int o = 0; o < outputs; o++)
        sum[p][o] = r->bias ? splat(r->bias[o]) : (vec){0};
    for (int64_t y = r->tap_y; y < r->last_y; y++) {
        const float *x = r->line_buffer + y * f->line + (r->x * a->stride + lo) * cin * LANES;
        const float *w = r->w + (y * a->taps + lo) * cin * outputs;
        for (int64_t k = (hi - lo) * cin; k > 0; k--, x += LANES, w += outputs) {
            vec in[PIXELS];
            UNROLL
            for (int p = 0; p < pixels; p++)
                in[p] = load(x + p * step);
            UNROLL
            for (int o = 0; o < outputs; o++) {
                const vec v = splat(w[o]);
                UNROLL
                for (int p = 0; p < pixels; p++)
                    sum[p][o] += in[p] * v;
            }
        }
    }
    UNROLL
    for (int p = 0; p < pixels; p++)
        UNROLL
    for (int o = 0; o < outputs; o++)
        store(r->out + ((r->x + p) * f->s->cout + o) * LANES, sum[p][o]);
}

#define RUN_CASE(pixels, n)                                                                        \
    case n:                                                                                        \
        run_fixed(r, pixels, n);                                                                   \
        break;

#define RUN(pixels)                                                                                \
    static void run_##pixels(const struct run *r, int64_t outputs)                                 \
    {                                                                                              \
        switch (outputs) {                                                                         \
            RUN_CASE(pixels, 1)                                                                    \
            RUN_CASE(pixels, 2)                                                                    \
            RUN_CASE(pixels, 3)                                                                    \
            RUN_CASE(pixels, 4)                                                                    \
            RUN_CASE(pixels, 5)                                                                    \
        default:                                                                                   \
            run_fixed(r, pixels, OUTPUTS);                                                         \
        }                                                                                          \
    }

RUN(1)
RUN(2)
#if PIXELS == 4
RUN(4)
#else
#define run_4 run_2
#endif

/* Pixels near the border are computed one by one, without the taps that are outside. */
static void run_row(struct run *r, int64_t outputs)
{
    const struct ew_conv_axis *a = &r->f->s->axis[2];
    const int64_t begin = min_i64(div_up(a->pad, a->stride), a->out);
    const int64_t end = a->in + a->pad < a->taps ? 0 : (a->in + a->pad - a->taps) / a->stride + 1;
    for (r->x = 0; r->x < begin; r->x++)
        run_1(r, outputs);
    for (; r->x + PIXELS <= end; r->x += PIXELS)
        run_4(r, outputs);
    for (; r->x + 2 <= end; r->x += 2)
        run_2(r, outputs);
    for (; r->x < a->out; r->x++)
        run_1(r, outputs);
}

/* Transposes [n][LANES] to a row of each image, and applies the epilogue. */
static void transpose_out(const struct ew_conv *c, const struct batch_lanes_tile *t,
                          const float *from, int64_t at, int64_t image)
{
    const int64_t n = (int64_t)c->shape.axis[2].out * c->shape.cout;
    for (int64_t i = 0; i < n; i += LANES) {
        vec r[LANES];
        transpose_load(from + i * LANES, LANES, n - i, LANES, r);
        for (int64_t j = 0; j < t->images; j++)
            put(&c->end, c->y, at + j * image + i, r[j], n - i);
    }
}

/* ---- Tiles ---- */

int64_t EW_K(batch_lanes_tiles)(const struct ew_conv_shape *s)
{
    struct batch_lanes f;
    EW_K(batch_lanes_init)(&f, s);
    return f.row_tiles * f.groups;
}

/* Scratch: a line buffer, then a row of outputs. */
size_t EW_K(batch_lanes_scratch)(const struct ew_conv_shape *s)
{
    struct batch_lanes f;
    EW_K(batch_lanes_init)(&f, s);
    return (size_t)(f.lines * f.line + f.y_row * LANES) * sizeof(float);
}

static void run_tile(const struct ew_conv *c, const struct batch_lanes *f, int64_t index,
                     float *line_buffer)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *h = &s->axis[1];
    const struct batch_lanes_tile t = EW_K(batch_lanes_tile)(f, index);
    const int64_t size = (int64_t)s->cin * h->taps * s->axis[2].taps;
    float *out = line_buffer + f->lines * f->line;
    EW_K(batch_lanes_fill_lines)(f, &t, c->x, line_buffer);
    for (int64_t row = 0; row < t.rows; row++) {
        const int64_t first = (t.row + row) * h->stride - h->pad;
        struct run r = {.f = f,
                        .line_buffer = line_buffer + row * h->stride * f->line,
                        .tap_y = min_i64(max_i64(-first, 0), h->taps),
                        .last_y = max_i64(min_i64(h->taps, h->in - first), 0)};
        for (int64_t o = 0; o < s->cout; o += OUTPUTS) {
            r.w = c->w + o * size;
            r.bias = c->end.bias ? c->end.bias + o : NULL;
            r.out = out + o * LANES;
            run_row(&r, min_i64(OUTPUTS, s->cout - o));
        }
        transpose_out(c, &t, out, t.image * f->y_image + (t.row + row) * f->y_row, f->y_image);
    }
}

void EW_K(batch_lanes_run)(const struct ew_conv *c, int64_t begin, int64_t end, void *scratch)
{
    struct batch_lanes f;
    EW_K(batch_lanes_init)(&f, &c->shape);
    for (int64_t i = begin; i < end; i++)
        run_tile(c, &f, i, scratch);
}
