/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad with the batch in the lanes, for filters with more weights than k_batch_lanes_wgrad.c
 * takes: x and dy are transposed as a whole first; then a tile is some weights, whose sums over all
 * pixels stay in registers.
 *
 * Implicit GEMM (k_conv_wgrad.c) gathers every input once for each tap, and pads lanes and rows if
 * there are few channels.  Here both operands must fit into a core's cache. */
#include "backend/cpu/kernel/direct/batch_lanes.h"

#define OUTPUTS_MAX 16 /* with more, implicit GEMM is as fast */
/* Fewest pixels of an output: reducing the lanes costs as much as about 6. */
#define PIXELS_MIN 64
#define FLOATS_MAX (256 << 10) /* floats of x, dy and the sums: 1 MiB */

/* Layout of `partial`, in floats. */
struct lanes {
    struct batch_lanes f;
    int64_t x, dy; /* floats of a group of LANES images */
    int64_t dy_at, sum_at, bias_at, size;
    int64_t blocks; /* blocks of BATCH_LANES_OUTPUTS outputs */
    int64_t run;    /* floats of the sums of an output and a line of taps */
};

static void init(struct lanes *l, const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *h = &s->axis[1];
    EW_K(batch_lanes_init)(&l->f, s);
    l->x = h->in * l->f.line;
    l->dy = l->f.y_image * LANES;
    l->dy_at = l->f.groups * l->x;
    l->sum_at = l->dy_at + l->f.groups * l->dy;
    l->blocks = div_up(s->cout, BATCH_LANES_OUTPUTS);
    l->run = (int64_t)s->axis[2].taps * s->cin * LANES;
    l->bias_at = l->sum_at + l->blocks * BATCH_LANES_OUTPUTS * h->taps * l->run;
    l->size = l->bias_at + s->cout * LANES;
}

bool EW_K(batch_lanes_large_wgrad_fits)(const struct ew_conv_shape *s)
{
    struct lanes l;
    if (!EW_K(batch_lanes_is_plain)(s) || s->cin > OUTPUTS_MAX || s->cout > OUTPUTS_MAX ||
        (int64_t)s->batch / LANES * s->axis[1].out * s->axis[2].out < PIXELS_MIN)
        return false;
    init(&l, s);
    return l.size <= FLOATS_MAX;
}

size_t EW_K(batch_lanes_large_wgrad_partial)(const struct ew_conv_shape *s)
{
    struct lanes l;
    init(&l, s);
    return (size_t)l.size;
}

size_t EW_K(batch_lanes_large_wgrad_scratch)(const struct ew_conv_shape *s)
{
    return 0;
}

/* A tile of `run` is a line of x or a row of dy, to be transposed. */
int64_t EW_K(batch_lanes_large_wgrad_tiles)(const struct ew_conv_shape *s)
{
    return div_up(s->batch, LANES) * (s->axis[1].in + s->axis[1].out);
}

void EW_K(batch_lanes_large_wgrad_run)(const struct ew_conv_wgrad *c, int64_t begin, int64_t end,
                                       void *scratch)
{
    const struct ew_conv_shape *s = &c->shape;
    const int64_t in = s->axis[1].in, out = s->axis[1].out;
    struct lanes l;
    init(&l, s);
    const struct batch_lanes *f = &l.f;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / (in + out), y = i % (in + out);
        struct batch_lanes_tile t = {.image = group * LANES};
        t.images = min_i64(LANES, s->batch - t.image);
        if (y < in)
            EW_K(batch_lanes_transpose_line)
        (f, &t, c->x, y, c->partial + group * l.x + y * f->line);
        else batch_lanes_transpose_in(
            c->dy + t.image * f->y_image + (y - in) * f->y_row, f->y_image, t.images, f->y_row,
            c->partial + l.dy_at + group * l.dy + (y - in) * f->y_row * LANES);
    }
}

/* A tile of `sum` is a block of outputs and a line of taps; the last one is the bias gradient. */
int64_t EW_K(batch_lanes_large_wgrad_sum_tiles)(const struct ew_conv_shape *s)
{
    return div_up(s->cout, BATCH_LANES_OUTPUTS) * s->axis[1].taps + 1;
}

static void sum_bias(const struct ew_conv_wgrad *c, const struct lanes *l)
{
    const struct ew_conv_shape *s = &c->shape;
    const int64_t pixels = l->f.groups * s->axis[1].out * s->axis[2].out;
    float *sum = c->partial + l->bias_at;
    clear(sum, s->cout * LANES);
    EW_K(batch_lanes_bias)(c->partial + l->dy_at, pixels, s->cout, sum);
    EW_K(batch_lanes_add_lanes)(sum, s->cout, c->db, c->add_db);
}

static void sum_tile(const struct ew_conv_wgrad *c, const struct lanes *l, int64_t index)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *h = &s->axis[1];
    const struct batch_lanes *f = &l->f;
    const int64_t tap = index % h->taps, o = index / h->taps * BATCH_LANES_OUTPUTS;
    int64_t first = 0, last = h->out;
    batch_lanes_rows(h, tap, &first, &last);
    struct batch_lanes_line line = {.s = s,
                                    .rows = last - first,
                                    .x_row = h->stride * f->line,
                                    .dy_row = f->y_row * LANES,
                                    .sum = c->partial + l->sum_at +
                                           index * BATCH_LANES_OUTPUTS * l->run,
                                    .sum_step = l->run,
                                    .outputs = min_i64(BATCH_LANES_OUTPUTS, s->cout - o)};
    clear(line.sum, line.outputs * l->run);
    for (int64_t g = 0; g < f->groups && last > first; g++) {
        line.x = c->partial + g * l->x + (first * h->stride - h->pad + tap) * f->line;
        line.dy = c->partial + l->dy_at + g * l->dy + first * line.dy_row + o * LANES;
        EW_K(batch_lanes_line)(&line);
    }
    const int64_t n = l->run / LANES;
    for (int64_t i = 0; i < line.outputs; i++)
        EW_K(batch_lanes_add_lanes)
    (line.sum + i * l->run, n, c->dw + ((o + i) * h->taps + tap) * n, c->add);
}

void EW_K(batch_lanes_large_wgrad_sum)(const struct ew_conv_wgrad *c, int64_t begin, int64_t end)
{
    struct lanes l;
    init(&l, &c->shape);
    const int64_t last = EW_K(batch_lanes_large_wgrad_sum_tiles)(&c->shape) - 1;
    for (int64_t i = begin; i < min_i64(end, last); i++)
        sum_tile(c, &l, i);
    if (end > last && c->db)
        sum_bias(c, &l);
}
