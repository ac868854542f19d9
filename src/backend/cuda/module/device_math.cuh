/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the .cu files: storage types, vector loads, activations, launch sizes. */
#ifndef EW_BACKEND_CUDA_MODULE_DEVICE_MATH_CUH
#define EW_BACKEND_CUDA_MODULE_DEVICE_MATH_CUH

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "backend/cuda/kernels.h"
#include "backend/cuda/module/ptx.cuh"

/* bfloat16 as bits: CUDA 11's own type has no conversions on cards before 8.0. */
struct bf16 {
    uint16_t bits;
};

__device__ inline float to_float(float v)
{
    return v;
}
__device__ inline float to_float(__half v)
{
    return __half2float(v);
}
__device__ inline float to_float(bf16 v)
{
    return __uint_as_float((unsigned)v.bits << 16);
}

template <typename T> __device__ inline T from_float(float v);
template <> __device__ inline float from_float<float>(float v)
{
    return v;
}
template <> __device__ inline __half from_float<__half>(float v)
{
    return __float2half_rn(v);
}
template <> __device__ inline bf16 from_float<bf16>(float v)
{
    bf16 r;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    r.bits = ptx_bf16_of(v);
#else
    const unsigned u = __float_as_uint(v);
    r.bits = isnan(v) ? 0x7fc0 : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
#endif
    return r;
}

template <typename T, int V> struct alignas(sizeof(T) * V) pack {
    T v[V];
};

template <int V, typename T> __device__ inline void load(const T *p, float out[V])
{
    const pack<T, V> r = *reinterpret_cast<const pack<T, V> *>(p);
#pragma unroll
    for (int i = 0; i < V; i++)
        out[i] = to_float(r.v[i]);
}

template <int V, typename T> __device__ inline void store(T *p, const float in[V])
{
    pack<T, V> r;
#pragma unroll
    for (int i = 0; i < V; i++)
        r.v[i] = from_float<T>(in[i]);
    *reinterpret_cast<pack<T, V> *>(p) = r;
}

/* V values in 32-bit registers, as stored in memory: a pack of 16-bit values would use a register
 * for each. */
template <typename T, int V, bool PAIRS = sizeof(T) == 2 && V % 2 == 0> struct held {
    pack<T, V> p;
    __device__ void read(const T *from)
    {
        p = *reinterpret_cast<const pack<T, V> *>(from);
    }
    __device__ float at(int i) const
    {
        return to_float(p.v[i]);
    }
};
__device__ inline float half_at(unsigned pair, int i, bf16)
{
    return __uint_as_float(i ? pair & 0xffff0000u : pair << 16);
}
__device__ inline float half_at(unsigned pair, int i, __half)
{
    const __half_raw r = {(unsigned short)(i ? pair >> 16 : pair & 0xffffu)};
    return __half2float(__half(r));
}
template <typename T, int V> struct held<T, V, true> {
    pack<unsigned, V / 2> p;
    __device__ void read(const T *from)
    {
        p = *reinterpret_cast<const pack<unsigned, V / 2> *>(from);
    }
    __device__ float at(int i) const
    {
        return half_at(p.v[i / 2], i % 2, T());
    }
};

/* store, or accumulate into p */
template <int V, typename T> __device__ inline void put(T *p, const float in[V], int add)
{
    float v[V];
    if (add)
        load<V>(p, v);
#pragma unroll
    for (int i = 0; i < V; i++)
        v[i] = add ? v[i] + in[i] : in[i];
    store<V>(p, v);
}

__device__ inline float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

__device__ inline float hard_swish(float x)
{
    return x >= 3 ? x : x <= -3 ? x * 0 : x * (x + 3) * (1 / 6.f); /* -INFINITY * 0 is nan */
}

__device__ inline float act_apply(const ew_cuda_act &a, float x)
{
    switch (a.kind) {
    case EW_CUDA_ACT_RELU:
        return x > 0 || isnan(x) ? x : 0;
    case EW_CUDA_ACT_CLIP:
        return x < a.lo ? a.lo : x > a.hi ? a.hi : x;
    case EW_CUDA_ACT_LEAKY:
        return x > 0 ? x : x * a.lo;
    case EW_CUDA_ACT_HARD_SWISH:
        return hard_swish(x);
    case EW_CUDA_ACT_HARD_SIGMOID: {
        const float v = x * a.lo + a.hi; /* fminf and fmaxf would drop NaN */
        return v < 0 ? 0 : v > 1 ? 1 : v;
    }
    case EW_CUDA_ACT_SILU:
        return x * sigmoid(x);
    case EW_CUDA_ACT_SIGMOID:
        return sigmoid(x);
    case EW_CUDA_ACT_TANH:
        return tanhf(x);
    case EW_CUDA_ACT_GELU:
        return 0.5f * x * erfcf(-x * 0.707106781f);
    }
    return x;
}

