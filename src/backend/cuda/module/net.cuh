/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks in two launches: layouts, reductions and epilogues shared by the layers. */
#ifndef EW_BACKEND_CUDA_MODULE_NET_CUH
#define EW_BACKEND_CUDA_MODULE_NET_CUH

#include "backend/cuda/module/device_math.cuh"

#define THREADS 1024
#define WARPS   (THREADS / 32)
#define ALL     0xffffffffu
static_assert(sizeof(ew_cuda_net) <= 4096, "what a launch may be given before CUDA 12");
static_assert(THREADS * 4 == EW_CUDA_NET_PARTS, "a thread's sums have room");

/* An activation in shared memory. */
struct view {
    float *data;
    ew_cuda_layout at;
};

__device__ inline int place(const ew_cuda_layout &l, int y, int x, int c)
{
    return l.start + y * l.row + x * l.column + c * l.channel;
}

/* i / d by multiplication (an integer division costs about a dozen); over = ew_cuda_over(d). */
__device__ inline int divide(int i, unsigned over)
{
    return over ? (int)__umulhi((unsigned)i, over) : i;
}

template <typename V> __device__ inline V warp_sum(V v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(ALL, v, d);
    return v;
}

/* Activations that run as a separate pass (net.cu); the others are fused into the layers' epilogue.
 * Inlining these into every layer would cost registers everywhere. */
__device__ inline bool is_curved(int act)
{
    return act == EW_CUDA_ACT_SIGMOID || act == EW_CUDA_ACT_TANH;
}

__device__ inline float activate(int act, float v)
{
    return act != EW_CUDA_ACT_RELU || v > 0 || isnan(v) ? v : 0;
}

/* Derivative of an activation, from its output y. */
__device__ inline float slope_at(int kind, float y)
{
    return kind == EW_CUDA_ACT_RELU      ? y > 0
           : kind == EW_CUDA_ACT_SIGMOID ? y * (1 - y)
           : kind == EW_CUDA_ACT_TANH    ? 1 - y * y
                                         : 1;
}

/* Epilogue of a sum.  Forward: adds the bias and applies the layer's activation.  Backward:
 * multiplies by the derivative of the previous layer's activation, from its stored output. */
struct sum_epilogue {
    bool back;
    int act;
    const float *operand; /* forward: bias, or NULL; backward: outputs */
    ew_cuda_layout kept;  /* layout of the outputs */
};

/* Loads the operand of sum i (filter index forward, else flat index); called before the sum, to
 * hide the latency. */
__device__ inline float operand_of(const sum_epilogue &e, int i)
{
    return e.operand && (!e.back || e.act != EW_CUDA_ACT_NONE) ? e.operand[i] : 0;
}

__device__ inline float finish(const sum_epilogue &e, float sum, float operand)
{
    return e.back ? sum * slope_at(e.act, operand) : activate(e.act, sum + operand);
}

#endif
