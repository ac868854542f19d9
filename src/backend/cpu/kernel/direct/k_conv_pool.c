/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of few input channels fused with max pool 2x2 and ReLU, in training.
 *
 * Lanes are pool windows along a line.  Even and odd input columns are stored apart, so that each
 * of a window's four outputs is a vector of its own and reads whole vectors.  The maximum of the
 * four is taken in registers; only it and its index in the window are stored.
 *
 * 5x5 filters use one-dimensional Winograd F(2, 5) over the two lines of a window, with the points
 * 0, 1, -1, 2, -2 and infinity: 6 products instead of 10.  Along the lines as well, the transforms
 * would cost as much as they save. */
#include "backend/cpu/kernel/common/transpose_tile.h"
#include "backend/cpu/kernel/pool/argmax.h"

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define OUTPUTS 6 /* output channels at once, times the four outputs of a window */
#define FEWER   3 /* the same with Winograd, which also needs two sums of a point for each */
#else
#define OUTPUTS 2
#define FEWER   2
#endif

#define LINE 16 /* floats of a cache line */

static int64_t round_up(int64_t n, int64_t to)
{
    return div_up(n, to) * to;
}

#define TAPS   5 /* taps of the Winograd form */
#define POINTS 6

/* Layout of scratch: a padded image, [cin][lines][even columns, odd columns]; with Winograd its
 * points, [cin][rows of windows][points][even, odd]; and a line of pooled outputs,
 * [cout][windows]. */
struct split {
    int64_t high, wide;        /* windows */
    int64_t lines;             /* lines of a channel */
    int64_t half, line, all;   /* floats of half a line, a line, a channel */
    int64_t lead;              /* floats before the padding, so that the image is aligned to a cache
                                * line */
    int64_t point, row, image; /* floats of a point, of a row of windows, of a channel of points */
    int64_t width;             /* floats of a channel's pooled outputs */
    int64_t outputs;           /* output channels at once */
    bool winograd;
};

static struct split split_of(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    struct split p = {.high = h->out / 2, .wide = w->out / 2};
    p.lines = 2 * p.high + h->taps - 1;
    p.width = round_up(p.wide, LANES);
    /* Room for whole, unaligned vectors. */
    const int64_t pad = max_i64(w->pad, 0), read = p.width + w->taps / 2;
    const int64_t written = div_up(w->in + pad, 2) + LANES;
    p.lead = round_up(pad / 2, LINE) - pad / 2;
    p.half = round_up(p.lead + max_i64(read, written), LINE);
    p.line = 2 * p.half;
    p.all = p.lines * p.line;
    p.winograd = h->taps == TAPS && w->taps == TAPS && s->cout >= FEWER;
    p.outputs = p.winograd ? FEWER : OUTPUTS;
    p.point = 2 * round_up(p.wide + w->taps / 2, LANES);
    p.row = POINTS * p.point;
    p.image = p.winograd ? p.high * p.row : 0;
    return p;
}

bool EW_K(conv_pool_fits)(const struct ew_conv_shape *s)
{
    bool fits = s->groups == 1 && s->axis[0].in == 1 && s->axis[0].out == 1 && s->axis[0].taps == 1;
    for (int i = 1; i < 3; i++)
        fits = fits && s->axis[i].stride == 1 && s->axis[i].dilation == 1 && s->axis[i].out >= 2;
    return fits;
}

/* ---- Filters: [block of outputs][ky or points][cin][kx][outputs], then the bias ---- */

/* Floats of a filter. */
static int64_t filter_of(const struct ew_conv_shape *s)
{
    const int64_t lines = split_of(s).winograd ? POINTS : s->axis[1].taps;
    return lines * s->cin * s->axis[2].taps;
}

size_t EW_K(conv_pool_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(s->cout * (filter_of(s) + 1));
}

