/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit operators other than convolutions: quantise, add, multiply, pool, table lookup. */
#include "backend/cuda/module/device_int8.cuh"

#define THREADS 256

/* ---- Quantise, dequantise ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS) quantize_kernel(const ew_cuda_quantize p)
{
    const float scale = *p.q.scale;
    const int zero = zero_of(p.q);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < p.n;
         k += (int64_t)gridDim.x * THREADS) {
        if (p.back) {
            const int v = byte_at(p.x, k, p.q.is_signed) - zero;
            static_cast<T *>(p.y)[k] = from_float<T>(__fmul_rn((float)v, scale));
        } else {
            const float v = to_float(static_cast<const T *>(p.x)[k]);
            static_cast<uint8_t *>(p.y)[k] =
                (uint8_t)saturate(__fdiv_rn(v, scale), zero, p.q.is_signed);
        }
    }
}

extern "C" int ew_cu_quantize(ew_cuda_queue *q, const ew_cuda_quantize *p)
{
    const unsigned blocks = blocks_for(q, p->n, THREADS);
    FOR_TYPE(p->type, (quantize_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}

/* ---- Two operands ---- */

__global__ void __launch_bounds__(THREADS) binary_kernel(const ew_cuda_qbinary p, int64_t n)
{
    const int zero_a = zero_of(p.a), zero_b = zero_of(p.b), zero = zero_of(p.y);
    const float y = *p.y.scale;
    const float ratio = ratio_of(*p.a.scale, p.multiply ? *p.b.scale : 1, y);
    const float ratio_b = ratio_of(*p.b.scale, 1, y);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        int64_t rest = k, at_a = 0, at_b = 0;
#pragma unroll
        for (int d = 3; d >= 0; d--) {
            const int64_t i = rest % p.dim[d];
            rest /= p.dim[d];
            at_a += i * p.a_stride[d];
            at_b += i * p.b_stride[d];
        }
        const int a = byte_at(p.x_a, at_a, p.a.is_signed) - zero_a;
        const int b = byte_at(p.x_b, at_b, p.b.is_signed) - zero_b;
        const float v = p.multiply
                            ? __fmul_rn((float)(a * b), ratio)
                            : __fadd_rn(__fmul_rn((float)a, ratio), __fmul_rn((float)b, ratio_b));
        const int q = saturate(v, zero, p.y.is_signed);
        static_cast<uint8_t *>(p.out)[k] = (uint8_t)(q < p.lo ? p.lo : q > p.hi ? p.hi : q);
    }
}

extern "C" int ew_cu_qbinary(ew_cuda_queue *q, const ew_cuda_qbinary *p)
{
    const int64_t n = p->dim[0] * p->dim[1] * p->dim[2] * p->dim[3];
    binary_kernel<<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(*p, n);
    return cudaGetLastError();
}

/* ---- Pools ---- */

__global__ void __launch_bounds__(THREADS) pool_kernel(const ew_cuda_qpool p)
{
    const ew_cuda_window &g = p.g;
    const int zero_x = p.mean ? zero_of(p.x) : 0;
    const int64_t count = (int64_t)g.n * g.oh * g.ow * g.c;
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * THREADS) {
        const int64_t pixel = k / g.c, line = pixel / g.ow, n = line / g.oh;
        const int c = (int)(k - pixel * g.c);
        const int y0 = (int)(line % g.oh) * g.sh - g.ph, x0 = (int)(pixel % g.ow) * g.sw - g.pw;
        int sum = 0, best = -256, elements = 0;
        for (int r = 0; r < g.kh; r++)
            for (int t = 0; t < g.kw; t++) {
                const int iy = y0 + r * g.dh, ix = x0 + t * g.dw;
                const bool inside = iy >= 0 && iy < g.h && ix >= 0 && ix < g.w;
                elements += p.count_pad ? iy < g.h + p.pad_end_h && ix < g.w + p.pad_end_w : inside;
                if (!inside)
                    continue;
                const int v = byte_at(p.from, ((n * g.h + iy) * g.w + ix) * g.c + c, p.x.is_signed);
                sum += v - zero_x;
                best = v > best ? v : best;
            }
        if (p.mean) {
            const float y = __fmul_rn(*p.y.scale, (float)elements);
            best = saturate(__fmul_rn(__int2float_rn(sum), ratio_of(*p.x.scale, 1, y)),
                            zero_of(p.y), p.y.is_signed);
        }
        static_cast<uint8_t *>(p.to)[k] = (uint8_t)best;
    }
}

extern "C" int ew_cu_qpool(ew_cuda_queue *q, const ew_cuda_qpool *p)
{
    const int64_t n = (int64_t)p->g.n * p->g.oh * p->g.ow * p->g.c;
    pool_kernel<<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(*p);
    return cudaGetLastError();
}

/* ---- Tables ---- */

__global__ void __launch_bounds__(THREADS)
    lookup_kernel(const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t n)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS)
        y[k] = table[x[k]];
}

extern "C" int ew_cu_lookup(ew_cuda_queue *q, const uint8_t *x, const uint8_t *table, uint8_t *y,
                            int64_t n)
{
    lookup_kernel<<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(x, table, y, n);
    return cudaGetLastError();
}
