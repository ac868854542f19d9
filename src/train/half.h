/* SPDX-License-Identifier: Apache-2.0 */
/* Branch-free float16 conversions for messages, for magnitudes up to 65504, which compilers
 * vectorise.  Subnormals (below 2^-14, as most gradients are) are rounded by adding 0.5, whose
 * float32 ulp, 2^-24, is float16's smallest step. */
#ifndef EW_TRAIN_HALF_H
#define EW_TRAIN_HALF_H

#include <stdint.h>
#include <string.h>

#define EW_HALF_MOST 65504.f

static inline uint32_t ew_half_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static inline float ew_half_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

/* Rounds to nearest even. */
static inline uint16_t ew_half_from(float f)
{
    const uint32_t all = ew_half_bits(f), sign = (all >> 16) & 0x8000, u = all & 0x7fffffff;
    const uint32_t small = ew_half_bits(ew_half_float(u) + 0.5f) - 0x3f000000;
    const uint32_t usual = (u + 0xfff + ((u >> 13) & 1) - 0x38000000) >> 13;
    return (uint16_t)(sign | (u < 0x38800000 ? small : usual));
}

static inline float ew_half_to(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, m = h & 0x7fff;
    const uint32_t small = ew_half_bits(ew_half_float(0x3f000000 | m) - 0.5f);
    return ew_half_float(sign | (m < 0x400 ? small : (m << 13) + 0x38000000));
}

#endif
