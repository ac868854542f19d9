/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout with the random numbers of base/rng.h, vectorised.  Philox multiplies 32-bit words to 64
 * bits, so WIDE counters are computed at a time, each of which gives the numbers of four
 * elements. */
#include "backend/cpu/kernel/common/vec.h"
#include "base/rng.h"

#define WIDE  (LANES / 2)
#define DRAWN (4 * WIDE) /* elements at a time: two vectors */

typedef uint64_t vword __attribute__((vector_size(WIDE * 8)));
typedef int64_t vlong __attribute__((vector_size(WIDE * 8)));
typedef uint32_t vbits __attribute__((vector_size(LANES * 4)));
typedef double vdouble __attribute__((vector_size(WIDE * 8)));
typedef float vnarrow __attribute__((vector_size(WIDE * 4)));
typedef float vnarrow_u __attribute__((vector_size(WIDE * 4), may_alias, aligned(4)));

/* 32 x 32 to 64-bit products of the lower halves; compilers do not see that the upper halves are
 * irrelevant. */
INLINE vword low_product(vword a, uint32_t b)
{
#if defined(EW_ISA_IS_avx512)
    return (vword)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(EW_ISA_IS_avx2)
    return (vword)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
    return (a & 0xffffffffu) * b;
#endif
}

/* Interleaves two vectors. */
#if LANES == 16
#define LOW  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif LANES == 8
#define LOW  0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#else
#define LOW  0, 2
#define HIGH 1, 3
#endif
#if defined(__clang__)
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (vlong){__VA_ARGS__})
#endif

/* The random words of WIDE counters, in the order of counters. */
INLINE void draw(uint64_t seed, uint64_t first, vbits out[2])
{
    vword v0, v1, v2 = {0}, v3 = {0};
    for (int i = 0; i < WIDE; i++)
        v0[i] = first + (uint64_t)i;
    v1 = v0 >> 32;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < EW_PHILOX_ROUNDS; round++) {
        const vword p0 = low_product(v0, EW_PHILOX_MUL0), p1 = low_product(v2, EW_PHILOX_MUL1);
        v0 = (p1 >> 32) ^ v1 ^ k0;
        v1 = p1;
        v2 = (p0 >> 32) ^ v3 ^ k1;
        v3 = p0;
        k0 += EW_PHILOX_KEY0;
        k1 += EW_PHILOX_KEY1;
    }
    /* Only the lower halves are valid. */
    const vword low = (v0 & 0xffffffffu) | v1 << 32, high = (v2 & 0xffffffffu) | v3 << 32;
    out[0] = (vbits)MIX(low, high, LOW);
    out[1] = (vbits)MIX(low, high, HIGH);
}

struct keep_rule {
    uint64_t seed;
    uint32_t below; /* elements whose number is below this are dropped */
    double keep;
};

INLINE vdouble widen(const float *p)
{
    return __builtin_convertvector((vnarrow)(*(const vnarrow_u *)p), vdouble);
}

/* Half a vector of elements; `kept` is a mask of all ones or zeros for each. */
INLINE void step(const struct ew_dropout *d, const int32_t *kept, double keep, const float *x,
                 float *y)
{
    typedef int32_t vhalf __attribute__((vector_size(WIDE * 4)));
    vhalf bits;
    memcpy(&bits, kept, sizeof(bits));
    const vlong mask = __builtin_convertvector(bits, vlong);
    const vdouble v = widen(x) * (vdouble)(mask & (vlong)(keep - (vdouble){0}));
    *(vnarrow_u *)y = __builtin_convertvector(d->add ? widen(y) + v : v, vnarrow);
}

/* DRAWN elements from `at` on, a multiple of four. */
INLINE void drop(const struct ew_dropout *d, const struct keep_rule *r, int64_t at, const float *x,
                 float *y)
{
    vbits words[2];
    int32_t kept[DRAWN];
    draw(r->seed, (uint64_t)at / 4, words);
    for (int i = 0; i < 2; i++) {
        const vint keep = (vint)(words[i] >= r->below);
        memcpy(kept + i * LANES, &keep, sizeof(keep));
    }
    UNROLL
    for (int i = 0; i < DRAWN; i += WIDE)
        step(d, kept + i, r->keep, x + i, y + i);
}

/* Fewer than DRAWN elements, from any position on. */
static void drop_part(const struct ew_dropout *d, const struct keep_rule *r, int64_t begin,
                      int64_t end)
{
    float x[DRAWN] = {0}, y[DRAWN] = {0};
    const int64_t at = begin / 4 * 4;
    for (int64_t i = begin; i < end; i++) {
        x[i - at] = d->x[i];
        y[i - at] = d->y[i];
    }
    drop(d, r, at, x, y);
    for (int64_t i = begin; i < end; i++)
        d->y[i] = y[i - at];
}

void EW_K(dropout_run)(const struct ew_dropout *d, int64_t begin, int64_t end)
{
    /* u < ratio with u = n / 2^32 is n < ratio * 2^32, where n is an integer. */
    const double below = ceil(d->ratio * 0x1p32);
    const bool all = below >= 0x1p32;
    const struct keep_rule r = {.seed = d->seed,
                                .below = all ? 0 : (uint32_t)below,
                                .keep = all            ? 0
                                        : d->ratio > 0 ? 1 / (1 - d->ratio)
                                                       : 1};
    int64_t i = begin;
    if (i % 4 && i < end) {
        const int64_t next = min_i64(i / 4 * 4 + 4, end);
        drop_part(d, &r, i, next);
        i = next;
    }
    for (; i + DRAWN <= end; i += DRAWN)
        drop(d, &r, i, d->x + i, d->y + i);
    for (; i < end; i += DRAWN)
        drop_part(d, &r, i, min_i64(i + DRAWN, end));
}
