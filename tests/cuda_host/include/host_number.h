/* SPDX-License-Identifier: Apache-2.0 */
/* Number formats of the device: float16, bfloat16 and TF32, rounded to nearest, ties to even. */
#ifndef EW_CUDA_HOST_NUMBER_H
#define EW_CUDA_HOST_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace ew_host
{

inline uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof(u));
    return u;
}

inline float float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof(v));
    return v;
}

inline float from_bf16(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

inline uint16_t to_bf16(float v)
{
    const uint32_t u = bits_of(v);
    return v != v ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

inline float from_f16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00) /* infinity and nan */
        return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400)
        return float_of(sign | ((rest << 13) + ((127 - 15) << 23)));
    const float v = (float)rest * 0x1p-24f; /* subnormal */
    return sign ? -v : v;
}

inline uint16_t to_f16(float v)
{
    const uint32_t u = bits_of(v), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
    if (v != v)
        return 0x7fff;
    if (size >= 0x477ff000) /* rounds to 2^16 or more */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) /* subnormal: the sum's last bit is worth 2^-24 */
        return (uint16_t)(sign | (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)));
    return (uint16_t)(sign | ((size + 0xfff + (size >> 13 & 1) - ((127 - 15) << 23)) >> 13));
}

inline float to_tf32(float v)
{
    const uint32_t u = bits_of(v);
    return v != v ? v : float_of((u + 0xfff + (u >> 13 & 1)) & ~0x1fffu);
}

} // namespace ew_host

#endif
