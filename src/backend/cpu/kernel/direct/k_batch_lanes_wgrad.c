/* SPDX-License-Identifier: Apache-2.0 */
/* Wgrad with the batch in the lanes, for few channels: one vector of sums for each weight, whose
 * lanes are reduced at the end of a tile. */
#include "backend/cpu/kernel/direct/batch_lanes.h"

#define SUMS_MAX (32 << 10) /* most bytes of sums, which stay in L1 */
#define TAPS     5          /* taps of a line at once */

static int64_t weights_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->cout * s->cin * s->axis[1].taps * s->axis[2].taps;
}

bool EW_K(batch_lanes_wgrad_fits)(const struct ew_conv_shape *s)
{
    return weights_of(s) * LANES * (int64_t)sizeof(float) <= SUMS_MAX && EW_K(batch_lanes_fits)(s);
}

int64_t EW_K(batch_lanes_wgrad_tiles)(const struct ew_conv_shape *s)
{
    return EW_K(batch_lanes_tiles)(s);
}

static int64_t whole_vectors(int64_t n)
{
    return div_up(n, LANES) * LANES;
}

/* Partial sums: [tile][weights, then bias], each in whole vectors */
static int64_t partial_step(const struct ew_conv_shape *s)
{
    return whole_vectors(weights_of(s)) + whole_vectors(s->cout);
}

size_t EW_K(batch_lanes_wgrad_partial)(const struct ew_conv_shape *s)
{
    return (size_t)(EW_K(batch_lanes_tiles)(s) * partial_step(s));
}

/* Scratch: a line buffer, the tile's rows of dy, the sums. */
size_t EW_K(batch_lanes_wgrad_scratch)(const struct ew_conv_shape *s)
{
    struct batch_lanes f;
    EW_K(batch_lanes_init)(&f, s);
    return (size_t)(f.lines * f.line + f.rows * f.y_row * LANES + partial_step(s) * LANES) *
           sizeof(float);
}

/* ---- Sums in registers ---- */

/* Some columns of taps of one input. */
struct sums {
    const struct batch_lanes_line *l;
    const float *x;
    float *sum;
};

INLINE void sum_fixed(const struct sums *b, const int taps, const int outputs)
{
    const struct batch_lanes_line *l = b->l;
    const struct ew_conv_shape *s = l->s;
    const int64_t tap = (int64_t)s->cin * LANES, step = s->axis[2].stride * tap;
    const int64_t next = (int64_t)s->cout * LANES;
    vec sum[BATCH_LANES_OUTPUTS][TAPS];
    UNROLL
    for (int o = 0; o < outputs; o++)
        UNROLL
    for (int t = 0; t < taps; t++)
        sum[o][t] = load(b->sum + o * l->sum_step + t * tap);
    for (int64_t row = 0; row < l->rows; row++) {
        const float *x = b->x + row * l->x_row, *dy = l->dy + row * l->dy_row;
        for (int64_t i = s->axis[2].out; i > 0; i--, x += step, dy += next) {
            vec v[TAPS];
            UNROLL
            for (int t = 0; t < taps; t++)
                v[t] = load(x + t * tap);
            UNROLL
            for (int o = 0; o < outputs; o++) {
                const vec d = load(dy + o * LANES);
                UNROLL
                for (int t = 0; t < taps; t++)
                    sum[o][t] += v[t] * d;
            }
        }
    }
    UNROLL
    for (int o = 0; o < outputs; o++)
        UNROLL
    for (int t = 0; t < taps; t++)
        store(b->sum + o * l->sum_step + t * tap, sum[o][t]);
}

#define SUM(taps)                                                                                  \
    static void sum_##taps(const struct sums *b)                                                   \
    {                                                                                              \
        switch (b->l->outputs) {                                                                   \
        case 1:                                                                                    \
            sum_fixed(b, taps, 1);                                                                 \
            break;                                                                                 \
        case 2:                                                                                    \
            sum_fixed(b, taps, 2);                                                                 \
            break;                                                                                 \
        case 3:                                                                                    \
            sum_fixed(b, taps, BATCH_LANES_OUTPUTS < 3 ? BATCH_LANES_OUTPUTS : 3);                 \
            break;                                                                                 \
        default:                                                                                   \
            sum_fixed(b, taps, BATCH_LANES_OUTPUTS);                                               \
        }                                                                                          \
    }

SUM(1)
SUM(3)
SUM(5)

