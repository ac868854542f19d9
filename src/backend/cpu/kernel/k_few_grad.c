/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient for the filter of a convolution with few channels: images in lanes, one vector of sums
 * for each weight; lanes are added up when a tile is done. */
#include "backend/cpu/kernel/few.h"

#define SUMS_MAX (32 << 10) /* bytes of sums: they stay in L1 */
#define TAPS     5          /* summed at once, times OUTPUTS */
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define OUTPUTS 4
#else
#define OUTPUTS 2
#endif

static int64_t weights_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->cout * s->cin * s->axis[1].taps * s->axis[2].taps;
}

bool EW_K(few_filter_fits)(const struct ew_conv_shape *s)
{
    return weights_of(s) * LANES * (int64_t)sizeof(float) <= SUMS_MAX && EW_K(few_fits)(s);
}

int64_t EW_K(few_filter_tiles)(const struct ew_conv_shape *s)
{
    return EW_K(few_tiles)(s);
}

/* [tile][weights, in whole vectors] */
static int64_t partial_step(const struct ew_conv_shape *s)
{
    return div_up(weights_of(s), LANES) * LANES;
}

size_t EW_K(few_filter_partial)(const struct ew_conv_shape *s)
{
    return (size_t)(EW_K(few_tiles)(s) * partial_step(s));
}

/* A band, a row of dy, the sums. */
size_t EW_K(few_filter_scratch)(const struct ew_conv_shape *s)
{
    struct few f;
    EW_K(few_init)(&f, s);
    return (size_t)(f.lines * f.line + f.y_row * LANES + partial_step(s) * LANES) * sizeof(float);
}

/* One row of outputs against one line of inputs. */
struct row {
    const struct few *f;
    const float *x, *dy; /* the line's column of tap 0, and the row, of the same input and output */
    float *sum;          /* of the first tap */
    int64_t sum_step;    /* floats between outputs */
    int64_t taps, outputs;
};

INLINE void row_fixed(const struct row *r, const int taps, const int outputs)
{
    const struct ew_conv_shape *s = r->f->s;
    const int64_t tap = (int64_t)s->cin * LANES, step = s->axis[2].stride * tap;
    const int64_t next = (int64_t)s->cout * LANES;
    vec sum[OUTPUTS][TAPS];
    UNROLL
    for (int o = 0; o < outputs; o++)
        UNROLL
    for (int t = 0; t < taps; t++)
        sum[o][t] = load(r->sum + o * r->sum_step + t * tap);
    const float *x = r->x, *dy = r->dy;
    for (int64_t i = s->axis[2].out; i > 0; i--, x += step, dy += next) {
        vec d[OUTPUTS];
        UNROLL
        for (int o = 0; o < outputs; o++)
            d[o] = load(dy + o * LANES);
        UNROLL
        for (int t = 0; t < taps; t++) {
            const vec v = load(x + t * tap);
            UNROLL
            for (int o = 0; o < outputs; o++)
                sum[o][t] += v * d[o];
        }
    }
    UNROLL
    for (int o = 0; o < outputs; o++)
        UNROLL
    for (int t = 0; t < taps; t++)
        store(r->sum + o * r->sum_step + t * tap, sum[o][t]);
}

static void row_any(const struct row *r)
{
    if (r->taps == TAPS && r->outputs == OUTPUTS)
        row_fixed(r, TAPS, OUTPUTS);
    else if (r->taps == TAPS && r->outputs == 2)
        row_fixed(r, TAPS, 2);
    else if (r->taps == 3 && r->outputs == OUTPUTS)
        row_fixed(r, 3, OUTPUTS);
    else
        for (int64_t o = 0; o < r->outputs; o++)
            for (int64_t t = 0; t < r->taps; t++) {
                struct row one = *r;
                one.x += t * r->f->s->cin * LANES;
                one.dy += o * LANES;
                one.sum += o * r->sum_step + t * r->f->s->cin * LANES;
                row_fixed(&one, 1, 1);
            }
}

/* All weights of one line of taps. */
static void add_line(const struct few *f, const float *line, const float *dy, float *sum)
{
    const struct ew_conv_shape *s = f->s;
    const int64_t taps = s->axis[2].taps, filter = taps * s->axis[1].taps * s->cin * LANES;
    for (int64_t c = 0; c < s->cin; c++)
        for (int64_t o = 0; o < s->cout; o += OUTPUTS)
            for (int64_t t = 0; t < taps; t += TAPS) {
                const int64_t at = (t * s->cin + c) * LANES;
                const struct row r = {.f = f,
                                      .x = line + at,
                                      .dy = dy + o * LANES,
                                      .sum = sum + o * filter + at,
                                      .sum_step = filter,
                                      .taps = min_i64(TAPS, taps - t),
                                      .outputs = min_i64(OUTPUTS, s->cout - o)};
                row_any(&r);
            }
}

/* Adds up the lanes of n vectors. */
static void add_lanes(const float *sum, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += LANES) {
        vec r[LANES];
        turn_load(sum + i * LANES, LANES, n - i, LANES, r);
        for (int j = 1; j < LANES; j++)
            r[0] += r[j];
        store(out + i, r[0]);
    }
}

void EW_K(few_filter_run)(const struct ew_conv_filter *c, int64_t begin, int64_t end, void *scratch)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *h = &s->axis[1];
    struct few f;
    EW_K(few_init)(&f, s);
    float *band = scratch, *dy = band + f.lines * f.line, *sum = dy + f.y_row * LANES;
    for (int64_t i = begin; i < end; i++) {
        const struct few_tile t = EW_K(few_tile)(&f, i);
        EW_K(few_band)(&f, &t, c->x, band);
        clear(sum, partial_step(s) * LANES);
        for (int64_t row = 0; row < t.rows; row++) {
            const int64_t first = (t.row + row) * h->stride - h->pad;
            few_turn_in(c->dy + t.image * f.y_image + (t.row + row) * f.y_row, f.y_image, t.images,
                        f.y_row, dy);
            for (int64_t y = max_i64(-first, 0); y < min_i64(h->taps, h->in - first); y++)
                add_line(&f, band + (row * h->stride + y) * f.line, dy,
                         sum + y * s->axis[2].taps * s->cin * LANES);
        }
        add_lanes(sum, weights_of(s), c->partial + i * partial_step(s));
    }
}

int64_t EW_K(few_filter_sum_tiles)(const struct ew_conv_shape *s)
{
    return 1;
}

void EW_K(few_filter_sum)(const struct ew_conv_filter *f, int64_t begin, int64_t end)
{
    const int64_t n = weights_of(&f->shape), tiles = EW_K(few_tiles)(&f->shape);
    for (int64_t i = 0; i < n && begin < end; i += LANES) {
        vec sum = f->add ? load_n(f->dw + i, n - i) : (vec){0};
        for (int64_t t = 0; t < tiles; t++)
            sum += load(f->partial + t * partial_step(&f->shape) + i);
        store_n(f->dw + i, sum, n - i);
    }
}
