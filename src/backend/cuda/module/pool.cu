/* SPDX-License-Identifier: Apache-2.0 */
/* Pools over two dimensions, forward and backward. */
#include "backend/cuda/module/device_math.cuh"

#define THREADS 256

/* Range [*from, *to) of rows or columns of window o, padding included. */
__device__ static void pool_range(int o, int in, int out, int k, int s, int pad, int d,
                                  int adaptive, int *from, int *to)
{
    if (adaptive) {
        *from = (int)((int64_t)o * in / out);
        *to = (int)(((int64_t)(o + 1) * in + out - 1) / out);
        return;
    }
    *from = o * s - pad;
    *to = *from + (k - 1) * d + 1;
}

/* Divisor of a mean: the elements inside the image, or with count_pad also those in the padding. */
__device__ static int pool_count(int from, int to, int d, int in, int pad_end, int count_pad)
{
    int n = 0;
    for (int i = from; i < to; i += d)
        n += count_pad ? i < in + pad_end : i >= 0 && i < in;
    return n;
}

template <int V, typename T>
__global__ void __launch_bounds__(THREADS) pool_kernel(const ew_cuda_pool p)
{
    const ew_cuda_window &g = p.g;
    const T *x = static_cast<const T *>(p.x);
    const int across = g.c / V;
    const unsigned jobs = (unsigned)(g.n * g.oh * g.ow * across);
    for (unsigned k = blockIdx.x * THREADS + threadIdx.x; k < jobs; k += gridDim.x * THREADS) {
        const unsigned line = k / (unsigned)across / (unsigned)g.ow;
        const int64_t pixel = k / (unsigned)across;
        const int c = (int)(k % (unsigned)across) * V;
        const int ox = (int)((unsigned)pixel - line * g.ow), oy = (int)(line % (unsigned)g.oh);
        const int64_t n = line / (unsigned)g.oh;
        int y0, y1, x0, x1;
        pool_range(oy, g.h, g.oh, g.kh, g.sh, g.ph, g.dh, p.adaptive, &y0, &y1);
        pool_range(ox, g.w, g.ow, g.kw, g.sw, g.pw, g.dw, p.adaptive, &x0, &x1);
        const int dh = p.adaptive ? 1 : g.dh, dw = p.adaptive ? 1 : g.dw;
        const int cols = p.adaptive ? x1 - x0 : g.kw;
        float v[V], best[V];
        int at[V] = {};
        for (int i = 0; i < V; i++)
            best[i] = p.kind == EW_CUDA_POOL_MAX ? -INFINITY : 0;
        bool any = false;
        for (int iy = y0, r = 0; iy < y1; iy += dh, r++)
            for (int ix = x0, t = 0; ix < x1; ix += dw, t++) {
                if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w)
                    continue;
                load<V>(x + ((n * g.h + iy) * g.w + ix) * g.c + c, v);
#pragma unroll
                for (int i = 0; i < V; i++)
                    if (p.kind != EW_CUDA_POOL_MAX) {
                        best[i] += v[i];
                    } else if (!any || v[i] > best[i] || isnan(v[i])) {
                        best[i] = v[i];
                        at[i] = r * cols + t;
                    }
                any = true;
            }
        if (p.kind != EW_CUDA_POOL_MAX) {
            const int count = pool_count(y0, y1, dh, g.h, p.pad_end_h, p.count_pad) *
                              pool_count(x0, x1, dw, g.w, p.pad_end_w, p.count_pad);
            for (int i = 0; i < V; i++)
                best[i] /= (float)count;
        }
        store<V>(static_cast<T *>(p.y) + pixel * g.c + c, best);
        if (p.index) {
            pack<uint8_t, V> places;
#pragma unroll
            for (int i = 0; i < V; i++)
                places.v[i] = (uint8_t)at[i];
            *reinterpret_cast<pack<uint8_t, V> *>(p.index + pixel * g.c + c) = places;
        }
    }
}

