/* SPDX-License-Identifier: Apache-2.0 */
/* exp, sigmoid, tanh, erf and the activations on vectors.  Error bounds in ulp, checked by
 * tests/backend/test_kernel_pointwise.c: exp 2, sigmoid 4, tanh 4. */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_ACT_H
#define EW_BACKEND_CPU_KERNEL_COMMON_ACT_H

#include "backend/cpu/kernel/common/act_end.h"

/* 2^n for n in [-126, 127]. */
INLINE vec exp2_int(vint n)
{
    return (vec)((n + 127) << 23);
}

/* exp(x) = 2^n exp(r), |r| <= ln 2 / 2; the polynomial interpolates (exp(r) - 1 - r) / r^2 at the
 * five Chebyshev nodes, relative error 0.19 * 2^-24.  2^n is applied in two halves, so that results
 * may be infinite or denormal. */
INLINE vec vexp(vec x)
{
    const vec t = vmin(vmax(x, splat(-104.0f)), splat(89.0f));
    const vec magic = splat(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    const vec nf = (t * 1.44269504f + magic) - magic;
    const vec r = (t - nf * 0.693145752f) - nf * 1.42860677e-6f; /* ln 2 in two parts */
    vec p = splat(0.00139269266f);
    p = p * r + 0.00836377387f;
    p = p * r + 0.0416665501f;
    p = p * r + 0.166665734f;
    p = p * r + 0.5f;
    p = p * (r * r) + r + 1.0f;
    const vint n = __builtin_convertvector(nf, vint);
    const vint half = n >> 1;
    return pick(x == x, p * exp2_int(half) * exp2_int(n - half), x);
}

INLINE vec vsigmoid(vec x)
{
    return 1.0f / (1.0f + vexp(-x));
}

/* 1 - 2 / (exp(2x) + 1); near 0, where that loses all digits, an odd polynomial: (tanh(x) / x - 1)
 * / x^2 in x^2, interpolated at the five Chebyshev nodes of [0, 0.625^2]. */
INLINE vec vtanh(vec x)
{
    const vec z = x * x;
    vec p = splat(-0.00609671416f);
    p = p * z + 0.020997179f;
    p = p * z - 0.0538509096f;
    p = p * z + 0.133327697f;
    p = p * z - 0.333333289f;
    p = p * z * x + x;
    const vec far = 1.0f - 2.0f / (vexp(x + x) + 1.0f);
    return pick((x < 0.625f) & (x > -0.625f), p, far);
}

/* Up to 1, x times a polynomial in x^2; beyond, 1 - exp(-x^2) p(1 / (1 + x)), where p approximates
 * erfc(x) exp(x^2).  Both interpolate at Chebyshev nodes; absolute error at most 1.5e-7. */
INLINE vec verf(vec x)
{
    const vec z = x * x, far = vmin(vmax(x, -x), splat(4.0f)), t = 1.0f / (far + 1.0f);
    vec p = splat(7.87587487e-05f), q = splat(0.546705723f);
    p = p * z - 0.00080168643f;
    p = p * z + 0.00518908724f;
    p = p * z - 0.0268542115f;
    p = p * z + 0.112835944f;
    p = p * z - 0.37612626f;
    p = (p * z + 1.12837911f) * x;
    q = q * t - 1.18477654f;
    q = q * t + 0.577967942f;
    q = q * t + 0.511953294f;
    q = q * t + 0.568983436f;
    q = q * t - 0.0001783771f;
    const vec y = 1.0f - vexp(-far * far) * q;
    return pick(z <= 1.0f, p, pick(x < 0.0f, -y, y));
}

#define ROOT_HALF 0.707106781f /* sqrt(1 / 2) */
#define ROOT_2_PI 0.797884561f /* sqrt(2 / pi) */

INLINE vec vgelu(vec x)
{
    return 0.5f * x * (1.0f + verf(x * ROOT_HALF));
}

INLINE vec vgelu_slope(vec x)
{
    return 0.5f * (1.0f + verf(x * ROOT_HALF)) + 0.5f * ROOT_2_PI * x * vexp(-0.5f * x * x);
}

/* act(x); lo and hi are the activation's parameters. */
INLINE vec vact(enum ew_act act, vec x, float lo, float hi)
{
    const vec zero = {0}, one = splat(1.0f);
    switch (act) {
    case EW_ACT_RELU:
        return vmax(x, zero);
    case EW_ACT_CLIP:
        return vmin(vmax(x, splat(lo)), splat(hi));
    case EW_ACT_LEAKY:
        return pick(x < zero, x * lo, x);
    case EW_ACT_HARD_SWISH:
        return x * vmin(vmax(x * (1.0f / 6.0f) + 0.5f, zero), one);
    case EW_ACT_HARD_SIGMOID:
        return vmin(vmax(x * lo + hi, zero), one);
    case EW_ACT_SILU:
        return x * vsigmoid(x);
    case EW_ACT_SIGMOID:
        return vsigmoid(x);
    case EW_ACT_TANH:
        return vtanh(x);
    case EW_ACT_GELU:
        return vgelu(x);
    default:
        return x;
    }
}

/* act'(x).  At a kink, the derivative on the side where the function is constant. */
INLINE vec vact_slope(enum ew_act act, vec x, float lo, float hi)
{
    const vec zero = {0}, one = splat(1.0f);
    switch (act) {
    case EW_ACT_RELU:
        return pick(x > zero, one, zero);
    case EW_ACT_CLIP:
        return pick((x > lo) & (x < hi), one, zero);
    case EW_ACT_LEAKY:
        return pick(x > zero, one, splat(lo));
    case EW_ACT_HARD_SWISH:
        return pick(x >= 3.0f, one, pick(x <= -3.0f, zero, x * (1.0f / 3.0f) + 0.5f));
    case EW_ACT_HARD_SIGMOID: {
        const vec t = x * lo + hi;
        return pick((t > zero) & (t < one), splat(lo), zero);
    }
    case EW_ACT_SILU: {
        const vec s = vsigmoid(x);
        return s * (1.0f + x * (1.0f - s));
    }
    case EW_ACT_SIGMOID: {
        const vec s = vsigmoid(x);
        return s * (1.0f - s);
    }
    case EW_ACT_TANH: {
        const vec t = vtanh(x);
        return 1.0f - t * t;
    }
    case EW_ACT_GELU:
        return vgelu_slope(x);
    default:
        return one;
    }
}

/* dy act'(x). */
INLINE vec vact_back(enum ew_act act, vec x, vec dy, float lo, float hi)
{
    switch (act) {
    case EW_ACT_RELU:
        return keep(x > 0.0f, dy);
    case EW_ACT_CLIP:
        return keep((x > lo) & (x < hi), dy);
    case EW_ACT_HARD_SWISH: /* x / 3 + 1 / 2 inside (-3, 3) */
        dy = keep(x > -3.0f, dy);
        return keep(x < 3.0f, x * (1.0f / 3.0f) - 0.5f) * dy + dy;
    default:
        return dy * vact_slope(act, x, lo, hi);
    }
}

/* act'(x) computed from the output y = act(x). */
INLINE vec vact_slope_of_output(enum ew_act act, vec y, float lo, float hi)
{
    const vec zero = {0}, one = splat(1.0f);
    switch (act) {
    case EW_ACT_HARD_SIGMOID:
        return pick((y > zero) & (y < one), splat(lo), zero);
    case EW_ACT_SIGMOID:
        return y * (1.0f - y);
    case EW_ACT_TANH:
        return 1.0f - y * y;
    default:
        return vact_slope(act, y, lo, hi); /* relu, clip, leaky_relu: the same formula holds for
                                            * y */
    }
}

/* vact for epilogues: fewer operations, with an error below the rounding error of the sum. */
INLINE vec vact_end(enum ew_act act, vec x, float lo, float hi)
{
    if (act == EW_ACT_SILU)
        return vsilu_end(x);
    return act == EW_ACT_GELU ? vgelu_end(x) : vact(act, x, lo, hi);
}

/* The same for small code: common activations are inlined, others are a call. */
static __attribute__((noinline, unused)) vec vact_call(enum ew_act act, vec x, float lo, float hi)
{
    return vact_end(act, x, lo, hi);
}

INLINE vec vact_short(enum ew_act act, vec x, float lo, float hi)
{
    if (act == EW_ACT_NONE)
        return x;
    if (act == EW_ACT_RELU)
        return vmax(x, (vec){0});
    if (act == EW_ACT_CLIP)
        return vmin(vmax(x, splat(lo)), splat(hi));
    return vact_call(act, x, lo, hi);
}

/* Applies the epilogue to a vector of sums, which include the bias, and stores n channels to
 * y[at...]. */
INLINE void put(const struct ew_epilogue *e, float *y, int64_t at, vec v, int64_t n)
{
    const vec add = !e->add ? (vec){0} : load_n(e->add + at, n);
    v = e->add_after ? vact_short(e->act, v, e->lo, e->hi) + add
                     : vact_short(e->act, v + add, e->lo, e->hi);
    if (e->mask)
        v = keep(load_n(e->mask + at, n) > 0.0f, v);
    store_n(y + at, v, n);
}

/* The bias of n channels from c on. */
INLINE vec bias_at(const struct ew_epilogue *e, int64_t c, int64_t n)
{
    if (!e->bias)
        return (vec){0};
    return load_n(e->bias + c, n);
}

/* Expands the statement `what` once for each activation, with the constant ACT, so that its loops
 * have no branches. */
#define BY_ACT(what, b)                                                                            \
    switch ((b)->act) {                                                                            \
    case EW_ACT_NONE:                                                                              \
        what(EW_ACT_NONE);                                                                         \
        break;                                                                                     \
    case EW_ACT_RELU:                                                                              \
        what(EW_ACT_RELU);                                                                         \
        break;                                                                                     \
    case EW_ACT_CLIP:                                                                              \
        what(EW_ACT_CLIP);                                                                         \
        break;                                                                                     \
    case EW_ACT_HARD_SWISH:                                                                        \
        what(EW_ACT_HARD_SWISH);                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        what((b)->act);                                                                            \
    }

#endif
