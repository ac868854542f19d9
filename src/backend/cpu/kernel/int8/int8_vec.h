/* SPDX-License-Identifier: Apache-2.0 */
/* Integer vector operations of each instruction set: products of words, rounding, narrowing.
 *
 * A word is 32 bits of k: four bytes with VNNI or the NEON dot product, else two int16.  AVX2's
 * byte product (vpmaddubsw) adds two products in 16 bits and saturates; only the GEMM uses it,
 * where no sum can saturate (int8_gemm.h).
 *
 * Narrowing two vectors of int32 to one of int16 works within 128-bit lanes, as on x86: the columns
 * of a block are assigned to its vectors so that they come out in order (column_of). */
#ifndef EW_BACKEND_CPU_KERNEL_INT8_INT8_VEC_H
#define EW_BACKEND_CPU_KERNEL_INT8_INT8_VEC_H

#include "backend/cpu/kernel/common/vec.h"

#if defined(EW_ISA_IS_neon)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(EW_ISA_IS_avx512vnni) || defined(EW_ISA_IS_avx2vnni)
#define HAS_VNNI 1
#endif
#if defined(HAS_VNNI) || defined(EW_ISA_IS_neondot)
#define WORD_BYTES 1
#define WORD       4 /* elements of k in a word */
#else
#define WORD_BYTES 0
#define WORD       2
#endif
#define SIDE 2 /* vectors narrowed together */
#define WIDE (SIDE * LANES)

typedef int16_t v16 __attribute__((vector_size(WIDE * 2)));
typedef uint8_t vbytes __attribute__((vector_size(WIDE)));

/* The column in lane l of vector v of a block of WIDE columns. */
INLINE int column_of(int v, int l)
{
    return l / 4 * 8 + v * 4 + l % 4;
}

/* Index of element j of lane l's word in a vector of packed weights: a column's elements are
 * contiguous, except for NEON without dot product. */
#if defined(EW_ISA_IS_neon) && !defined(EW_ISA_IS_neondot)
#define WORD_AT(l, j) ((j)*LANES + (l))
#else
#define WORD_AT(l, j) ((l)*WORD + (j))
#endif

INLINE int32_t load_word(const void *p)
{
    int32_t w;
    memcpy(&w, p, sizeof(w));
    return w;
}

typedef uint32_t vuint __attribute__((vector_size(LANES * 4)));
typedef int32_t vint_u __attribute__((vector_size(LANES * 4), may_alias, aligned(4)));

INLINE vint load_int(const int32_t *p)
{
    return *(const vint_u *)p;
}

INLINE void store_int(int32_t *p, vint v)
{
    *(vint_u *)p = v;
}

/* Addition that may wrap: Winograd computes sums modulo 2^32. */
INLINE vint wrap_add(vint a, vint b)
{
    return (vint)((vuint)a + (vuint)b);
}

#if defined(__x86_64__)
/* Prevents reassociation of sums, by which compilers would compute all products of an unrolled loop
 * first and spill them. */
INLINE vint in_order(vint sum)
{
    __asm__("" : "+v"(sum));
    return sum;
}
#endif

/* ---- Products: sum += a . w, lane by lane; a is one word in all lanes ---- */

#if defined(EW_ISA_IS_avx512)
INLINE vint splat_word(const void *p)
{
    return (vint)_mm512_set1_epi32(load_word(p));
}

INLINE vint dot(vint sum, vint a, vint w)
{
#if defined(EW_ISA_IS_avx512vnni)
    return (vint)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)w);
#else
    return wrap_add(sum, (vint)_mm512_madd_epi16((__m512i)a, (__m512i)w));
#endif
}

/* The same for words of two int16. */
INLINE vint dot_pairs(vint sum, vint a, vint w)
{
#if defined(EW_ISA_IS_avx512vnni)
    return (vint)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)w);
#else
    return dot(sum, a, w);
#endif
}

INLINE vint round_int(vec t)
{
    return (vint)_mm512_cvtps_epi32((__m512)t);
}

