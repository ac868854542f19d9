/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution of few input channels with a max pool of 2x2 and a ReLU behind it, in training.
 *
 * Lanes are windows of the pool along a line.  Even and odd columns of the input lie apart, so that
 * each of a window's four outputs is a vector of its own and reads whole vectors; the maximum of
 * the four is taken in registers, and only that and its place are stored. */
#include "backend/cpu/kernel/place.h"
#include "backend/cpu/kernel/turn.h"

#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_neon)
#define OUTPUTS 6 /* summed at once, times the four of a window */
#else
#define OUTPUTS 2
#endif

#define LINE 16 /* floats of a cache line */

static int64_t round_up(int64_t n, int64_t to)
{
    return div_up(n, to) * to;
}

/* A padded image in scratch: [cin][lines][even columns, odd columns]; and behind it a line of
 * pooled outputs, [cout][windows]. */
struct split {
    int64_t high, wide; /* windows */
    int64_t lines, half, line,
        all;       /* lines of a channel, floats of half a line, a line, a channel */
    int64_t width; /* floats of a channel's pooled outputs */
};

static struct split split_of(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *h = &s->axis[1], *w = &s->axis[2];
    struct split p = {.high = h->out / 2, .wide = w->out / 2};
    p.lines = 2 * p.high + h->taps - 1;
    p.width = round_up(p.wide, LANES);
    /* Whole vectors are read and written, from and to anywhere. */
    const int64_t read = p.width + w->taps / 2, written = div_up(w->in + max_i64(w->pad, 0), 2);
    p.half = round_up(max_i64(read, written + LANES), LINE);
    p.line = 2 * p.half;
    p.all = p.lines * p.line;
    return p;
}

bool EW_K(conv_pool_fits)(const struct ew_conv_shape *s)
{
    bool fits = s->groups == 1 && s->axis[0].in == 1 && s->axis[0].out == 1 && s->axis[0].taps == 1;
    for (int i = 1; i < 3; i++)
        fits = fits && s->axis[i].stride == 1 && s->axis[i].dilation == 1 && s->axis[i].out >= 2;
    return fits;
}

/* ---- Filters: [block of outputs][cin][ky][kx][outputs], then the bias ---- */

static int64_t weights_of(const struct ew_conv_shape *s)
{
    return (int64_t)s->cout * s->cin * s->axis[1].taps * s->axis[2].taps;
}

size_t EW_K(conv_pool_pack_size)(const struct ew_conv_shape *s)
{
    return (size_t)(weights_of(s) + s->cout);
}

void EW_K(conv_pool_pack)(const struct ew_conv_shape *s, const float *w, const float *bias,
                          float *packed)
{
    const int64_t taps = (int64_t)s->axis[1].taps * s->axis[2].taps, cin = s->cin;
    for (int64_t o = 0; o < s->cout; o += OUTPUTS) {
        const int64_t n = min_i64(OUTPUTS, s->cout - o);
        float *to = packed + o * cin * taps;
        for (int64_t i = 0; i < cin; i++)
            for (int64_t t = 0; t < taps; t++)
                for (int64_t c = 0; c < n; c++)
                    *to++ = w[((o + c) * taps + t) * cin + i];
    }
    for (int64_t o = 0; o < s->cout; o++)
        packed[weights_of(s) + o] = bias ? bias[o] : 0;
}

/* ---- Splitting lines ---- */

#define EVEN(s, l) (2 * (l))
#define ODD(s, l)  (2 * (l) + 1)

/* Columns of one channel, n of them and `step` floats apart, to two halves of a line. */
static void split_line(const float *x, int64_t n, int64_t step, float *even, float *odd)
{
    if (step == 1)
        for (int64_t i = 0; i < n; i += 2 * LANES) {
            const vec a = load_n(x + i, n - i);
            const vec b = n - i > LANES ? load_n(x + i + LANES, n - i - LANES) : (vec){0};
            store(even + i / 2, TURN_PICK(EVEN, 0, a, b));
            store(odd + i / 2, TURN_PICK(ODD, 0, a, b));
        }
    else
        for (int64_t i = 0; i < n; i++)
            (i & 1 ? odd : even)[i / 2] = x[i * step];
}

/* One image; the padding is there and stays. */
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
            float *line = to + i * p->all + (y + h->pad) * p->line;
            split_line(x + (y * w->in + skip) * cin + i, w->in - skip, cin, line + even,
                       line + odd);
        }
    }
}