/* Max pool with K x K windows, dilation 1: all loads of a window are in flight at once. */
template <int V, int K, bool PLACES, typename T>
__global__ void __launch_bounds__(THREADS) max_pool_kernel(const ew_cuda_pool p)
{
    const ew_cuda_window &g = p.g;
    const unsigned across = (unsigned)(g.c / V), jobs = (unsigned)(g.n * g.oh * g.ow) * across;
    for (unsigned k = blockIdx.x * THREADS + threadIdx.x; k < jobs; k += gridDim.x * THREADS) {
        const unsigned pixel = k / across, line = pixel / (unsigned)g.ow, n = line / (unsigned)g.oh;
        const int y0 = (int)(line - n * g.oh) * g.sh - g.ph;
        const int x0 = (int)(pixel - line * g.ow) * g.sw - g.pw;
        const T *from = static_cast<const T *>(p.x) + (((int64_t)n * g.h + y0) * g.w + x0) * g.c +
                        (int)(k - pixel * across) * V;
        pack<T, V> v[K * K];
        unsigned inside = 0;
#pragma unroll
        for (int i = 0; i < K * K; i++) {
            const int y = y0 + i / K, x = x0 + i % K;
            if (y >= 0 && y < g.h && x >= 0 && x < g.w) {
                inside |= 1u << i;
                v[i] = *reinterpret_cast<const pack<T, V> *>(from + (i / K * g.w + i % K) * g.c);
            }
        }
        float best[V];
        pack<uint8_t, V> places = {};
#pragma unroll
        for (int c = 0; c < V; c++)
            best[c] = -INFINITY;
        bool any = false;
#pragma unroll
        for (int i = 0; i < K * K; i++) {
            if (!(inside >> i & 1))
                continue;
#pragma unroll
            for (int c = 0; c < V; c++) {
                const float x = to_float(v[i].v[c]);
                if (!any || x > best[c] || isnan(x)) {
                    best[c] = x;
                    if (PLACES)
                        places.v[c] = (uint8_t)i;
                }
            }
            any = true;
        }
        store<V>(static_cast<T *>(p.y) + (int64_t)k * V, best);
        if (PLACES)
            *reinterpret_cast<pack<uint8_t, V> *>(p.index + (int64_t)k * V) = places;
    }
}

/* K if a max pool kernel is compiled for this window; else 0. */
static int max_pool_size(const ew_cuda_pool *p)
{
    const ew_cuda_window &g = p->g;
    const bool plain = p->kind == EW_CUDA_POOL_MAX && !p->adaptive && g.dh == 1 && g.dw == 1;
    return plain && g.kh == g.kw && (g.kh == 2 || g.kh == 3) ? g.kh : 0;
}

template <int V, int K, typename T>
static void max_pool_launch(const ew_cuda_pool *p, unsigned blocks, cudaStream_t stream)
{
    if (p->index)
        max_pool_kernel<V, K, true, T><<<blocks, THREADS, 0, stream>>>(*p);
    else
        max_pool_kernel<V, K, false, T><<<blocks, THREADS, 0, stream>>>(*p);
}

/* First and last output whose window contains input i. */
__device__ static void pool_readers(int i, int in, int out, int k, int s, int pad, int d,
                                    int adaptive, int *from, int *to)
{
    if (adaptive) {
        *from = (int)((int64_t)i * out / in);
        *to = (int)(((int64_t)(i + 1) * out + in - 1) / in) - 1;
    } else {
        const int low = i + pad - (k - 1) * d;
        *from = low <= 0 ? 0 : (low + s - 1) / s;
        *to = (i + pad) / s;
    }
    *to = *to < out - 1 ? *to : out - 1;
}

template <int V, typename T>
__global__ void __launch_bounds__(THREADS) pool_back_kernel(const ew_cuda_pool p)
{
    const ew_cuda_window &g = p.g;
    const T *dy = static_cast<const T *>(p.dy);
    const int across = g.c / V;
    const unsigned jobs = (unsigned)(g.n * g.h * g.w * across);
    for (unsigned k = blockIdx.x * THREADS + threadIdx.x; k < jobs; k += gridDim.x * THREADS) {
        const unsigned line = k / (unsigned)across / (unsigned)g.w;
        const int64_t pixel = k / (unsigned)across;
        const int c = (int)(k % (unsigned)across) * V;
        const int ix = (int)((unsigned)pixel - line * g.w), iy = (int)(line % (unsigned)g.h);
        const int64_t n = line / (unsigned)g.h;
        const int dh = p.adaptive ? 1 : g.dh, dw = p.adaptive ? 1 : g.dw;
        int oy0, oy1, ox0, ox1;
        pool_readers(iy, g.h, g.oh, g.kh, g.sh, g.ph, g.dh, p.adaptive, &oy0, &oy1);
        pool_readers(ix, g.w, g.ow, g.kw, g.sw, g.pw, g.dw, p.adaptive, &ox0, &ox1);
        float sum[V] = {};
        for (int oy = oy0; oy <= oy1; oy++)
            for (int ox = ox0; ox <= ox1; ox++) {
                int y0, y1, x0, x1;
                pool_range(oy, g.h, g.oh, g.kh, g.sh, g.ph, g.dh, p.adaptive, &y0, &y1);
                pool_range(ox, g.w, g.ow, g.kw, g.sw, g.pw, g.dw, p.adaptive, &x0, &x1);
                if (iy < y0 || iy >= y1 || (iy - y0) % dh || ix < x0 || ix >= x1 || (ix - x0) % dw)
                    continue;
                const int64_t from = ((n * g.oh + oy) * g.ow + ox) * g.c + c;
                float v[V];
                load<V>(dy + from, v);
                if (p.kind == EW_CUDA_POOL_MAX) {
                    const int tap = (iy - y0) / dh * (p.adaptive ? x1 - x0 : g.kw) + (ix - x0) / dw;
#pragma unroll
                    for (int i = 0; i < V; i++)
                        sum[i] += p.index[from + i] == tap ? v[i] : 0;
                    continue;
                }
                const int count = pool_count(y0, y1, dh, g.h, p.pad_end_h, p.count_pad) *
                                  pool_count(x0, x1, dw, g.w, p.pad_end_w, p.count_pad);
                const float share = 1 / (float)count;
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum[i] += v[i] * share;
            }
        put<V>(static_cast<T *>(p.dx) + pixel * g.c + c, sum, p.add);
    }
}

