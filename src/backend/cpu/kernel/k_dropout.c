/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: the random numbers of base/rng.h by vectors, and the product with them.  A number takes
 * 64-bit lanes, so a step is half a vector of floats. */
#include "backend/cpu/kernel/vec.h"
#include "base/rng.h"

#define WIDE (LANES / 2)

typedef uint64_t vword __attribute__((vector_size(WIDE * 8)));
typedef int64_t vlong __attribute__((vector_size(WIDE * 8)));
typedef double vdouble __attribute__((vector_size(WIDE * 8)));
typedef float vnarrow __attribute__((vector_size(WIDE * 4)));
typedef float vnarrow_u __attribute__((vector_size(WIDE * 4), may_alias, aligned(4)));

/* Products of the lower halves; compilers do not see that the upper ones do not matter. */
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

/* Philox for the indices of these lanes; only lower halves of the words mean something. */
INLINE vword draw(uint64_t seed, vword index)
{
    vword v0 = index, v1 = index >> 32, v2 = {0}, v3 = {0};
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
    return (v0 & 0xffffffffu) | v1 << 32;
}

struct rule {
    uint64_t seed;
    int64_t below; /* of 2^53: what is dropped */
    double keep;
};

INLINE vdouble factors(const struct rule *r, int64_t at)
{
    vword index;
    for (int i = 0; i < WIDE; i++)
        index[i] = (uint64_t)(at + i);
    const vlong keep = (vlong)(draw(r->seed, index) >> 11) >= r->below;
    return (vdouble)(keep & (vlong)(r->keep - (vdouble){0}));
}

INLINE vdouble widen(const float *p)
{
    return __builtin_convertvector((vnarrow)(*(const vnarrow_u *)p), vdouble);
}

INLINE void step(const struct ew_dropout *d, vdouble factor, const float *x, float *y)
{
    const vdouble v = widen(x) * factor;
    *(vnarrow_u *)y = __builtin_convertvector(d->add ? widen(y) + v : v, vnarrow);
}

void EW_K(dropout_run)(const struct ew_dropout *d, int64_t begin, int64_t end)
{
    /* u < ratio for u = n / 2^53 is n < ratio * 2^53, and n is whole. */
    const struct rule r = {.seed = d->seed,
                           .below = (int64_t)ceil(d->ratio * 0x1p53),
                           .keep = d->ratio > 0 ? 1 / (1 - d->ratio) : 1};
    int64_t i = begin;
    for (; i + WIDE <= end; i += WIDE)
        step(d, factors(&r, i), d->x + i, d->y + i);
    if (i == end)
        return;
    float x[WIDE] = {0}, y[WIDE] = {0};
    for (int64_t j = i; j < end; j++) {
        x[j - i] = d->x[j];
        y[j - i] = d->y[j];
    }
    step(d, factors(&r, i), x, y);
    for (int64_t j = i; j < end; j++)
        d->y[j] = y[j - i];
}
