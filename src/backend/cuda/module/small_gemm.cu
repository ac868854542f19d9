/* SPDX-License-Identifier: Apache-2.0 */
/* Small float32 matrix products (dense layers of LeNet-5), for which cuBLASLt's tiles leave most of
 * the device idle: a warp per output if both operands are contiguous along k, else a thread per
 * output. */
#include "backend/cuda/module/device_math.cuh"

#define THREADS 256
#define WARPS   (THREADS / 32)

__device__ static void finish(const ew_cuda_gemm &g, int64_t at, float sum)
{
    float *y = static_cast<float *>(g.y) + at;
    sum *= g.alpha;
    if (g.beta != 0)
        sum += g.beta * *y;
    sum += g.bias ? g.bias[at % g.n] : 0;
    sum += g.residual ? static_cast<const float *>(g.residual)[at] : 0;
    *y = act_apply(g.act, sum);
}

/* A [m, k], B [n, k]. */
__global__ void __launch_bounds__(THREADS) dot_kernel(const ew_cuda_gemm g)
{
    const int64_t at = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (at >= g.m * g.n)
        return;
    const int lane = threadIdx.x % 32;
    const float *a = static_cast<const float *>(g.a) + at / g.n * g.k;
    const float *b = static_cast<const float *>(g.b) + at % g.n * g.k;
    float sum = 0;
#pragma unroll 4
    for (int64_t i = lane; i < g.k; i += 32)
        sum += a[i] * b[i];
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (lane == 0)
        finish(g, at, sum);
}

__global__ void __launch_bounds__(THREADS) each_kernel(const ew_cuda_gemm g)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= g.m * g.n)
        return;
    const int64_t i = at / g.n, j = at % g.n;
    const float *a = static_cast<const float *>(g.a) + (g.trans_a ? i : i * g.k);
    const float *b = static_cast<const float *>(g.b) + (g.trans_b ? j * g.k : j);
    const int64_t step_a = g.trans_a ? g.m : 1, step_b = g.trans_b ? 1 : g.n;
    float sum = 0;
#pragma unroll 8
    for (int64_t k = 0; k < g.k; k++)
        sum += a[k * step_a] * b[k * step_b];
    finish(g, at, sum);
}

/* cudaErrorNotSupported: too large, or not float32. */
extern "C" int ew_cu_small_gemm(ew_cuda_queue *q, const ew_cuda_gemm *g)
{
    const int64_t count = g->m * g->n;
    const bool dots = !g->trans_a && g->trans_b && g->k >= 32;
    if (g->type != EW_CUDA_F32 || g->batch > 1 || count * g->k > 1 << 21 || (!dots && g->k > 512) ||
        count > 1 << 20)
        return cudaErrorNotSupported;
    if (dots)
        dot_kernel<<<(unsigned)((count + WARPS - 1) / WARPS), THREADS, 0, stream_of(q)>>>(*g);
    else
        each_kernel<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, stream_of(q)>>>(*g);
    return cudaGetLastError();
}
