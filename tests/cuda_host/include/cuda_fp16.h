/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's float16 type, as far as the module uses it. */
#ifndef EW_CUDA_HOST_FP16_H
#define EW_CUDA_HOST_FP16_H

#include "host_number.h"

struct __half_raw {
    unsigned short x;
};

struct alignas(2) __half {
    unsigned short bits;
    __half() = default;
    explicit __half(const __half_raw &r) : bits(r.x)
    {
    }
};

inline float __half2float(__half v)
{
    return ew_host::from_f16(v.bits);
}

inline __half __float2half_rn(float v)
{
    return __half(__half_raw{ew_host::to_f16(v)});
}

#endif
