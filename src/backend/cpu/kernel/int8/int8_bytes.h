/* SPDX-License-Identifier: Apache-2.0 */
/* Whole vectors of bytes, for kernels that do not widen them, and lookup tables of 256 bytes. */
#ifndef EW_BACKEND_CPU_KERNEL_INT8_INT8_BYTES_H
#define EW_BACKEND_CPU_KERNEL_INT8_INT8_BYTES_H

#include "backend/cpu/kernel/int8/int8_vec.h"

#define BIG (LANES * 4)
typedef uint8_t vbig __attribute__((vector_size(BIG)));

#if defined(EW_ISA_IS_avx512)
/* Load and store n bytes, 1 to BIG. */
INLINE vbig load_big(const uint8_t *p, int64_t n)
{
    return (vbig)_mm512_maskz_loadu_epi8((__mmask64)(~0ull >> (64 - n)), p);
}

INLINE void store_big(uint8_t *p, vbig v, int64_t n)
{
    _mm512_mask_storeu_epi8(p, (__mmask64)(~0ull >> (64 - n)), (__m512i)v);
}

INLINE vbig max_bytes(vbig a, vbig b)
{
    return (vbig)_mm512_max_epu8((__m512i)a, (__m512i)b);
}

INLINE vbig min_bytes(vbig a, vbig b)
{
    return (vbig)_mm512_min_epu8((__m512i)a, (__m512i)b);
}

/* Narrows two vectors of int16 with unsigned saturation, within 128-bit lanes. */
INLINE vbig pack_bytes(v16 a, v16 b)
{
    return (vbig)_mm512_packus_epi16((__m512i)a, (__m512i)b);
}
#else
/* Load and store n bytes, 1 to BIG, for byte-wise operations between the two: on AVX2, 16 to 31
 * bytes are two halves that overlap in memory, which avoids a call of memcpy. */
INLINE vbig load_big(const uint8_t *p, int64_t n)
{
    vbig v = {0};
    if (n == BIG)
        memcpy(&v, p, BIG);
#if defined(EW_ISA_IS_avx2)
    else if (n >= BIG / 2) {
        const __m128i low = _mm_loadu_si128((const void *)p);
        const __m128i high = _mm_loadu_si128((const void *)(p + n - BIG / 2));
        v = (vbig)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    } else
        v = (vbig)_mm256_zextsi128_si256((__m128i)load_part_bytes(p, n));
#else
    else
        memcpy(&v, p, (size_t)n);
#endif
    return v;
}

INLINE void store_big(uint8_t *p, vbig v, int64_t n)
{
    if (n == BIG)
        memcpy(p, &v, BIG);
#if defined(EW_ISA_IS_avx2)
    else if (n >= BIG / 2) {
        _mm_storeu_si128((void *)p, _mm256_castsi256_si128((__m256i)v));
        _mm_storeu_si128((void *)(p + n - BIG / 2), _mm256_extracti128_si256((__m256i)v, 1));
    } else
        store_part_bytes(p, (vbytes)_mm256_castsi256_si128((__m256i)v), n);
#else
    else
        memcpy(p, &v, (size_t)n);
#endif
}

#if defined(EW_ISA_IS_avx2)
INLINE vbig max_bytes(vbig a, vbig b)
{
    return (vbig)_mm256_max_epu8((__m256i)a, (__m256i)b);
}

INLINE vbig min_bytes(vbig a, vbig b)
{
    return (vbig)_mm256_min_epu8((__m256i)a, (__m256i)b);
}

INLINE vbig pack_bytes(v16 a, v16 b)
{
    return (vbig)_mm256_packus_epi16((__m256i)a, (__m256i)b);
}
#elif defined(EW_ISA_IS_neon)
INLINE vbig max_bytes(vbig a, vbig b)
{
    return (vbig)vmaxq_u8((uint8x16_t)a, (uint8x16_t)b);
}
#else
INLINE vbig max_bytes(vbig a, vbig b)
{
    const vbig more = (vbig)(a > b);
    return (a & more) | (b & ~more);
}
#endif
#endif

/* ---- Tables of 256 bytes ---- */

#if defined(EW_ISA_IS_avx512vnni)
INLINE __m512i lookup64(__m512i x, const uint8_t *table)
{
    const __m512i low =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(table), x, _mm512_loadu_si512(table + 64));
    const __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), x,
                                                  _mm512_loadu_si512(table + 192));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
}

INLINE vbytes lookup(vbytes x, const uint8_t *table)
{
    return (vbytes)_mm512_castsi512_si256(lookup64(_mm512_castsi256_si512((__m256i)x), table));
}
#elif defined(EW_ISA_IS_avx2)
/* Looks up 16 bytes.  Both halves of a vector hold them; vpshufb selects by the low four bits from
 * rows 2 i and 2 i + 1 of the table, 16 bytes each, and a blend for each upper bit selects among
 * the results. */
INLINE vbytes lookup(vbytes x, const uint8_t *table)
{
    const __m256i by_128 = _mm256_broadcastsi128_si256((__m128i)x);
    const __m256i by_64 = _mm256_add_epi8(by_128, by_128), by_32 = _mm256_add_epi8(by_64, by_64);
    const __m256i by_16 = _mm256_add_epi8(by_32, by_32);
    const __m256i low = _mm256_and_si256(by_128, _mm256_set1_epi8(15));
    __m256i y[8];
    UNROLL
    for (int i = 0; i < 8; i++)
        y[i] = _mm256_shuffle_epi8(_mm256_loadu_si256((const void *)(table + 32 * i)), low);
    UNROLL
    for (int i = 0; i < 4; i++)
        y[i] = _mm256_blendv_epi8(y[2 * i], y[2 * i + 1], by_32);
    UNROLL
    for (int i = 0; i < 2; i++)
        y[i] = _mm256_blendv_epi8(y[2 * i], y[2 * i + 1], by_64);
    const __m256i both = _mm256_blendv_epi8(y[0], y[1], by_128);
    return (vbytes)_mm_blendv_epi8(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1),
                                   _mm256_castsi256_si128(by_16));
}
#else
INLINE vbytes lookup(vbytes x, const uint8_t *table)
{
    for (int i = 0; i < WIDE; i++)
        x[i] = table[x[i]];
    return x;
}
#endif

#endif
