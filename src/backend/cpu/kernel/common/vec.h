/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of the instruction set that the file is compiled for, and the names of its symbols.
 *
 * Kernels use the compilers' vector types, so one source serves AVX-512, AVX2, NEON and, as 16-byte
 * vectors, any other machine. */
#ifndef EW_BACKEND_CPU_KERNEL_COMMON_VEC_H
#define EW_BACKEND_CPU_KERNEL_COMMON_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_avx2)
#include <immintrin.h>
#endif

#include "backend/cpu/kernel.h"

#define EW_K_JOIN(name, isa)  ew_##name##_##isa
#define EW_K_NAMED(name, isa) EW_K_JOIN(name, isa)
#define EW_K(name)            EW_K_NAMED(name, EW_ISA) /* ew_<name>_<isa> */

/* An instruction set that only adds integer instructions (VNNI) shares the float kernels of the one
 * that it extends. */
#define EW_KF(name) EW_K_NAMED(name, EW_ISA_FLOAT)

#define EW_KERNEL_PROTO(ret, name, args) ret EW_KF(name) args;
EW_KERNEL_MAP(EW_KERNEL_PROTO)
EW_TENSOR_KERNEL_MAP(EW_KERNEL_PROTO)
#undef EW_KERNEL_PROTO

#define EW_KERNEL_PROTO(ret, name, args) ret EW_K(name) args;
EW_INT8_KERNEL_MAP(EW_KERNEL_PROTO)
#undef EW_KERNEL_PROTO

#if defined(EW_ISA_IS_avx512)
#define LANES 16
#elif defined(EW_ISA_IS_avx2)
#define LANES 8
#else
#define LANES 4
#endif

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float vec_u __attribute__((vector_size(LANES * 4), may_alias, aligned(4)));
typedef int32_t vint __attribute__((vector_size(LANES * 4)));

#define INLINE static inline __attribute__((always_inline))

/* Loops over arrays of vectors must be unrolled fully, or the vectors are kept in memory. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

INLINE vec load(const float *p)
{
    return *(const vec_u *)p;
}

INLINE void store(float *p, vec v)
{
    *(vec_u *)p = v;
}

INLINE vec splat(float f)
{
    return f - (vec){0};
}

/* Loads the first n < LANES floats at p, then zeros, without access beyond them; store likewise. */
#if defined(EW_ISA_IS_avx512)
INLINE vec load_part(const float *p, int64_t n)
{
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

INLINE void store_part(float *p, vec v, int64_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
}
#elif defined(EW_ISA_IS_avx2)
INLINE vint part_mask(int64_t n)
{
    return (vint){0, 1, 2, 3, 4, 5, 6, 7} < (int32_t)n;
}

INLINE vec load_part(const float *p, int64_t n)
{
    return (vec)_mm256_maskload_ps(p, (__m256i)part_mask(n));
}

/* In pieces: on AMD processors AVX2's masked store is microcoded. */
INLINE void store_part(float *p, vec v, int64_t n)
{
    __m128 rest = _mm256_castps256_ps128((__m256)v);
    if (n & 4) {
        _mm_storeu_ps(p, rest);
        rest = _mm256_extractf128_ps((__m256)v, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, rest);
        rest = _mm_movehl_ps(rest, rest);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, rest);
}
#else
INLINE vec load_part(const float *p, int64_t n)
{
    return (vec){n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0};
}

INLINE void store_part(float *p, vec v, int64_t n)
{
    for (int64_t i = 0; i < 3 && i < n; i++)
        p[i] = v[i];
}
#endif

/* Load or store min(n, LANES) floats. */
INLINE vec load_n(const float *p, int64_t n)
{
    if (n < LANES)
        return load_part(p, n);
    return load(p);
}

INLINE void store_n(float *p, vec v, int64_t n)
{
    if (n < LANES)
        store_part(p, v, n);
    else
        store(p, v);
}

/* Half a vector, for widths that would leave the other half empty; AVX-512 only. */
#if defined(EW_ISA_IS_avx512)
#define HALF 8
typedef float hvec __attribute__((vector_size(HALF * 4)));

INLINE hvec half_load(const float *p, int64_t n)
{
    return (hvec)_mm256_maskz_loadu_ps((__mmask8)((1u << n) - 1), p);
}

INLINE void half_store(float *p, hvec v, int64_t n)
{
    _mm256_mask_storeu_ps(p, (__mmask8)((1u << n) - 1), (__m256)v);
}

INLINE hvec half_clamp(hvec v, float lo, float hi)
{
    return (hvec)_mm256_min_ps(_mm256_set1_ps(hi), _mm256_max_ps(_mm256_set1_ps(lo), (__m256)v));
}
#else
#define HALF 0
typedef vec hvec; /* never used */

INLINE hvec half_load(const float *p, int64_t n)
{
    return (hvec){0};
}

INLINE void half_store(float *p, hvec v, int64_t n)
{
}

INLINE hvec half_clamp(hvec v, float lo, float hi)
{
    return v;
}
#endif

/* mask ?  a : b in each lane; mask is the result of a comparison. */
#if defined(EW_ISA_IS_avx512)
INLINE vec pick(vint mask, vec a, vec b)
{
    return (vec)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)b, (__m512)a);
}
#else
INLINE vec pick(vint mask, vec a, vec b)
{
    return (vec)((mask & (vint)a) | (~mask & (vint)b));
}
#endif

