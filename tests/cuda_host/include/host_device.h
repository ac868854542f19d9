/* SPDX-License-Identifier: Apache-2.0 */
/* The device language for g++: qualifiers, vector types, indices, barriers, warp exchanges,
 * intrinsics, and launches.  ../translate.awk turns kernel<<<...>>>(...) and __shared__ into what
 * is declared here. */
#ifndef EW_CUDA_HOST_DEVICE_H
#define EW_CUDA_HOST_DEVICE_H

#include <functional>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "host_number.h"

#define __host__
#define __device__
#define __global__ static /* files have kernels of the same name */
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

/* ---- Types ---- */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* ---- The running thread: host_block.cpp ---- */

struct ew_host_index {
    unsigned x, y, z;
};

extern ew_host_index threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace ew_host
{

/* Number of the running block; changes with each. */
extern uint64_t block_number;

/* The block's dynamic shared memory. */
extern void *dynamic_shared;

/* Barriers; `where` names the source line. */
void block_barrier(const char *where);
void warp_barrier(unsigned mask, const char *where);

#define EW_HOST_PAYLOAD 32

/* Lanes in `mask` give `bytes` each; returns what all lanes gave, by lane, valid until the lane's
 * next exchange. */
const char (*exchange(unsigned mask, const void *mine, size_t bytes,
                      const char *where))[EW_HOST_PAYLOAD];

/* Lane of the running thread. */
int lane();

template <typename T> T shuffle(unsigned mask, T v, int from, const char *where)
{
    const char(*all)[EW_HOST_PAYLOAD] = exchange(mask, &v, sizeof(v), where);
    if (from >= 0 && from < 32 && mask >> from & 1)
        memcpy(&v, all[from], sizeof(v));
    return v;
}

/* A value that the compiler cannot contract into a fused multiply-add. */
inline float alone(float v)
{
    __asm__("" : "+m"(v));
    return v;
}

} // namespace ew_host

#define EW_HOST_TEXT_(x) #x
#define EW_HOST_TEXT(x)  EW_HOST_TEXT_(x)
#define EW_HOST_WHERE    __FILE__ ":" EW_HOST_TEXT(__LINE__)

/* Behind the declaration of shared memory: fills it with nan in each block. */
#define EW_HOST_FRESH(x)                                                                           \
    do {                                                                                           \
        static uint64_t ew_filled;                                                                 \
        if (ew_filled != ew_host::block_number)                                                    \
            memset(static_cast<void *>(&(x)), 0xff, sizeof(x));                                    \
        ew_filled = ew_host::block_number;                                                         \
    } while (0)

#define __syncthreads() ew_host::block_barrier(EW_HOST_WHERE)
#define __syncwarp()    ew_host::warp_barrier(0xffffffffu, EW_HOST_WHERE)
#define __threadfence() static_cast<void>(0) /* threads take turns */
#define __shfl_xor_sync(mask, v, d)                                                                \
    ew_host::shuffle(mask, v, ew_host::lane() ^ static_cast<int>(d), EW_HOST_WHERE)
#define __shfl_down_sync(mask, v, d)                                                               \
    ew_host::shuffle(mask, v, ew_host::lane() + static_cast<int>(d), EW_HOST_WHERE)

/* ---- Intrinsics ---- */

template <typename T> inline T __ldg(const T *p)
{
    return *p;
}
template <typename T> inline T __ldcg(const T *p)
{
    return *p;
}
inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
inline float __fmul_rn(float a, float b)
{
    return ew_host::alone(a * b);
}
inline float __fadd_rn(float a, float b)
{
    return ew_host::alone(ew_host::alone(a) + ew_host::alone(b));
}
inline float __fsub_rn(float a, float b)
{
    return ew_host::alone(ew_host::alone(a) - ew_host::alone(b));
}
inline float __fdiv_rn(float a, float b)
{
    return ew_host::alone(a / b);
}
inline float __int2float_rn(int v)
{
    return (float)v;
}
inline float __uint_as_float(unsigned v)
{
    return ew_host::float_of(v);
}
inline unsigned __float_as_uint(float v)
{
    return ew_host::bits_of(v);
}
inline int __float_as_int(float v)
{
    return (int)ew_host::bits_of(v);
}
inline float __int_as_float(int v)
{
    return ew_host::float_of((unsigned)v);
}
inline float rsqrtf(float v)
{
    return 1 / sqrtf(v);
}
inline int max(int a, int b)
{
    return a > b ? a : b;
}
inline unsigned atomicInc(unsigned *p, unsigned most)
{
    const unsigned old = *p;
    *p = old >= most ? 0 : old + 1;
    return old;
}

/* ---- Instructions of backend/cuda/module/ptx.cuh ---- */

inline uint16_t ptx_bf16_of(float v)
{
    return ew_host::to_bf16(v);
}
template <bool SIGNED> inline int ptx_dp4a(unsigned a, unsigned b, int acc)
{
    for (int i = 0; i < 32; i += 8) {
        const int byte = (int)(a >> i & 255);
        acc = (int)((unsigned)acc +
                    (unsigned)((SIGNED ? (int8_t)byte : byte) * (int8_t)(b >> i & 255)));
    }
    return acc;
}
void ptx_mma_f16(float *c, const unsigned *a, unsigned b);
void ptx_mma_bf16(float *c, const unsigned *a, unsigned b);
template <bool SIGNED> void ptx_mma_int8(int *c, const unsigned *a, const unsigned *b);

/* ---- Launches ---- */

namespace ew_host
{

struct launch {
    const char *kernel;
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

/* Adds a launch to its stream: `thread` runs the kernel for the running thread. */
void enqueue(const launch &l, const std::function<void()> &thread);

template <class F> struct launcher {
    launch l;
    F kernel;
    template <class... P> void operator()(P... p) const
    {
        const F f = kernel;
        enqueue(l, [f, p...] { f(p...); });
    }
};

template <class F>
launcher<F> prepare(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                    F kernel)
{
    return {{name, grid, block, shared, stream}, kernel};
}

} // namespace ew_host

namespace ew_host
{
/* The most dynamic shared memory that a kernel may have. */
extern size_t shared_limit;
} // namespace ew_host

template <class... P> cudaError_t cudaFuncSetAttribute(void (*)(P...), cudaFuncAttribute, int bytes)
{
    if (bytes > 227 * 1024)
        return cudaErrorInvalidValue;
    if ((size_t)bytes > ew_host::shared_limit) /* of all kernels: launches do not know which one */
        ew_host::shared_limit = (size_t)bytes;
    return cudaSuccess;
}

template <class... P> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, void (*)(P...))
{
    out->ptxVersion = __CUDA_ARCH__ / 10;
    return cudaSuccess;
}

#endif