/* Derivative of the activation by its input; at a kink that of the constant side, as in
 * op/epilogue.c. */
__device__ inline float act_slope(const ew_cuda_act &a, float x)
{
    switch (a.kind) {
    case EW_CUDA_ACT_RELU:
        return x > 0;
    case EW_CUDA_ACT_CLIP:
        return x > a.lo && x < a.hi;
    case EW_CUDA_ACT_LEAKY:
        return x > 0 ? 1 : a.lo;
    case EW_CUDA_ACT_HARD_SWISH:
        return x >= 3 ? 1 : x <= -3 ? 0 : x * (1 / 3.f) + 0.5f;
    case EW_CUDA_ACT_HARD_SIGMOID:
        return x * a.lo + a.hi > 0 && x * a.lo + a.hi < 1 ? a.lo : 0;
    case EW_CUDA_ACT_SILU: {
        const float s = sigmoid(x);
        return s * (1 + x * (1 - s));
    }
    case EW_CUDA_ACT_SIGMOID: {
        const float s = sigmoid(x);
        return s * (1 - s);
    }
    case EW_CUDA_ACT_TANH: {
        const float t = tanhf(x);
        return 1 - t * t;
    }
    case EW_CUDA_ACT_GELU:
        return 0.5f * erfcf(-x * 0.707106781f) + 0.398942280f * x * expf(-0.5f * x * x);
    }
    return 1;
}

/* A clip's bounds as outputs of type T have them: an output that was clipped must not seem to lie
 * inside. */
template <typename T> __device__ inline ew_cuda_act act_stored(const ew_cuda_act &a)
{
    ew_cuda_act b = a;
    if (a.kind == EW_CUDA_ACT_CLIP) {
        b.lo = to_float(from_float<T>(a.lo));
        b.hi = to_float(from_float<T>(a.hi));
    }
    return b;
}

/* Activation known at compile time (A): a switch per element costs more than the arithmetic. */
#define EW_ACT_ANY (-1)

template <int A> __device__ inline float act_apply_as(const ew_cuda_act &a, float x)
{
    if (A == EW_CUDA_ACT_NONE)
        return x;
    if (A == EW_CUDA_ACT_RELU)
        return x > 0 || isnan(x) ? x : 0;
    if (A == EW_CUDA_ACT_CLIP)
        return x < a.lo ? a.lo : x > a.hi ? a.hi : x;
    if (A == EW_CUDA_ACT_HARD_SWISH)
        return hard_swish(x);
    return act_apply(a, x);
}

template <int A> __device__ inline float act_slope_as(const ew_cuda_act &a, float x)
{
    if (A == EW_CUDA_ACT_NONE)
        return 1;
    if (A == EW_CUDA_ACT_RELU)
        return x > 0;
    if (A == EW_CUDA_ACT_CLIP)
        return x > a.lo && x < a.hi;
    if (A == EW_CUDA_ACT_HARD_SWISH)
        return x >= 3 ? 1 : x <= -3 ? 0 : x * (1 / 3.f) + 0.5f;
    return act_slope(a, x);
}

/* none, relu and clip as bounds of a clip, so that depthwise and stem kernels need one instance for
 * the three. */
__device__ inline ew_cuda_act as_bounds(const ew_cuda_act &a)
{
    ew_cuda_act b = a;
    if (a.kind != EW_CUDA_ACT_CLIP) {
        b.lo = a.kind == EW_CUDA_ACT_RELU ? 0 : -INFINITY;
        b.hi = INFINITY;
    }
    return b;
}

template <int A> __device__ inline float act_known(const ew_cuda_act &a, float x)
{
    if (A == EW_CUDA_ACT_CLIP)
        return x < a.lo ? a.lo : x > a.hi ? a.hi : x;
    if (A == EW_CUDA_ACT_HARD_SWISH)
        return hard_swish(x);
    if (A == EW_CUDA_ACT_SILU)
        return x * sigmoid(x);
    return act_apply(a, x);
}

static inline cudaStream_t stream_of(const ew_cuda_queue *q)
{
    return static_cast<cudaStream_t>(q->stream);
}

/* Blocks for n elements, `per` a block, limited to a few waves: kernels loop over the rest. */
static inline unsigned blocks_for(const ew_cuda_queue *q, int64_t n, int per)
{
    const int64_t need = (n + per - 1) / per, most = (int64_t)q->processors * 16;
    return (unsigned)(need < 1 ? 1 : need < most ? need : most);
}

static inline bool aligned(const void *p, size_t bytes)
{
    return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

/* Executes the code with T, the storage type. */
#define FOR_TYPE(type, ...)                                                                        \
    switch (type) {                                                                                \
    case EW_CUDA_F16: {                                                                            \
        using T = __half;                                                                          \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    case EW_CUDA_BF16: {                                                                           \
        using T = bf16;                                                                            \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    default: {                                                                                     \
        using T = float;                                                                           \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    }

#endif
