/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit arithmetic on the device, bit-identical to op/quant.h. */
#ifndef EW_BACKEND_CUDA_MODULE_DEVICE_INT8_CUH
#define EW_BACKEND_CUDA_MODULE_DEVICE_INT8_CUH

#include "backend/cuda/module/device_math.cuh"

__device__ inline int byte_at(const void *p, int64_t i, int is_signed)
{
    return is_signed ? static_cast<const int8_t *>(p)[i] : static_cast<const uint8_t *>(p)[i];
}

__device__ inline int zero_of(const ew_cuda_quant &q)
{
    return q.zero ? byte_at(q.zero, 0, q.is_signed) : 0;
}

/* ew_quant_ratio */
__device__ inline float ratio_of(float x, float w, float y)
{
    return __fdiv_rn(__fmul_rn(x, w), y);
}

/* ew_quant_round: rounds half to even, adds the zero point, saturates.  Clamping in float is exact:
 * it represents all integers of the range. */
__device__ inline int saturate(float v, int zero, int is_signed)
{
    const float q = rintf(v) + (float)zero;
    const int lo = is_signed ? -128 : 0, hi = lo + 255;
    if (isnan(q))
        return zero;
    return q <= (float)lo ? lo : q >= (float)hi ? hi : (int)q;
}

/* ew_cuda_qfilters for device code. */
__device__ inline size_t ew_cuda_qfilters_on(const ew_cuda_window &g)
{
    return 256 + ((size_t)g.k * 8 + 255) / 256 * 256;
}

#endif
