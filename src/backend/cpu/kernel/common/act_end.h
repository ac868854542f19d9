/* SPDX-License-Identifier: Apache-2.0 */
/* Activations for epilogues, in fewer operations than in act.h: the error is at most 4e-7 of max(1,
 * |result|). */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_ACT_END_H
#define EW_BACKEND_CPU_KERNEL_COMMON_ACT_END_H

#include "backend/cpu/kernel/common/vec.h"

/* t = n + f, n an integer, |f| <= 1/2, and 2^n p for p = 2^f.  AVX-512 has instructions for both,
 * which overflow to infinity and underflow to 0.  Elsewhere t is clamped, adding 1.5 * 2^23 leaves
 * n in the low bits, and a shift makes it the exponent. */
#if defined(EW_ISA_IS_avx512)
INLINE vec exp2_parts(vec t, vec *f)
{
    const vec whole = (vec)_mm512_roundscale_ps((__m512)t, _MM_FROUND_NO_EXC);
    *f = t - whole;
    return whole;
}

INLINE vec exp2_join(vec p, vec whole)
{
    return (vec)_mm512_scalef_ps((__m512)p, (__m512)whole);
}
#else
INLINE vec exp2_parts(vec t, vec *f)
{
    const vec magic = splat(12582912.0f);
    t = vmin(vmax(t, splat(-126.0f)), splat(126.0f));
    const vec whole = t + magic;
    *f = t - (whole - magic);
    return whole;
}

INLINE vec exp2_join(vec p, vec whole)
{
    return (vec)((vint)p + ((vint)whole << 23));
}
#endif

/* x sigmoid(x) = x / (1 + exp(-x)).  exp(-x) needs accuracy only relative to 1.
 * exp(-x) = 2^n 2^f; the polynomial interpolates 2^f at six Chebyshev nodes, relative error 2.4e-7.
 * A NaN in x propagates through the numerator. */
INLINE vec vsilu_end(vec x)
{
    vec f;
    const vec whole = exp2_parts(x * -1.44269504f, &f);
    vec p = splat(0.00133908633f);
    p = p * f + 0.00967603177f;
    p = p * f + 0.0555035695f;
    p = p * f + 0.240221068f;
    p = p * f + 0.693147182f;
    p = p * f + 1.0f;
    return x / (1.0f + exp2_join(p, whole));
}

/* max(x, 0) - |x| Q(|x|), where Q(z) is the upper tail probability of the standard normal
 * distribution.  The polynomial in 2 z / 5.5 - 1 minimises the error of z Q(z) over [0, 5.5];
 * larger z are clamped to 5.5, where z Q(z) is 1e-7. */
INLINE vec vgelu_end(vec x)
{
    static const float h[] = {-0.00560503313f, 0.00536696333f, 0.0301817413f,  -0.0436107777f,
                              -0.0491052754f,  0.133308053f,   -0.0349268466f, -0.163107917f,
                              0.218442068f,    -0.0513856821f, -0.177167699f,  0.271888524f,
                              -0.206807807f,   0.0945579782f,  -0.0250080694f, 0.00297977403f};
    const vec z = vmin(vmax(x, -x), splat(5.5f)), u = z * 0.363636374f - 1.0f;
    vec p = splat(h[0]);
    UNROLL
    for (int i = 1; i < 16; i++)
        p = p * u + h[i];
    return vmax(x, (vec){0}) - z * p;
}

#endif