INLINE vec to_float(vint i)
{
    return (vec)_mm512_cvtepi32_ps((__m512i)i);
}
#elif defined(EW_ISA_IS_avx2)
INLINE vint splat_word(const void *p)
{
    return (vint)_mm256_set1_epi32(load_word(p));
}

#if defined(EW_ISA_IS_avx2vnni)
/* Assembly, for compilers without AVX-VNNI intrinsics, and so that test builds can use AVX-512's
 * encoding (cmake/isa.cmake). */
#if defined(EW_VNNI_EVEX)
#define VNNI(name) "%{evex%} " name " %2, %1, %0"
#else
#define VNNI(name) "%{vex%} " name " %2, %1, %0"
#endif

INLINE vint dot(vint sum, vint a, vint w)
{
    __asm__(VNNI("vpdpbusd") : "+x"(sum) : "x"(a), "x"(w));
    return sum;
}

INLINE vint dot_pairs(vint sum, vint a, vint w)
{
    __asm__(VNNI("vpdpwssd") : "+x"(sum) : "x"(a), "x"(w));
    return sum;
}
#else
INLINE vint dot(vint sum, vint a, vint w)
{
    return wrap_add(sum, (vint)_mm256_madd_epi16((__m256i)a, (__m256i)w));
}
#endif

INLINE vint round_int(vec t)
{
    return (vint)_mm256_cvtps_epi32((__m256)t);
}

INLINE vec to_float(vint i)
{
    return (vec)_mm256_cvtepi32_ps((__m256i)i);
}
#elif defined(EW_ISA_IS_neon)
INLINE vint splat_word(const void *p)
{
    return (vint)vdupq_n_s32(load_word(p));
}

INLINE vint dot(vint sum, vint a, vint w)
{
#if defined(EW_ISA_IS_neondot)
    return (vint)vdotq_s32((int32x4_t)sum, (int8x16_t)a, (int8x16_t)w);
#else
    const int16x4_t pair = vget_low_s16((int16x8_t)a);
    const int32x4_t half = vmlal_lane_s16((int32x4_t)sum, vget_low_s16((int16x8_t)w), pair, 0);
    return (vint)vmlal_lane_s16(half, vget_high_s16((int16x8_t)w), pair, 1);
#endif
}

INLINE vint round_int(vec t)
{
    return (vint)vcvtnq_s32_f32((float32x4_t)t);
}

INLINE vec to_float(vint i)
{
    return (vec)vcvtq_f32_s32((int32x4_t)i);
}
#else
INLINE vint splat_word(const void *p)
{
    return load_word(p) - (vint){0};
}

INLINE vec to_float(vint i)
{
    return __builtin_convertvector(i, vec);
}

#if defined(__SSE2__)
INLINE vint dot(vint sum, vint a, vint w)
{
    return wrap_add(sum, (vint)_mm_madd_epi16((__m128i)a, (__m128i)w));
}

INLINE vint round_int(vec t)
{
    return (vint)_mm_cvtps_epi32((__m128)t);
}
#else
INLINE vint dot(vint sum, vint a, vint w)
{
    const v16 x = (v16)a, y = (v16)w;
    vint r;
    for (int i = 0; i < LANES; i++)
        r[i] = x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1];
    return wrap_add(sum, r);
}

INLINE vint round_int(vec t)
{
    return (vint){(int32_t)rintf(t[0]), (int32_t)rintf(t[1]), (int32_t)rintf(t[2]),
                  (int32_t)rintf(t[3])};
}
#endif
#endif

#if !defined(EW_ISA_IS_avx512) && !defined(HAS_VNNI)
INLINE vint dot_pairs(vint sum, vint a, vint w)
{
    return dot(sum, a, w);
}
#endif

/* ---- Saturating narrowing ---- */

#if defined(EW_ISA_IS_avx512)
INLINE v16 narrow2(vint a, vint b)
{
    return (v16)_mm512_packs_epi32((__m512i)a, (__m512i)b);
}

/* A single vector, whose columns are in order; the rest of the result is undefined. */
INLINE v16 narrow1(vint a)
{
    return (v16)_mm512_castsi256_si512(_mm512_cvtsepi32_epi16((__m512i)a));
}

