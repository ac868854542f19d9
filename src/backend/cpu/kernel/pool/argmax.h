/* SPDX-License-Identifier: Apache-2.0 */
/* Index of the maximum in its window: lane-wise comparisons, and indices as bytes in memory. */
#ifndef EW_BACKEND_CPU_KERNEL_POOL_ARGMAX_H
#define EW_BACKEND_CPU_KERNEL_POOL_ARGMAX_H

#include "backend/cpu/kernel/pool/larger.h"

/* Widen LANES bytes to int32 lanes, and narrow back; compilers do not vectorise it. */
#if defined(EW_ISA_IS_avx512)
INLINE vint widen(const uint8_t *from)
{
    return (vint)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}

INLINE void narrow(uint8_t *to, vint v)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8((__m512i)v));
}
#elif defined(EW_ISA_IS_avx2)
INLINE vint widen(const uint8_t *from)
{
    return (vint)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}

INLINE void narrow(uint8_t *to, vint v)
{
    const __m128i low = _mm256_castsi256_si128((__m256i)v);
    const __m128i words = _mm_packus_epi32(low, _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(words, words));
}
#else
INLINE vint widen(const uint8_t *from)
{
    return (vint){from[0], from[1], from[2], from[3]};
}

INLINE void narrow(uint8_t *to, vint v)
{
    for (int i = 0; i < LANES; i++)
        to[i] = (uint8_t)v[i];
}
#endif

/* The same for the first n < LANES. */
#if defined(EW_ISA_IS_avx512)
INLINE vint widen_part(const uint8_t *from, int64_t n)
{
    return (vint)_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), from));
}

INLINE void narrow_part(uint8_t *to, vint v, int64_t n)
{
    _mm_mask_storeu_epi8(to, (__mmask16)((1u << n) - 1), _mm512_cvtepi32_epi8((__m512i)v));
}
#else
INLINE vint widen_part(const uint8_t *from, int64_t n)
{
    uint8_t part[LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        part[i] = from[i];
    return widen(part);
}

INLINE void narrow_part(uint8_t *to, vint v, int64_t n)
{
    uint8_t part[LANES];
    narrow(part, v);
    for (int64_t i = 0; i < n; i++)
        to[i] = part[i];
}
#endif

INLINE vint load_index(const uint8_t *from, int64_t n)
{
    return n < LANES ? widen_part(from, n) : widen(from);
}

INLINE void store_index(uint8_t *to, vint tap, int64_t n)
{
    if (n < LANES)
        narrow_part(to, tap, n);
    else
        narrow(to, tap);
}

/* Lane-wise comparisons.  With AVX-512 results are mask registers, which compilers do not recover
 * from vector masks. */
#if defined(EW_ISA_IS_avx512)
typedef __mmask16 mask;

INLINE mask is_less(vec a, vec b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
}

INLINE mask is_tap(vint index, int32_t tap)
{
    return _mm512_cmpeq_epi32_mask((__m512i)index, _mm512_set1_epi32(tap));
}

INLINE vint choose(mask m, int32_t tap, vint old)
{
    return (vint)_mm512_mask_set1_epi32((__m512i)old, m, tap);
}

INLINE vec where(mask m, vec v)
{
    return (vec)_mm512_maskz_mov_ps(m, (__m512)v);
}
#else
typedef vint mask;

INLINE mask is_less(vec a, vec b)
{
    return a < b;
}

INLINE mask is_tap(vint index, int32_t tap)
{
    return index == tap;
}

INLINE vint choose(mask m, int32_t tap, vint old)
{
    return (m & tap) | (~m & old);
}

INLINE vec where(mask m, vec v)
{
    return (vec)(m & (vint)v);
}
#endif

/* The maximum so far, the first of equal ones, and its index. */
struct best {
    vec v;
    vint tap;
};

INLINE void take_larger(struct best *b, vec next, int32_t tap)
{
    b->tap = choose(is_less(b->v, next), tap, b->tap);
    b->v = larger(b->v, next);
}

/* Applies a ReLU: `cut` is the index of values without gradient. */
INLINE void take_positive(struct best *b, int32_t cut)
{
    b->tap = choose((mask)~is_less((vec){0}, b->v), cut, b->tap);
    b->v = vmax(b->v, (vec){0});
}

#endif
