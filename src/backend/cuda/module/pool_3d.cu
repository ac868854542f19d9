/* SPDX-License-Identifier: Apache-2.0 */
/* Pools with three-dimensional windows (video), forward and backward: one element per thread. */
#include "backend/cuda/module/device_math.cuh"

#define THREADS 256

/* One dimension of the windows. */
struct pool_axis {
    int in, out, k, s, pad, pad_end, d;
};

__device__ static pool_axis axis_of(const ew_cuda_pool &p, int i)
{
    const ew_cuda_window &g = p.g;
    if (i == 0)
        return {g.d, g.od, g.kd, g.sd, g.pd, p.pad_end_d, g.dd};
    if (i == 1)
        return {g.h, g.oh, g.kh, g.sh, g.ph, p.pad_end_h, g.dh};
    return {g.w, g.ow, g.kw, g.sw, g.pw, p.pad_end_w, g.dw};
}

/* Positions *from, *from + *step, ... below *to of window o. */
__device__ static void range(const pool_axis &a, int adaptive, int o, int *from, int *to, int *step)
{
    *from = adaptive ? (int)((int64_t)o * a.in / a.out) : o * a.s - a.pad;
    *to = adaptive ? (int)(((int64_t)(o + 1) * a.in + a.out - 1) / a.out)
                   : *from + (a.k - 1) * a.d + 1;
    *step = adaptive ? 1 : a.d;
}

/* Positions of window o that count in the divisor of a mean. */
__device__ static int counted(const pool_axis &a, const ew_cuda_pool &p, int o)
{
    int from, to, step, n = 0;
    range(a, p.adaptive, o, &from, &to, &step);
    for (int i = from; i < to; i += step)
        n += p.count_pad ? i < a.in + a.pad_end : i >= 0 && i < a.in;
    return n;
}

/* Coordinates and channel of element k of [n, d, h, w, c]; returns the image. */
__device__ static int64_t split(int64_t k, const int *dims, int c, int *at, int *channel)
{
    *channel = (int)(k % c);
    k /= c;
    for (int i = 2; i >= 0; i--) {
        at[i] = (int)(k % dims[i]);
        k /= dims[i];
    }
    return k;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) pool_kernel(const ew_cuda_pool p, int64_t count)
{
    const ew_cuda_window &g = p.g;
    const T *x = static_cast<const T *>(p.x);
    const int dims[] = {g.od, g.oh, g.ow};
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * THREADS) {
        int o[3], c, from[3], to[3], step[3];
        const int64_t n = split(k, dims, g.c, o, &c);
        for (int i = 0; i < 3; i++)
            range(axis_of(p, i), p.adaptive, o[i], &from[i], &to[i], &step[i]);
        float best = 0;
        int at = 0, tap = 0;
        bool any = false;
        for (int iz = from[0]; iz < to[0]; iz += step[0])
            for (int iy = from[1]; iy < to[1]; iy += step[1])
                for (int ix = from[2]; ix < to[2]; ix += step[2], tap++) {
                    if (iz < 0 || iz >= g.d || iy < 0 || iy >= g.h || ix < 0 || ix >= g.w)
                        continue;
                    const float v = to_float(x[(((n * g.d + iz) * g.h + iy) * g.w + ix) * g.c + c]);
                    if (p.kind != EW_CUDA_POOL_MAX) {
                        best += v;
                    } else if (!any || v > best || isnan(v)) {
                        best = v;
                        at = tap;
                    }
                    any = true;
                }
        if (p.kind != EW_CUDA_POOL_MAX)
            best /= (float)(counted(axis_of(p, 0), p, o[0]) * counted(axis_of(p, 1), p, o[1]) *
                            counted(axis_of(p, 2), p, o[2]));
        static_cast<T *>(p.y)[k] = from_float<T>(best);
        if (p.index)
            p.index[k] = (uint8_t)at;
    }
}

/* First and last window that may contain position i. */
__device__ static void readers(const pool_axis &a, int adaptive, int i, int *from, int *to)
{
    const int low = i + a.pad - (a.k - 1) * a.d;
    *from = adaptive ? (int)((int64_t)i * a.out / a.in) : low <= 0 ? 0 : (low + a.s - 1) / a.s;
    *to = adaptive ? (int)(((int64_t)(i + 1) * a.out + a.in - 1) / a.in) - 1 : (i + a.pad) / a.s;
    *to = *to < a.out - 1 ? *to : a.out - 1;
}

/* Index of position i in window o, and the window's length; -1: not in it. */
__device__ static int place(const pool_axis &a, int adaptive, int o, int i, int *length)
{
    int from, to, step;
    range(a, adaptive, o, &from, &to, &step);
    *length = adaptive ? to - from : a.k;
    return i < from || i >= to || (i - from) % step ? -1 : (i - from) / step;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) pool_back_kernel(const ew_cuda_pool p, int64_t count)
{
    const ew_cuda_window &g = p.g;
    const T *dy = static_cast<const T *>(p.dy);
    const pool_axis a[] = {axis_of(p, 0), axis_of(p, 1), axis_of(p, 2)};
    const int dims[] = {g.d, g.h, g.w};
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < count;
         k += (int64_t)gridDim.x * THREADS) {
        int i[3], c, from[3], to[3];
        const int64_t n = split(k, dims, g.c, i, &c);
        for (int d = 0; d < 3; d++)
            readers(a[d], p.adaptive, i[d], &from[d], &to[d]);
        float sum = 0;
        for (int oz = from[0]; oz <= to[0]; oz++)
            for (int oy = from[1]; oy <= to[1]; oy++)
                for (int ox = from[2]; ox <= to[2]; ox++) {
                    int length[3];
                    const int z = place(a[0], p.adaptive, oz, i[0], &length[0]);
                    const int y = place(a[1], p.adaptive, oy, i[1], &length[1]);
                    const int w = place(a[2], p.adaptive, ox, i[2], &length[2]);
                    if (z < 0 || y < 0 || w < 0)
                        continue;
                    const int64_t at = (((n * g.od + oz) * g.oh + oy) * g.ow + ox) * g.c + c;
                    const float v = to_float(dy[at]);
                    if (p.kind == EW_CUDA_POOL_MAX)
                        sum += p.index[at] == (z * length[1] + y) * length[2] + w ? v : 0;
                    else
                        sum += v / (float)(counted(a[0], p, oz) * counted(a[1], p, oy) *
                                           counted(a[2], p, ox));
                }
        put<1>(static_cast<T *>(p.dx) + k, &sum, p.add);
    }
}

extern "C" int ew_cu_pool_3d(ew_cuda_queue *q, const ew_cuda_pool *p)
{
    const int64_t n = ew_cuda_out_pixels(&p->g) * p->g.c;
    const unsigned blocks = blocks_for(q, n, THREADS);
    FOR_TYPE(p->type, (pool_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p, n)));
    return cudaGetLastError();
}

extern "C" int ew_cu_pool_3d_back(ew_cuda_queue *q, const ew_cuda_pool *p)
{
    const int64_t n = ew_cuda_in_pixels(&p->g) * p->g.c;
    const unsigned blocks = blocks_for(q, n, THREADS);
    FOR_TYPE(p->type, (pool_back_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p, n)));
    return cudaGetLastError();
}