/* ---- Sums ---- */

/* LANES windows and up to OUTPUTS outputs. */
struct part {
    const struct ew_conv_pool *c;
    const struct split *p;
    const float *x, *w, *bias;
    float *y;
    uint8_t *place;
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
    for (int64_t i = 0; i < s->cin; i++)
        for (int64_t y = 0; y < s->axis[1].taps; y++) {
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

INLINE void pool_part(const struct part *b, const int n)
{
    vec sum[4][OUTPUTS];
    sum_part(b, sum, n);
    const int64_t windows = b->p->high * b->p->wide;
    UNROLL
    for (int o = 0; o < n; o++) {
        struct best best = {.v = sum[0][o]};
        UNROLL
        for (int t = 1; t < 4; t++)
            take_larger(&best, sum[t][o], t);
        if (b->c->relu) {
            best.tap = choose((mask)~is_less((vec){0}, best.v), EW_CONV_POOL_CUT, best.tap);
            best.v = vmax(best.v, (vec){0});
        }
        store(b->y + o * b->p->width, best.v);
        store_index(b->place + o * windows, best.tap, b->windows);
    }
}

static void pool_any(const struct part *b, int64_t n)
{
    switch (n) {
    case 1:
        pool_part(b, 1);
        break;
#if OUTPUTS > 2
    case 2:
        pool_part(b, 2);
        break;
    case 3:
        pool_part(b, 3);
        break;
    case 4:
        pool_part(b, 4);
        break;
    case 5:
        pool_part(b, 5);
        break;
#endif
    default:
        pool_part(b, OUTPUTS);
    }
}

/* ---- Images ---- */

static int64_t line_rows(const struct ew_conv_shape *s)
{
    return round_up(s->cout, TURN_FEW);
}

size_t EW_K(conv_pool_scratch)(const struct ew_conv_shape *s)
{
    const struct split p = split_of(s);
    return (size_t)(s->cin * p.all + line_rows(s) * p.width) * sizeof(float);
}

/* A line of pooled outputs, [cout][windows], to [windows][cout]. */
static void put_line(const struct ew_conv_shape *s, const struct split *p, const float *from,
                     float *y)
{
    for (int64_t o = 0; o < s->cout; o += TURN_FEW)
        for (int64_t at = 0; at < p->wide; at += LANES) {
            vec r[TURN_FEW];
            UNROLL
            for (int i = 0; i < TURN_FEW; i++)
                r[i] = load(from + (o + i) * p->width + at);
            turn_few_out(r, min_i64(LANES, p->wide - at), min_i64(TURN_FEW, s->cout - o),
                         y + at * s->cout + o, s->cout);
        }
}

static void run_image(const struct ew_conv_pool *c, const struct split *p, int64_t image,
                      float *scratch)
{
    const struct ew_conv_shape *s = &c->shape;
    const int64_t windows = p->high * p->wide, filter = weights_of(s) / s->cout;
    float *pooled = scratch + s->cin * p->all;
    split_image(s, p, c->x + image * s->axis[1].in * s->axis[2].in * s->cin, scratch);
    for (int64_t y = 0; y < p->high; y++) {
        for (int64_t o = 0; o < s->cout; o += OUTPUTS)
            for (int64_t at = 0; at < p->wide; at += LANES) {
                const struct part b = {.c = c,
                                       .p = p,
                                       .x = scratch + 2 * y * p->line + at,
                                       .w = c->w + o * filter,
                                       .bias = c->w + s->cout * filter + o,
                                       .y = pooled + o * p->width + at,
                                       .place = c->place + (image * s->cout + o) * windows +
                                                y * p->wide + at,
                                       .windows = min_i64(LANES, p->wide - at)};
                pool_any(&b, min_i64(OUTPUTS, s->cout - o));
            }
        put_line(s, p, pooled, c->y + (image * windows + y * p->wide) * s->cout);
    }
}

void EW_K(conv_pool_run)(const struct ew_conv_pool *c, int64_t begin, int64_t end, void *scratch)
{
    const struct split p = split_of(&c->shape);
    clear(scratch, (int64_t)(EW_K(conv_pool_scratch)(&c->shape) / sizeof(float)));
    for (int64_t image = begin; image < end; image++)
        run_image(c, &p, image, scratch);
}