INLINE v16 add16(v16 a, v16 b)
{
    return (v16)_mm512_adds_epi16((__m512i)a, (__m512i)b);
}

INLINE v16 max16(v16 a, v16 b)
{
    return (v16)_mm512_max_epi16((__m512i)a, (__m512i)b);
}

INLINE v16 min16(v16 a, v16 b)
{
    return (v16)_mm512_min_epi16((__m512i)a, (__m512i)b);
}

/* Narrows int16 values in [0, 255]. */
INLINE vbytes bytes_of(v16 v)
{
    return (vbytes)_mm512_cvtepi16_epi8((__m512i)v);
}

INLINE vbytes load_bytes(const uint8_t *p, int64_t n)
{
    return (vbytes)_mm256_maskz_loadu_epi8((__mmask32)((1ull << n) - 1), p);
}

INLINE void store_bytes(uint8_t *p, vbytes v, int64_t n)
{
    _mm256_mask_storeu_epi8(p, (__mmask32)((1ull << n) - 1), (__m256i)v);
}

INLINE v16 widen(vbytes v)
{
    return (v16)_mm512_cvtepu8_epi16((__m256i)v);
}

INLINE vint widen_a(v16 v)
{
    return (vint)_mm512_unpacklo_epi16((__m512i)v, _mm512_setzero_si512());
}

INLINE vint widen_b(v16 v)
{
    return (vint)_mm512_unpackhi_epi16((__m512i)v, _mm512_setzero_si512());
}

INLINE vint widen_one(v16 v)
{
    return (vint)_mm512_cvtepi16_epi32(_mm512_castsi512_si256((__m512i)v));
}
#elif defined(EW_ISA_IS_avx2)
INLINE v16 narrow2(vint a, vint b)
{
    return (v16)_mm256_packs_epi32((__m256i)a, (__m256i)b);
}

INLINE v16 narrow1(vint a)
{
    return (v16)_mm256_permute4x64_epi64(_mm256_packs_epi32((__m256i)a, (__m256i)a), 0x08);
}

INLINE v16 add16(v16 a, v16 b)
{
    return (v16)_mm256_adds_epi16((__m256i)a, (__m256i)b);
}

INLINE v16 max16(v16 a, v16 b)
{
    return (v16)_mm256_max_epi16((__m256i)a, (__m256i)b);
}

INLINE v16 min16(v16 a, v16 b)
{
    return (v16)_mm256_min_epi16((__m256i)a, (__m256i)b);
}

INLINE vbytes bytes_of(v16 v)
{
    const __m256i pairs = _mm256_packus_epi16((__m256i)v, (__m256i)v);
    return (vbytes)_mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08));
}

INLINE v16 widen(vbytes v)
{
    return (v16)_mm256_cvtepu8_epi16((__m128i)v);
}

INLINE vint widen_a(v16 v)
{
    return (vint)_mm256_unpacklo_epi16((__m256i)v, _mm256_setzero_si256());
}

INLINE vint widen_b(v16 v)
{
    return (vint)_mm256_unpackhi_epi16((__m256i)v, _mm256_setzero_si256());
}

INLINE vint widen_one(v16 v)
{
    return (vint)_mm256_cvtepi16_epi32(_mm256_castsi256_si128((__m256i)v));
}
#elif defined(EW_ISA_IS_neon)
INLINE v16 narrow2(vint a, vint b)
{
    return (v16)vcombine_s16(vqmovn_s32((int32x4_t)a), vqmovn_s32((int32x4_t)b));
}

INLINE v16 narrow1(vint a)
{
    return narrow2(a, a);
}

INLINE v16 add16(v16 a, v16 b)
{
    return (v16)vqaddq_s16((int16x8_t)a, (int16x8_t)b);
}

INLINE v16 max16(v16 a, v16 b)
{
    return (v16)vmaxq_s16((int16x8_t)a, (int16x8_t)b);
}

INLINE v16 min16(v16 a, v16 b)
{
    return (v16)vminq_s16((int16x8_t)a, (int16x8_t)b);
}