/* mask ?  v : 0 in each lane; compilers fuse it with the comparison. */
INLINE vec keep(vint mask, vec v)
{
    return (vec)(mask & (vint)v);
}

/* max is a < b ?  b : a, min is a > b ?  b : a, so a NaN in `a` is kept.  As intrinsics: compilers
 * do not recognise the mask arithmetic. */
#if defined(EW_ISA_IS_avx512)
INLINE vec vmax(vec a, vec b)
{
    return (vec)_mm512_max_ps((__m512)b, (__m512)a);
}

INLINE vec vmin(vec a, vec b)
{
    return (vec)_mm512_min_ps((__m512)b, (__m512)a);
}
#elif defined(EW_ISA_IS_avx2)
INLINE vec vmax(vec a, vec b)
{
    return (vec)_mm256_max_ps((__m256)b, (__m256)a);
}

INLINE vec vmin(vec a, vec b)
{
    return (vec)_mm256_min_ps((__m256)b, (__m256)a);
}
#else
INLINE vec vmax(vec a, vec b)
{
    return pick(a < b, b, a);
}

INLINE vec vmin(vec a, vec b)
{
    return pick(a > b, b, a);
}
#endif

#if defined(EW_ISA_IS_avx512)
INLINE vec vsqrt(vec x)
{
    return (vec)_mm512_sqrt_ps((__m512)x);
}
#elif defined(EW_ISA_IS_avx2)
INLINE vec vsqrt(vec x)
{
    return (vec)_mm256_sqrt_ps((__m256)x);
}
#else
INLINE vec vsqrt(vec x)
{
    return (vec){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}
#endif

INLINE int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

INLINE int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

INLINE int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

INLINE int32_t gcd(int32_t a, int32_t b)
{
    while (b) {
        const int32_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* Copies n floats, inline: most copies are a few vectors, too short for a call of memcpy. */
INLINE void copy(float *restrict to, const float *restrict from, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(to + i, load(from + i));
    if (i < n && n >= LANES) {
        store(to + n - LANES, load(from + n - LANES)); /* overlaps the previous store */
        return;
    }
    for (; i < n; i++)
        to[i] = from[i];
}

INLINE void clear(float *to, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(to + i, (vec){0});
    for (; i < n; i++)
        to[i] = 0;
}

/* Pixel strides of a convolution, in floats. */
INLINE int64_t x_step_of(const struct ew_conv_shape *s)
{
    return s->x_step ? s->x_step : s->cin;
}

INLINE int64_t y_step_of(const struct ew_conv_shape *s)
{
    return s->y_step ? s->y_step : s->cout;
}

#endif