/* Transforms a column of taps, `step` floats apart, to points `out` floats apart. */
static void pack_points(const float *w, int64_t step, float *to, int64_t out)
{
    const float w0 = w[0], w1 = w[step], w2 = w[2 * step], w3 = w[3 * step], w4 = w[4 * step];
    const float even = (w0 + w2 + w4) * (-1.0f / 6), odd = (w1 + w3) * (-1.0f / 6);
    const float far = (w0 + 4 * w2 + 16 * w4) * (1.0f / 24), off = (w1 + 4 * w3) * (1.0f / 12);
    to[0] = w0 * 0.25f;
    to[out] = even + odd;
    to[2 * out] = even - odd;
    to[3 * out] = far + off;
    to[4 * out] = far - off;
    to[5 * out] = w4;
}

void EW_K(conv_pool_pack)(const struct ew_conv_shape *s, const float *w, const float *bias,
                          float *packed)
{
    const struct split p = split_of(s);
    const int64_t taps = s->axis[1].taps, run = (int64_t)s->axis[2].taps * s->cin;
    const int64_t filter = filter_of(s);
    for (int64_t o = 0; o < s->cout; o++) {
        const int64_t first = o - o % p.outputs, n = min_i64(p.outputs, s->cout - first);
        for (int64_t i = 0; i < run; i++) {
            const float *from = w + o * taps * run + i;
            float *to = packed + first * filter + (i % s->cin * s->axis[2].taps + i / s->cin) * n +
                        o - first;
            if (p.winograd)
                pack_points(from, run, to, run * n);
            for (int64_t y = 0; !p.winograd && y < taps; y++)
                to[y * run * n] = from[y * run];
        }
        packed[s->cout * filter + o] = bias ? bias[o] : 0;
    }
}

/* ---- Splitting lines ---- */

#define EVEN(s, l) (2 * (l))
#define ODD(s, l)  (2 * (l) + 1)

/* Splits n pixels of one channel, `step` floats apart, into even and odd columns. */
static void split_line(const float *x, int64_t n, int64_t step, float *even, float *odd)
{
    if (step == 1)
        for (int64_t i = 0; i < n; i += 2 * LANES) {
            const vec a = load_n(x + i, n - i);
            const vec b = n - i > LANES ? load_n(x + i + LANES, n - i - LANES) : (vec){0};
            store(even + i / 2, TRANSPOSE_PICK(EVEN, 0, a, b));
            store(odd + i / 2, TRANSPOSE_PICK(ODD, 0, a, b));
        }
    else
        for (int64_t i = 0; i < n; i++)
            (i & 1 ? odd : even)[i / 2] = x[i * step];
}

/* Splits one image; the padding is already zero. */
static void split_image(const struct ew_conv_shape *s, const struct split *p, const float *x,
                        float *to)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    const int64_t skip = max_i64(-w->pad, 0), pad = max_i64(w->pad, 0), cin = s->cin;
    const int64_t even = (pad & 1) * p->half + pad / 2, odd = (~pad & 1) * p->half + (pad + 1) / 2;
    for (int64_t y = 0; y < h->in; y++) {
        if (y + h->pad < 0 || y + h->pad >= p->lines)
            continue;
        for (int64_t i = 0; i < cin; i++) {
            float *line = to + i * p->all + (y + h->pad) * p->line + p->lead;
            split_line(x + (y * w->in + skip) * cin + i, w->in - skip, cin, line + even,
                       line + odd);
        }
    }
}

/* ---- Winograd's points ---- */

/* Transforms a vector from each of six lines to one of each point. */
INLINE void transform(const float *x, int64_t line, float *to, int64_t point)
{
    const vec x0 = load(x), x1 = load(x + line), x2 = load(x + 2 * line);
    const vec x3 = load(x + 3 * line), x4 = load(x + 4 * line), x5 = load(x + 5 * line);
    const vec a = x4 - 4 * x2, b = x3 - 4 * x1, c = x4 - x2, d = 2 * (x3 - x1);
    store(to, 4 * (x0 - x2) + c);
    store(to + point, a + b);
    store(to + 2 * point, a - b);
    store(to + 3 * point, c + d);
    store(to + 4 * point, c - d);
    store(to + 5 * point, 4 * (x1 - x3) + (x5 - x3));
}

