/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers. */
#include "base/rng.h"

#include <math.h>

#define TWO_PI 6.283185307179586476925

struct ew_rng_block ew_rng_block(uint64_t seed, uint64_t stream, uint64_t index)
{
    struct ew_rng_block b = {
        {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < EW_PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)EW_PHILOX_MUL0 * b.v[0],
                       p1 = (uint64_t)EW_PHILOX_MUL1 * b.v[2];
        b = (struct ew_rng_block){{(uint32_t)(p1 >> 32) ^ b.v[1] ^ k0, (uint32_t)p1,
                                   (uint32_t)(p0 >> 32) ^ b.v[3] ^ k1, (uint32_t)p0}};
        k0 += EW_PHILOX_KEY0;
        k1 += EW_PHILOX_KEY1;
    }
    return b;
}

static uint64_t low64(struct ew_rng_block b)
{
    return b.v[0] | (uint64_t)b.v[1] << 32;
}

static uint64_t high64(struct ew_rng_block b)
{
    return b.v[2] | (uint64_t)b.v[3] << 32;
}

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

uint64_t ew_rng_u64(uint64_t seed, uint64_t stream, uint64_t index)
{
    return low64(ew_rng_block(seed, stream, index));
}

double ew_rng_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return unit(ew_rng_u64(seed, stream, index));
}

/* Box-Muller; the second value is discarded, so that index i always gives the same number. */
double ew_rng_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    const struct ew_rng_block b = ew_rng_block(seed, stream, index);
    const double radius = sqrt(-2 * log(1 - unit(low64(b)))); /* 1 - u is never 0 */
    return radius * cos(TWO_PI * unit(high64(b)));
}

uint64_t ew_rng_next(struct ew_rng *r)
{
    return ew_rng_u64(r->seed, r->stream, r->index++);
}

double ew_rng_next_uniform(struct ew_rng *r)
{
    return unit(ew_rng_next(r));
}

double ew_rng_next_normal(struct ew_rng *r)
{
    return ew_rng_normal(r->seed, r->stream, r->index++);
}

uint64_t ew_rng_next_below(struct ew_rng *r, uint64_t n)
{
    /* rejection sampling removes the modulo bias */
    const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t v;
    do
        v = ew_rng_next(r);
    while (v >= limit);
    return v % n;
}

void ew_rng_shuffle(struct ew_rng *r, int64_t *order, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)ew_rng_next_below(r, i);
        const int64_t t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}
