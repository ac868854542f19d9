/* SPDX-License-Identifier: Apache-2.0 */
/* Reference convolutions in double, for tests and timing of the kernels. */
#ifndef EW_REF_CONV_H
#define EW_REF_CONV_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/kernel.h"

static inline int64_t ref_conv_in_count(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    return (int64_t)s->batch * a[0].in * a[1].in * a[2].in * s->cin;
}

static inline int64_t ref_conv_out_count(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    return (int64_t)s->batch * a[0].out * a[1].out * a[2].out * s->cout;
}

static inline int64_t ref_conv_filter_count(const struct ew_conv_shape *s)
{
    const struct ew_conv_axis *a = s->axis;
    return (int64_t)s->cout * a[0].taps * a[1].taps * a[2].taps * (s->cin / s->groups);
}

static inline double ref_conv_macs(const struct ew_conv_shape *s)
{
    return (double)ref_conv_out_count(s) * (double)ref_conv_filter_count(s) / s->cout;
}

/* One (output pixel, tap) pair of a convolution that lies inside the input. */
struct ref_pair {
    int64_t x, y, tap; /* indices of pixels and tap; the visitor loops over channels */
};

typedef void ref_visit(const struct ew_conv_shape *s, struct ref_pair p, void *ctx);

/* Calls `visit` for every (output pixel, tap) pair that reads inside the input. */
static inline void ref_conv_walk(const struct ew_conv_shape *s, ref_visit *visit, void *ctx)
{
    const struct ew_conv_axis *a = s->axis;
    const int64_t taps = (int64_t)a[0].taps * a[1].taps * a[2].taps;
    const int64_t pixels = ref_conv_out_count(s) / s->cout;
    for (int64_t y = 0; y < pixels; y++) {
        const int64_t o[3] = {y / a[2].out / a[1].out % a[0].out, y / a[2].out % a[1].out,
                              y % a[2].out};
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t t[3] = {tap / a[2].taps / a[1].taps, tap / a[2].taps % a[1].taps,
                                  tap % a[2].taps};
            int64_t x = y / a[2].out / a[1].out / a[0].out;
            int inside = 1;
            for (int i = 0; i < 3; i++) {
                const int64_t at = o[i] * a[i].stride - a[i].pad + t[i] * a[i].dilation;
                inside = inside && at >= 0 && at < a[i].in;
                x = x * a[i].in + at;
            }
            if (inside)
                visit(s, (struct ref_pair){x, y, tap}, ctx);
        }
    }
}

/* Operands of one multiply-add: y[o] += x[i] * w[f] over all pairs of a group. */
struct ref_conv_data {
    const float *x, *w, *dy;
    double *out; /* y, dx or dw */
    int what;    /* 0: forward, 1: dgrad, 2: wgrad */
};

static inline double ref_dot(double sum, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static inline void ref_add(double *out, double times, const float *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] += times * (double)a[i];
}

static inline void ref_conv_pair(const struct ew_conv_shape *s, struct ref_pair p, void *ctx)
{
    const struct ref_conv_data *d = ctx;
    const int64_t cg = s->cin / s->groups, og = s->cout / s->groups;
    const int64_t taps = (int64_t)s->axis[0].taps * s->axis[1].taps * s->axis[2].taps;
    for (int64_t o = 0; o < s->cout; o++) {
        const int64_t x = p.x * s->cin + o / og * cg, y = p.y * s->cout + o;
        const int64_t w = (o * taps + p.tap) * cg;
        if (d->what == 0)
            d->out[y] = ref_dot(d->out[y], d->x + x, d->w + w, cg);
        else if (d->what == 1)
            ref_add(d->out + x, (double)d->dy[y], d->w + w, cg);
        else
            ref_add(d->out + w, (double)d->dy[y], d->x + x, cg);
    }
}

/* Accumulates into y. */
static inline void ref_conv(const struct ew_conv_shape *s, const float *x, const float *w,
                            double *y)
{
    struct ref_conv_data d = {.x = x, .w = w, .out = y, .what = 0};
    ref_conv_walk(s, ref_conv_pair, &d);
}

static inline void ref_conv_data(const struct ew_conv_shape *s, const float *dy, const float *w,
                                 double *dx)
{
    struct ref_conv_data d = {.dy = dy, .w = w, .out = dx, .what = 1};
    ref_conv_walk(s, ref_conv_pair, &d);
}

static inline void ref_conv_filter(const struct ew_conv_shape *s, const float *dy, const float *x,
                                   double *dw)
{
    struct ref_conv_data d = {.dy = dy, .x = x, .out = dw, .what = 2};
    ref_conv_walk(s, ref_conv_pair, &d);
}

/* nan stays nan, as in the operators. */
static inline double ref_clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static inline double ref_act(enum ew_act act, double x, double lo, double hi)
{
    switch (act) {
    case EW_ACT_RELU:
        return ref_clamp(x, 0, INFINITY);
    case EW_ACT_CLIP:
        return ref_clamp(x, lo, hi);
    case EW_ACT_LEAKY:
        return x < 0 ? x * lo : x;
    case EW_ACT_HARD_SWISH:
        return x * ref_clamp(x / 6 + 0.5, 0, 1);
    case EW_ACT_HARD_SIGMOID:
        return ref_clamp(x * lo + hi, 0, 1);
    case EW_ACT_SILU:
        return x / (1 + exp(-x));
    case EW_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case EW_ACT_TANH:
        return tanh(x);
    case EW_ACT_GELU:
        return 0.5 * x * erfc(-x * sqrt(0.5));
    default:
        return x;
    }
}

/* y = epilogue(y), in place. */
static inline void ref_epilogue(const struct ew_epilogue *e, int64_t n, int64_t channels, double *y)
{
    for (int64_t i = 0; i < n; i++) {
        const double add = e->add ? (double)e->add[i] : 0;
        double v = y[i] + (e->bias ? (double)e->bias[i % channels] : 0);
        v = ref_act(e->act, v + (e->add_after ? 0 : add), (double)e->lo, (double)e->hi);
        y[i] = v + (e->add_after ? add : 0);
    }
}

#endif
