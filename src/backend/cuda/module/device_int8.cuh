/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of 8-bit tensors on the device: op/quant.h's, to the bit. */
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

/* ew_quant_round: half to even, then the zero point, within the type.  Floats hold every integer
 * that is not beyond the types. */
__device__ inline int saturate(float v, int zero, int is_signed)
{
    const float q = rintf(v) + (float)zero;
    const int lo = is_signed ? -128 : 0, hi = lo + 255;
    if (isnan(q))
        return zero;
    return q <= (float)lo ? lo : q >= (float)hi ? hi : (int)q;
}

/* acc + the sum of four products of bytes of a and signed ones of b. */
template <bool SIGNED> __device__ inline int dot4(unsigned a, unsigned b, int acc)
{
    if (SIGNED)
        asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(acc) : "r"(a), "r"(b));
    else
        asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(acc) : "r"(a), "r"(b));
    return acc;
}

/* ew_cuda_qfilters, on the device. */
__device__ inline size_t ew_cuda_qfilters_on(const ew_cuda_window &g)
{
    return 256 + ((size_t)g.k * 8 + 255) / 256 * 256;
}

#endif