INLINE vbytes bytes_of(v16 v)
{
    return (vbytes)vmovn_u16((uint16x8_t)v);
}

INLINE v16 widen(vbytes v)
{
    return (v16)vmovl_u8((uint8x8_t)v);
}

INLINE vint widen_a(v16 v)
{
    return (vint)vmovl_s16(vget_low_s16((int16x8_t)v));
}

INLINE vint widen_b(v16 v)
{
    return (vint)vmovl_s16(vget_high_s16((int16x8_t)v));
}

INLINE vint widen_one(v16 v)
{
    return widen_a(v);
}
#else
#if defined(__SSE2__)
INLINE v16 narrow2(vint a, vint b)
{
    return (v16)_mm_packs_epi32((__m128i)a, (__m128i)b);
}

INLINE v16 add16(v16 a, v16 b)
{
    return (v16)_mm_adds_epi16((__m128i)a, (__m128i)b);
}

INLINE v16 max16(v16 a, v16 b)
{
    return (v16)_mm_max_epi16((__m128i)a, (__m128i)b);
}

INLINE v16 min16(v16 a, v16 b)
{
    return (v16)_mm_min_epi16((__m128i)a, (__m128i)b);
}
#else
INLINE int16_t saturate16(int32_t i)
{
    return (int16_t)(i < INT16_MIN ? INT16_MIN : i > INT16_MAX ? INT16_MAX : i);
}

INLINE v16 narrow2(vint a, vint b)
{
    return (v16){saturate16(a[0]), saturate16(a[1]), saturate16(a[2]), saturate16(a[3]),
                 saturate16(b[0]), saturate16(b[1]), saturate16(b[2]), saturate16(b[3])};
}

INLINE v16 add16(v16 a, v16 b)
{
    for (int i = 0; i < WIDE; i++)
        a[i] = saturate16(a[i] + b[i]);
    return a;
}

INLINE v16 max16(v16 a, v16 b)
{
    const v16 more = (v16)(a > b);
    return (a & more) | (b & ~more);
}

INLINE v16 min16(v16 a, v16 b)
{
    const v16 less = (v16)(a < b);
    return (a & less) | (b & ~less);
}
#endif

INLINE v16 narrow1(vint a)
{
    return narrow2(a, a);
}

INLINE vbytes bytes_of(v16 v)
{
    return __builtin_convertvector(v, vbytes);
}

INLINE v16 widen(vbytes v)
{
    return __builtin_convertvector(v, v16);
}

INLINE vint widen_a(v16 v)
{
    return (vint){v[0], v[1], v[2], v[3]};
}

INLINE vint widen_b(v16 v)
{
    return (vint){v[4], v[5], v[6], v[7]};
}

INLINE vint widen_one(v16 v)
{
    return widen_a(v);
}
#endif

#if defined(EW_ISA_IS_avx2)
/* Load and store n bytes, 1 to WIDE, as two overlapping pieces: a detour through memory would fail
 * store forwarding. */
INLINE vbytes load_part_bytes(const uint8_t *p, int64_t n)
{
    uint64_t low, high = 0;
    uint32_t first, last;
    if (n >= 8) {
        memcpy(&low, p, 8);
        memcpy(&high, p + n - 8, 8);
        high = n == 8 ? 0 : high >> 8 * (16 - n);
    } else if (n >= 4) {
        memcpy(&first, p, 4);
        memcpy(&last, p + n - 4, 4);
        low = first | (uint64_t)last << 8 * (n - 4);
    } else
        low = p[0] | (uint64_t)p[n / 2] << 8 * (n / 2) | (uint64_t)p[n - 1] << 8 * (n - 1);
    return (vbytes)_mm_set_epi64x((int64_t)high, (int64_t)low);
}