/* Transforms all rows of windows of an image. */
static void transform_image(const struct ew_conv_shape *s, const struct split *p, const float *from,
                            float *to)
{
    const int64_t half = p->point / 2;
    for (int64_t i = 0; i < s->cin; i++)
        for (int64_t y = 0; y < p->high; y++)
            for (int64_t odd = 0; odd < 2; odd++)
                for (int64_t x = 0; x < half; x += LANES)
                    transform(from + i * p->all + 2 * y * p->line + odd * p->half + p->lead + x,
                              p->line, to + i * p->image + y * p->row + odd * half + x, p->point);
}

/* ---- Sums ---- */

/* LANES windows and up to OUTPUTS output channels. */
struct part {
    const struct ew_conv_pool *c;
    const struct split *p;
    const float *x, *w, *bias;
    float *y;
    uint8_t *argmax;
    int64_t windows;
};

INLINE void sum_part(const struct part *b, vec sum[4][OUTPUTS], const int n)
{
    const struct ew_conv_shape *s = &b->c->shape;
    const int64_t half = b->p->half, line = b->p->line, taps = s->axis[2].taps;
    const float *w = b->w;
    UNROLL
    for (int o = 0; o < n; o++)
        sum[0][o] = sum[1][o] = sum[2][o] = sum[3][o] = splat(b->bias[o]);
    for (int64_t y = 0; y < s->axis[1].taps; y++)
        for (int64_t i = 0; i < s->cin; i++) {
            const float *up = b->x + i * b->p->all + y * line, *down = up + line;
            vec x00 = load(up), x10 = load(down);
            for (int64_t t = 1; t <= taps; t++, w += n) {
                const int64_t next = (t & 1) * half + t / 2;
                const vec x01 = load(up + next), x11 = load(down + next);
                UNROLL
                for (int o = 0; o < n; o++) {
                    const vec v = splat(w[o]);
                    sum[0][o] += x00 * v;
                    sum[1][o] += x01 * v;
                    sum[2][o] += x10 * v;
                    sum[3][o] += x11 * v;
                }
                x00 = x01;
                x10 = x11;
            }
        }
}

/* Adds the sums of point k to the four outputs (the output transform). */
INLINE void add_point(vec sum[4][OUTPUTS], const vec at[2], const int k, const int o)
{
    UNROLL
    for (int i = 0; i < 2; i++) {
        if (k < 5)
            sum[i][o] += at[i];
        if (k == 1 || k == 5)
            sum[i + 2][o] += at[i];
        else if (k == 2)
            sum[i + 2][o] -= at[i];
        else if (k == 3)
            sum[i + 2][o] += 2 * at[i];
        else if (k == 4)
            sum[i + 2][o] -= 2 * at[i];
    }
}

/* The same with Winograd. */
INLINE void sum_points(const struct part *b, vec sum[4][OUTPUTS], const int n)
{
    const struct ew_conv_shape *s = &b->c->shape;
    const int64_t half = b->p->point / 2;
    const float *w = b->w;
    UNROLL
    for (int o = 0; o < n; o++)
        sum[0][o] = sum[1][o] = sum[2][o] = sum[3][o] = splat(b->bias[o]);
    UNROLL
    for (int k = 0; k < POINTS; k++) {
        vec at[FEWER][2] = {{{0}}};
        for (int64_t i = 0; i < s->cin; i++) {
            const float *from = b->x + i * b->p->image + k * b->p->point;
            vec x[TAPS + 1];
            UNROLL
            for (int t = 0; t <= TAPS; t++)
                x[t] = load(from + (t & 1) * half + t / 2);
            UNROLL
            for (int t = 0; t < TAPS; t++, w += n)
                UNROLL
            for (int o = 0; o < n; o++) {
                const vec v = splat(w[o]);
                at[o][0] += x[t] * v;
                at[o][1] += x[t + 1] * v;
            }
        }
        UNROLL
        for (int o = 0; o < n; o++)
            add_point(sum, at[o], k, o);
    }
}