/* Windows that partition the input: each gradient is written to the inputs of its own window. */
template <int V, typename T>
__global__ void __launch_bounds__(THREADS) pool_apart_back_kernel(const ew_cuda_pool p)
{
    const ew_cuda_window &g = p.g;
    const unsigned across = (unsigned)(g.c / V);
    const unsigned jobs = (unsigned)(g.n * g.oh * g.ow) * across;
    const float share = 1 / (float)(g.kh * g.kw);
    const bool max = p.kind == EW_CUDA_POOL_MAX;
    for (unsigned k = blockIdx.x * THREADS + threadIdx.x; k < jobs; k += gridDim.x * THREADS) {
        const unsigned pixel = k / across, line = pixel / (unsigned)g.ow;
        const int64_t from = (int64_t)k * V;
        const int c = (int)(k - pixel * across) * V;
        float dy[V], v[V];
        pack<uint8_t, V> places;
        load<V>(static_cast<const T *>(p.dy) + from, dy);
        if (max)
            places = *reinterpret_cast<const pack<uint8_t, V> *>(p.index + from);
        T *corner = static_cast<T *>(p.dx) +
                    ((int64_t)line * g.kh * g.w + (int64_t)(pixel - line * g.ow) * g.kw) * g.c + c;
        for (int r = 0; r < g.kh; r++)
            for (int t = 0; t < g.kw; t++) {
#pragma unroll
                for (int i = 0; i < V; i++)
                    v[i] = !max ? dy[i] * share : places.v[i] == r * g.kw + t ? dy[i] : 0;
                put<V>(corner + ((int64_t)r * g.w + t) * g.c, v, p.add);
            }
    }
}

static bool pool_apart(const ew_cuda_pool *p)
{
    const ew_cuda_window &g = p->g;
    return !p->adaptive && g.kh == g.sh && g.kw == g.sw && g.dh == 1 && g.dw == 1 && !g.ph &&
           !g.pw && g.oh * g.kh == g.h && g.ow * g.kw == g.w;
}

/* Channels per thread: 16 bytes if row length and alignment allow, else fewer. */
template <typename T> static int pool_width(const ew_cuda_pool *p, const void *a, const void *b)
{
    int v = (int)(16 / sizeof(T));
    while (v > 1 && (p->g.c % v || !aligned(a, v * sizeof(T)) || !aligned(b, v * sizeof(T)) ||
                     !aligned(p->index, v)))
        v /= 2;
    return v < 4 ? 1 : v;
}

template <int V, typename T>
static void pool_launch_as(ew_cuda_queue *q, const ew_cuda_pool *p, bool back)
{
    const bool apart = back && pool_apart(p);
    const int64_t n = back && !apart ? (int64_t)p->g.n * p->g.h * p->g.w * p->g.c
                                     : (int64_t)p->g.n * p->g.oh * p->g.ow * p->g.c;
    const unsigned blocks = blocks_for(q, n / V, THREADS);
    if (apart)
        pool_apart_back_kernel<V, T><<<blocks, THREADS, 0, stream_of(q)>>>(*p);
    else if (back)
        pool_back_kernel<V, T><<<blocks, THREADS, 0, stream_of(q)>>>(*p);
    else if (max_pool_size(p) == 2)
        max_pool_launch<V, 2, T>(p, blocks, stream_of(q));
    else if (max_pool_size(p) == 3)
        max_pool_launch<V, 3, T>(p, blocks, stream_of(q));
    else
        pool_kernel<V, T><<<blocks, THREADS, 0, stream_of(q)>>>(*p);
}

template <typename T> static void pool_launch(ew_cuda_queue *q, const ew_cuda_pool *p, bool back)
{
    const int v = back ? pool_width<T>(p, p->dy, p->dx) : pool_width<T>(p, p->x, p->y);
    if (v == 8)
        pool_launch_as<8, T>(q, p, back);
    else if (v == 4)
        pool_launch_as<4, T>(q, p, back);
    else
        pool_launch_as<1, T>(q, p, back);
}

extern "C" int ew_cu_pool(ew_cuda_queue *q, const ew_cuda_pool *p)
{
    FOR_TYPE(p->type, pool_launch<T>(q, p, false));
    return cudaGetLastError();
}

extern "C" int ew_cu_pool_back(ew_cuda_queue *q, const ew_cuda_pool *p)
{
    FOR_TYPE(p->type, pool_launch<T>(q, p, true));
    return cudaGetLastError();
}