INLINE void store_part_bytes(uint8_t *p, vbytes v, int64_t n)
{
    const uint64_t low = (uint64_t)_mm_cvtsi128_si64((__m128i)v);
    if (n >= 8) {
        const uint64_t high = (uint64_t)_mm_extract_epi64((__m128i)v, 1);
        const uint64_t end = n == 8 ? low : low >> 8 * (n - 8) | high << 8 * (16 - n);
        memcpy(p + n - 8, &end, 8);
        memcpy(p, &low, 8);
    } else if (n >= 4) {
        const uint32_t first = (uint32_t)low, last = (uint32_t)(low >> 8 * (n - 4));
        memcpy(p, &first, 4);
        memcpy(p + n - 4, &last, 4);
    } else {
        p[0] = (uint8_t)low;
        p[n / 2] = (uint8_t)(low >> 8 * (n / 2));
        p[n - 1] = (uint8_t)(low >> 8 * (n - 1));
    }
}

INLINE vbytes load_bytes(const uint8_t *p, int64_t n)
{
    return n == WIDE ? (vbytes)_mm_loadu_si128((const __m128i *)(const void *)p)
                     : load_part_bytes(p, n);
}

INLINE void store_bytes(uint8_t *p, vbytes v, int64_t n)
{
    if (n == WIDE)
        _mm_storeu_si128((__m128i *)(void *)p, (__m128i)v);
    else
        store_part_bytes(p, v, n);
}
#elif !defined(EW_ISA_IS_avx512)
/* Copies fewer than WIDE bytes in pieces of constant size, without a call of memcpy. */
INLINE void copy_part(void *to, const void *from, int64_t n)
{
    int64_t at = 0;
    for (int64_t size = WIDE / 2; size >= 1; size /= 2)
        if (n & size) {
            const void *piece = (const uint8_t *)from + at;
            void *out = (uint8_t *)to + at;
            switch (size) {
            case 8:
                memcpy(out, piece, 8);
                break;
            case 4:
                memcpy(out, piece, 4);
                break;
            case 2:
                memcpy(out, piece, 2);
                break;
            default:
                memcpy(out, piece, 1);
            }
            at += size;
        }
}

/* Load and store n bytes, 1 to WIDE. */
INLINE vbytes load_bytes(const uint8_t *p, int64_t n)
{
    vbytes v = {0};
    if (n == WIDE)
        memcpy(&v, p, WIDE);
    else
        copy_part(&v, p, n);
    return v;
}

INLINE void store_bytes(uint8_t *p, vbytes v, int64_t n)
{
    if (n == WIDE)
        memcpy(p, &v, WIDE);
    else
        copy_part(p, &v, n);
}
#endif

/* widen_a and widen_b of bytes as floats plus FLOAT_BASE: with 0x4b00 as upper half, the bits of b
 * are the float 2^23 + b. */
#if defined(EW_ISA_IS_avx512) || defined(EW_ISA_IS_avx2)
#define FLOAT_BASE 8388608.0f
#if defined(EW_ISA_IS_avx512)
#define UNPACK(part, v) (vec) _mm512_unpack##part##_epi16((__m512i)(v), _mm512_set1_epi16(0x4b00))
#else
#define UNPACK(part, v) (vec) _mm256_unpack##part##_epi16((__m256i)(v), _mm256_set1_epi16(0x4b00))
#endif

INLINE vec float_a(v16 v)
{
    return UNPACK(lo, v);
}

INLINE vec float_b(v16 v)
{
    return UNPACK(hi, v);
}
#else
#define FLOAT_BASE 0.0f

INLINE vec float_a(v16 v)
{
    return to_float(widen_a(v));
}

INLINE vec float_b(v16 v)
{
    return to_float(widen_b(v));
}
#endif

INLINE v16 splat16(int32_t i)
{
    return (int16_t)i - (v16){0};
}

/* Rounds to nearest even. */
INLINE vec round_float(vec t)
{
#if defined(EW_ISA_IS_avx512)
    return (vec)_mm512_roundscale_ps((__m512)t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(EW_ISA_IS_avx2)
    return (vec)_mm256_round_ps((__m256)t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    return to_float(round_int(t));
#endif
}

INLINE vec clamp(vec t, float lo, float hi)
{
    return vmin(vmax(t, splat(lo)), splat(hi));
}

#endif