INLINE void pool_part(const struct part *b, const int n, const bool winograd)
{
    vec sum[4][OUTPUTS];
    if (winograd)
        sum_points(b, sum, n);
    else
        sum_part(b, sum, n);
    const int64_t windows = b->p->high * b->p->wide;
    UNROLL
    for (int o = 0; o < n; o++) {
        struct best best = {.v = sum[0][o]};
        UNROLL
        for (int t = 1; t < 4; t++)
            take_larger(&best, sum[t][o], t);
        if (b->c->relu)
            take_positive(&best, EW_CONV_POOL_NO_GRAD);
        store(b->y + o * b->p->width, best.v);
        store_index(b->argmax + o * windows, best.tap, b->windows);
    }
}

static void pool_any(const struct part *b, int64_t n)
{
    switch (n) {
    case 1:
        pool_part(b, 1, false);
        break;
#if OUTPUTS > 2
    case 2:
        pool_part(b, 2, false);
        break;
    case 3:
        pool_part(b, 3, false);
        break;
    case 4:
        pool_part(b, 4, false);
        break;
    case 5:
        pool_part(b, 5, false);
        break;
#endif
    default:
        pool_part(b, OUTPUTS, false);
    }
}

static void pool_points(const struct part *b, int64_t n)
{
    if (n == FEWER)
        pool_part(b, FEWER, true);
    else if (n == 2)
        pool_part(b, 2, true);
    else
        pool_part(b, 1, true);
}

/* ---- Images ---- */

static int64_t line_rows(const struct ew_conv_shape *s)
{
    return round_up(s->cout, TRANSPOSE_NARROW);
}

size_t EW_K(conv_pool_scratch)(const struct ew_conv_shape *s)
{
    const struct split p = split_of(s);
    return (size_t)(s->cin * (p.all + p.image) + line_rows(s) * p.width) * sizeof(float);
}

/* Transposes a line of pooled outputs, [cout][windows], to [windows][cout]. */
static void put_line(const struct ew_conv_shape *s, const struct split *p, const float *from,
                     float *y)
{
    for (int64_t o = 0; o < s->cout; o += TRANSPOSE_NARROW)
        for (int64_t at = 0; at < p->wide; at += LANES) {
            vec r[TRANSPOSE_NARROW];
            UNROLL
            for (int i = 0; i < TRANSPOSE_NARROW; i++)
                r[i] = load(from + (o + i) * p->width + at);
            transpose_narrow_out(r, min_i64(LANES, p->wide - at),
                                 min_i64(TRANSPOSE_NARROW, s->cout - o), y + at * s->cout + o,
                                 s->cout);
        }
}

static void run_image(const struct ew_conv_pool *c, const struct split *p, int64_t image,
                      float *scratch)
{
    const struct ew_conv_shape *s = &c->shape;
    const int64_t windows = p->high * p->wide, filter = filter_of(s);
    float *points = scratch + s->cin * p->all, *pooled = points + s->cin * p->image;
    split_image(s, p, c->x + image * s->axis[1].in * s->axis[2].in * s->cin, scratch);
    if (p->winograd)
        transform_image(s, p, scratch, points);
    for (int64_t y = 0; y < p->high; y++) {
        const float *x = p->winograd ? points + y * p->row : scratch + 2 * y * p->line + p->lead;
        for (int64_t o = 0; o < s->cout; o += p->outputs)
            for (int64_t at = 0; at < p->wide; at += LANES) {
                const struct part b = {.c = c,
                                       .p = p,
                                       .x = x + at,
                                       .w = c->w + o * filter,
                                       .bias = c->w + s->cout * filter + o,
                                       .y = pooled + o * p->width + at,
                                       .argmax = c->argmax + (image * s->cout + o) * windows +
                                                 y * p->wide + at,
                                       .windows = min_i64(LANES, p->wide - at)};
                if (p->winograd)
                    pool_points(&b, min_i64(FEWER, s->cout - o));
                else
                    pool_any(&b, min_i64(OUTPUTS, s->cout - o));
            }
        put_line(s, p, pooled, c->y + (image * windows + y * p->wide) * s->cout);
    }
}

void EW_K(conv_pool_run)(const struct ew_conv_pool *c, int64_t begin, int64_t end, void *scratch)
{
    const struct split p = split_of(&c->shape);
    clear(scratch, c->shape.cin * p.all);
    for (int64_t image = begin; image < end; image++)
        run_image(c, &p, image, scratch);
}
