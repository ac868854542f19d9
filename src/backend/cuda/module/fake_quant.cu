/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation-aware training: fake_quant of activations; weights and biases rounded before a step
 * and restored after it. */
#include "backend/cuda/module/device_int8.cuh"

#define THREADS 256

/* ---- Activations ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS) fake_quant_kernel(const ew_cuda_fake_quant p)
{
    const float scale = *p.q.scale;
    const int zero = zero_of(p.q);
    const T *x = static_cast<const T *>(p.x);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < p.n;
         k += (int64_t)gridDim.x * THREADS) {
        const int q = saturate(__fdiv_rn(to_float(x[k]), scale), zero, p.q.is_signed) - zero;
        static_cast<T *>(p.y)[k] = from_float<T>(__fmul_rn((float)q, scale));
    }
}

/* Range as in ew_fake_quant_range: each bound is one float32 product with an integer below 2^9. */
template <typename T>
__global__ void __launch_bounds__(THREADS) fake_quant_back_kernel(const ew_cuda_fake_quant p)
{
    const int zero = zero_of(p.q), least = p.q.is_signed ? -128 : 0;
    const float lo = __fmul_rn((float)(least - zero), *p.q.scale);
    const float hi = __fmul_rn((float)(least + 255 - zero), *p.q.scale);
    const T *x = static_cast<const T *>(p.x), *dy = static_cast<const T *>(p.dy);
    T *dx = static_cast<T *>(p.y);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < p.n;
         k += (int64_t)gridDim.x * THREADS) {
        const float v = to_float(x[k]);
        const float d[1] = {v > lo && v < hi ? to_float(dy[k]) : 0};
        put<1>(dx + k, d, p.add);
    }
}

extern "C" int ew_cu_fake_quant(ew_cuda_queue *q, const ew_cuda_fake_quant *p)
{
    const unsigned blocks = blocks_for(q, p->n, THREADS);
    if (p->back)
        FOR_TYPE(p->type, (fake_quant_back_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)))
    else
        FOR_TYPE(p->type, (fake_quant_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)))
    return cudaGetLastError();
}

/* ---- Weights ---- */

/* Largest magnitude of a channel, in all threads; non-negative floats compare like their bits. */
__device__ static float largest(const ew_cuda_round &p, int channel)
{
    __shared__ int parts[THREADS / 32];
    int most = 0;
    for (int64_t k = threadIdx.x; k < p.outer * p.inner; k += THREADS) {
        const int64_t o = k / p.inner;
        const int64_t at = (o * p.channels + channel) * p.inner + (k - o * p.inner);
        most = max(most, __float_as_int(p.w[at]) & 0x7fffffff);
    }
    for (int lane = 16; lane > 0; lane /= 2)
        most = max(most, __shfl_xor_sync(0xffffffffu, most, lane));
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = most;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++)
        most = max(most, parts[i]);
    return __int_as_float(most);
}

/* ew_weight_scale; most: largest magnitude of the channel */
__device__ static float channel_scale(const ew_cuda_round &p, int channel, float most)
{
    const float needs = p.bias ? (float)(fabs((double)p.bias[channel]) / p.x_scale * 0x1p-29) : 0;
    return fmaxf(most > 0 ? __fdiv_rn(most, 127) : 1, needs);
}

__device__ static float rounded_by_channel(float w, float scale)
{
    const float big = 0x1.8p23f, sum = __fadd_rn(__fdiv_rn(w, scale), big); /* rounds to even, as
                                                                             * the host does */
    const float q = __fsub_rn(sum, big);
    return __fmul_rn(q > 127 ? 127 : q < -127 ? -127 : q, scale);
}

/* ew_pow2_round, dequantised */
__device__ static float rounded_at(float w, int position)
{
    const double q = fmax(fmin(round(ldexp((double)w, position)), 127.), -128.);
    return ldexpf((float)(int)q, -position);
}

template <typename T> __device__ static void keep(const ew_cuda_round &p, int64_t at, float rounded)
{
    p.kept[at] = p.x[at];
    p.rounded[at] = p.x[at] = rounded;
    if (p.copy)
        static_cast<T *>(p.copy)[at] = from_float<T>(rounded);
}

/* One block per channel. */
template <typename T> __global__ void __launch_bounds__(THREADS) round_kernel(const ew_cuda_round p)
{
    const int channel = (int)blockIdx.x;
    const float scale = p.pow2 ? 1 : channel_scale(p, channel, largest(p, channel));
    for (int64_t k = threadIdx.x; k < p.outer * p.inner; k += THREADS) {
        const int64_t o = k / p.inner;
        const int64_t at = (o * p.channels + channel) * p.inner + (k - o * p.inner);
        const float x = p.x[at];
        keep<T>(p, at, p.pow2 ? rounded_at(x, p.position) : rounded_by_channel(x, scale));
    }
}

/* One block per channel of the weights; its first thread rounds the bias. */
template <typename T>
__global__ void __launch_bounds__(THREADS) round_bias_kernel(const ew_cuda_round p)
{
    const int channel = (int)blockIdx.x;
    const float most = largest(p, channel);
    if (threadIdx.x > 0)
        return;
    const float scale = __fmul_rn((float)p.x_scale, channel_scale(p, channel, most));
    const int q = (int)rint((double)p.x[channel] / (double)scale); /* ew_bias_round */
    keep<T>(p, channel, __fmul_rn((float)q, scale));
}

extern "C" int ew_cu_round_weights(ew_cuda_queue *q, const ew_cuda_round *p)
{
    if (p->channels == 0)
        return 0;
    const unsigned blocks = (unsigned)p->channels;
    if (p->is_bias)
        FOR_TYPE(p->copy_type, (round_bias_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)))
    else
        FOR_TYPE(p->copy_type, (round_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)))
    return cudaGetLastError();
}

__global__ void __launch_bounds__(THREADS)
    restore_kernel(float *w, const float *kept, const float *rounded, int64_t n)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS)
        w[k] = __fadd_rn(kept[k], __fsub_rn(w[k], rounded[k]));
}

extern "C" int ew_cu_restore_weights(ew_cuda_queue *q, float *w, const float *kept,
                                     const float *rounded, int64_t n)
{
    restore_kernel<<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(w, kept, rounded, n);
    return cudaGetLastError();
}
