/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that CUDA C++ has no function for.  The host-executed module of the tests brings its
 * own (tests/cuda_host). */
#ifndef EW_BACKEND_CUDA_MODULE_PTX_CUH
#define EW_BACKEND_CUDA_MODULE_PTX_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#ifndef EW_CUDA_HOST

/* bfloat16 bits of v, rounded to nearest even. */
__device__ inline uint16_t ptx_bf16_of(float v)
{
    uint16_t r = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
#endif
    return r;
}

/* acc + dot product of 4 bytes of a (signed or not) and 4 signed bytes of b. */
template <bool SIGNED> __device__ inline int ptx_dp4a(unsigned a, unsigned b, int acc)
{
    if (SIGNED)
        asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(acc) : "r"(a), "r"(b));
    else
        asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(acc) : "r"(a), "r"(b));
    return acc;
}

/* c += a [16 x 8] b [8 x 8], by a warp.  A lane holds a[lane / 4 (+ 8)][lane % 4 * 2 ..], b[lane %
 * 4
 * * 2 ..][lane / 4] and, of c, the elements at a's positions. */
__device__ inline void ptx_mma_f16(float *c, const unsigned *a, unsigned b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
#endif
}

__device__ inline void ptx_mma_bf16(float *c, const unsigned *a, unsigned b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
#endif
}

/* c += a [16 x 32] b [32 x 8], by a warp.  A lane holds a[lane / 4][lane % 4 * 4 ..], 8 rows below,
 * and both 16 columns on; b[lane % 4 * 4 ..][lane / 4], and 16 rows on; c[lane / 4][lane % 4 * 2
 * ..] and 8 rows below. */
template <bool SIGNED>
__device__ inline void ptx_mma_int8(int *c, const unsigned *a, const unsigned *b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (SIGNED)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

#endif

#endif