void EW_K(batch_lanes_line)(const struct batch_lanes_line *l)
{
    const int64_t taps = l->s->axis[2].taps, cin = l->s->cin;
    for (int64_t c = 0; c < cin; c++)
        for (int64_t t = 0; t < taps;) {
            const int64_t left = taps - t, at = (t * cin + c) * LANES;
            const struct sums b = {l, l->x + at, l->sum + at};
            if (left >= TAPS)
                sum_5(&b);
            else if (left >= 3)
                sum_3(&b);
            else
                sum_1(&b);
            t += left >= TAPS ? TAPS : left >= 3 ? 3 : 1;
        }
}

void EW_K(batch_lanes_bias)(const float *dy, int64_t pixels, int64_t outputs, float *sum)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t o = 0; o < outputs; o++, dy += LANES)
            store(sum + o * LANES, load(sum + o * LANES) + load(dy));
}

void EW_K(batch_lanes_add_lanes)(const float *sum, int64_t n, float *out, bool add)
{
    for (int64_t i = 0; i < n; i += LANES) {
        vec r[LANES];
        transpose_load(sum + i * LANES, LANES, n - i, LANES, r);
        for (int j = 1; j < LANES; j++)
            r[0] += r[j];
        store_n(out + i, add ? load_n(out + i, n - i) + r[0] : r[0], n - i);
    }
}

/* ---- Tiles of rows ---- */

static void run_tile(const struct ew_conv_wgrad *c, const struct batch_lanes *f, int64_t index,
                     float *line_buffer)
{
    const struct ew_conv_shape *s = &c->shape;
    const struct ew_conv_axis *h = &s->axis[1];
    const struct batch_lanes_tile t = EW_K(batch_lanes_tile)(f, index);
    const int64_t run = (int64_t)s->axis[2].taps * s->cin * LANES, dy_row = f->y_row * LANES;
    float *dy = line_buffer + f->lines * f->line, *sum = dy + f->rows * dy_row;
    float *bias = sum + whole_vectors(weights_of(s)) * LANES;
    EW_K(batch_lanes_fill_lines)(f, &t, c->x, line_buffer);
    clear(sum, partial_step(s) * LANES);
    for (int64_t i = 0; i < t.rows; i++) {
        batch_lanes_transpose_in(c->dy + t.image * f->y_image + (t.row + i) * f->y_row, f->y_image,
                                 t.images, f->y_row, dy + i * dy_row);
        if (c->db)
            EW_K(batch_lanes_bias)(dy + i * dy_row, s->axis[2].out, s->cout, bias);
    }
    for (int64_t tap = 0; tap < h->taps; tap++) {
        int64_t first = t.row, last = t.row + t.rows;
        batch_lanes_rows(h, tap, &first, &last);
        for (int64_t o = 0; o < s->cout; o += BATCH_LANES_OUTPUTS) {
            const struct batch_lanes_line l = {
                .s = s,
                .x = line_buffer + ((first - t.row) * h->stride + tap) * f->line,
                .dy = dy + (first - t.row) * dy_row + o * LANES,
                .rows = last - first,
                .x_row = h->stride * f->line,
                .dy_row = dy_row,
                .sum = sum + (o * h->taps + tap) * run,
                .sum_step = h->taps * run,
                .outputs = min_i64(BATCH_LANES_OUTPUTS, s->cout - o)};
            EW_K(batch_lanes_line)(&l);
        }
    }
    EW_K(batch_lanes_add_lanes)(sum, partial_step(s), c->partial + index * partial_step(s), false);
}

void EW_K(batch_lanes_wgrad_run)(const struct ew_conv_wgrad *c, int64_t begin, int64_t end,
                                 void *scratch)
{
    struct batch_lanes f;
    EW_K(batch_lanes_init)(&f, &c->shape);
    for (int64_t i = begin; i < end; i++)
        run_tile(c, &f, i, scratch);
}

int64_t EW_K(batch_lanes_wgrad_sum_tiles)(const struct ew_conv_shape *s)
{
    return 1;
}

/* out[0, n) (+)= partial sums [at, at + n) of all tiles. */
static void add_tiles(const struct ew_conv_wgrad *f, int64_t at, int64_t n, float *out, bool add)
{
    const int64_t tiles = EW_K(batch_lanes_tiles)(&f->shape), step = partial_step(&f->shape);
    for (int64_t i = 0; i < n; i += LANES) {
        vec sum = add ? load_n(out + i, n - i) : (vec){0};
        for (int64_t t = 0; t < tiles; t++)
            sum += load(f->partial + t * step + at + i);
        store_n(out + i, sum, n - i);
    }
}

void EW_K(batch_lanes_wgrad_sum)(const struct ew_conv_wgrad *f, int64_t begin, int64_t end)
{
    const int64_t n = weights_of(&f->shape);
    if (begin >= end)
        return;
    add_tiles(f, 0, n, f->dw, f->add);
    if (f->db)
        add_tiles(f, whole_vectors(n), f->shape.cout, f->db, f->add_db);
}
