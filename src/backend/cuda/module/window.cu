/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution of any geometry, one output per thread: for small layers, and for those that
 * cuDNN does not support (asymmetric padding). */
#include "backend/cuda/module/device_math.cuh"

#define THREADS      256
#define SHARED_BYTES (48 * 1024)
#define DW_CHANNELS  4 /* of one filter tap, per block of direct_dw */

/* Input position of tap (r, t) of output (oy, ox); false: in the padding. */
__device__ static bool tap_at(const ew_cuda_window &g, int oy, int ox, int r, int t, int *iy,
                              int *ix)
{
    *iy = oy * g.sh - g.ph + r * g.dh;
    *ix = ox * g.sw - g.pw + t * g.dw;
    return *iy >= 0 && *iy < g.h && *ix >= 0 && *ix < g.w;
}

/* Output whose tap (r, t) reads input (iy, ix); false: none. */
__device__ static bool tap_from(const ew_cuda_window &g, int iy, int ix, int r, int t, int *oy,
                                int *ox)
{
    const int ty = iy + g.ph - r * g.dh, tx = ix + g.pw - t * g.dw;
    *oy = ty / g.sh;
    *ox = tx / g.sw;
    return ty >= 0 && tx >= 0 && ty % g.sh == 0 && tx % g.sw == 0 && *oy < g.oh && *ox < g.ow;
}

/* ---- Convolution ---- */

/* K x K window over one image, one group, filters in shared memory: all loads of a channel are in
 * flight at once. */
template <int K, typename T>
__device__ static float square_sum(const ew_cuda_window &g, const T *x, const float *filters,
                                   int oy, int ox)
{
    const int y0 = oy * g.sh - g.ph, x0 = ox * g.sw - g.pw;
    float sum = 0;
    for (int c = 0; c < g.c; c++) {
        float v[K * K];
#pragma unroll
        for (int i = 0; i < K * K; i++) {
            const int iy = y0 + i / K * g.dh, ix = x0 + i % K * g.dw;
            const bool inside = iy >= 0 && iy < g.h && ix >= 0 && ix < g.w;
            v[i] = inside ? to_float(x[(iy * g.w + ix) * g.c + c]) : 0;
        }
#pragma unroll
        for (int i = 0; i < K * K; i++)
            sum += v[i] * filters[(i * g.c + c) * g.k];
    }
    return sum;
}

/* K: of square windows over one group, 0: any.
 * STAGED: filters are in shared memory as [tap * channel][filter].  FLIPPED (staged, one group):
 * they are [c, kh, kw, k], rotated by 180 degrees, for dgrad with stride 1. */
template <bool STAGED, bool FLIPPED, int K, typename T>
__global__ void __launch_bounds__(THREADS) direct_kernel(const ew_cuda_conv p, int add)
{
    extern __shared__ float filters[];
    const ew_cuda_window &g = p.g;
    const T *x = static_cast<const T *>(p.x), *w = static_cast<const T *>(p.w);
    const T *residual = static_cast<const T *>(p.residual);
    const int cg = g.c / g.groups, kg = g.k / g.groups, depth = g.kh * g.kw * cg;
    if (STAGED) {
        const int taps = g.kh * g.kw;
        for (int i = threadIdx.x; i < depth * g.k; i += THREADS)
            if (FLIPPED) {
                const int k = i % g.k, tap = i / g.k % taps, c = i / g.k / taps;
                filters[((taps - 1 - tap) * cg + c) * g.k + k] = to_float(w[i]);
            } else {
                filters[i % depth * g.k + i / depth] = to_float(w[i]);
            }
        __syncthreads();
    }
    const unsigned count = (unsigned)(g.n * g.oh * g.ow * g.k);
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const unsigned pixel = i / (unsigned)g.k, line = pixel / (unsigned)g.ow;
        const int o = (int)(i - pixel * g.k), group = o / kg;
        const int ox = (int)(pixel - line * g.ow), oy = (int)(line % (unsigned)g.oh);
        const int64_t n = line / (unsigned)g.oh;
        float sum = 0;
        if (K)
            sum = square_sum < K ? K : 1, T > (g, x + n * g.h * g.w * g.c, filters + o, oy, ox);
        for (int r = 0; !K && r < g.kh; r++)
            for (int t = 0; t < g.kw; t++) {
                int iy, ix;
                if (!tap_at(g, oy, ox, r, t, &iy, &ix))
                    continue;
                const T *px = x + ((n * g.h + iy) * g.w + ix) * g.c + group * cg;
                const int at = (r * g.kw + t) * cg;
                for (int c = 0; c < cg; c++)
                    sum += to_float(px[c]) * (STAGED ? filters[(at + c) * g.k + o]
                                                     : to_float(w[(int64_t)o * depth + at + c]));
            }
        sum += p.bias ? p.bias[o] : 0;
        const float r = residual ? to_float(residual[i]) : 0;
        const float v = p.add_after ? act_apply(p.act, sum) + r : act_apply(p.act, sum + r);
        put<1>(static_cast<T *>(p.y) + i, &v, add);
    }
}

template <typename T> static void direct_launch(ew_cuda_queue *q, const ew_cuda_conv *p)
{
    const ew_cuda_window &g = p->g;
    const size_t bytes = sizeof(float) * (size_t)g.k * g.kh * g.kw * (g.c / g.groups);
    const int64_t n = (int64_t)g.n * g.oh * g.ow * g.k;
    const unsigned blocks = blocks_for(q, n, THREADS);
    const int square = g.kh == g.kw && g.groups == 1 ? g.kh : 0;
    if (bytes <= SHARED_BYTES && square == 5)
        direct_kernel<true, false, 5, T><<<blocks, THREADS, bytes, stream_of(q)>>>(*p, 0);
    else if (bytes <= SHARED_BYTES && square == 3)
        direct_kernel<true, false, 3, T><<<blocks, THREADS, bytes, stream_of(q)>>>(*p, 0);
    else if (bytes <= SHARED_BYTES)
        direct_kernel<true, false, 0, T><<<blocks, THREADS, bytes, stream_of(q)>>>(*p, 0);
    else
        direct_kernel<false, false, 0, T><<<blocks, THREADS, 0, stream_of(q)>>>(*p, 0);
}

extern "C" int ew_cu_direct(ew_cuda_queue *q, const ew_cuda_conv *p)
{
    FOR_TYPE(p->type, direct_launch<T>(q, p));
    return cudaGetLastError();
}

template <typename T>
__global__ void __launch_bounds__(THREADS) direct_dx_kernel(const ew_cuda_conv_back p)
{
    const ew_cuda_window &g = p.g;
    const T *w = static_cast<const T *>(p.w), *dy = static_cast<const T *>(p.dy);
    const int cg = g.c / g.groups, kg = g.k / g.groups, taps = g.kh * g.kw;
    const int64_t count = (int64_t)g.n * g.h * g.w * g.c;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS) {
        const int c = (int)(i % g.c), group = c / cg;
        const int64_t pixel = i / g.c;
        const int ix = (int)(pixel % g.w), iy = (int)(pixel / g.w % g.h);
        const int64_t n = pixel / g.w / g.h;
        float sum = 0;
        for (int r = 0; r < g.kh; r++)
            for (int t = 0; t < g.kw; t++) {
                int oy, ox;
                if (!tap_from(g, iy, ix, r, t, &oy, &ox))
                    continue;
                const T *up = dy + ((n * g.oh + oy) * g.ow + ox) * g.k + group * kg;
                const T *f = w + ((int64_t)group * kg * taps + r * g.kw + t) * cg + c % cg;
                for (int o = 0; o < kg; o++)
                    sum += to_float(up[o]) * to_float(f[(int64_t)o * taps * cg]);
            }
        put<1>(static_cast<T *>(p.dx) + i, &sum, p.add);
    }
}

/* Stride 1 and few filters: dgrad as a convolution of dy with the rotated filters. */
static bool flips(const ew_cuda_window &g)
{
    return g.sh == 1 && g.sw == 1 && g.dh == 1 && g.dw == 1 && g.groups == 1 &&
           sizeof(float) * g.k * g.kh * g.kw * g.c <= SHARED_BYTES;
}

template <typename T> static void flip_launch(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const ew_cuda_window &g = p->g;
    ew_cuda_conv f = {};
    f.g = g;
    f.g.h = g.oh, f.g.w = g.ow, f.g.c = g.k;
    f.g.oh = g.h, f.g.ow = g.w, f.g.k = g.c;
    f.g.ph = g.kh - 1 - g.ph, f.g.pw = g.kw - 1 - g.pw;
    f.x = p->dy, f.w = p->w, f.y = p->dx;
    const unsigned blocks = blocks_for(q, (int64_t)g.n * g.h * g.w * g.c, THREADS);
    const size_t bytes = sizeof(float) * g.k * g.kh * g.kw * g.c;
    if (g.kh == 5 && g.kw == 5)
        direct_kernel<true, true, 5, T><<<blocks, THREADS, bytes, stream_of(q)>>>(f, p->add);
    else if (g.kh == 3 && g.kw == 3)
        direct_kernel<true, true, 3, T><<<blocks, THREADS, bytes, stream_of(q)>>>(f, p->add);
    else
        direct_kernel<true, true, 0, T><<<blocks, THREADS, bytes, stream_of(q)>>>(f, p->add);
}

extern "C" int ew_cu_direct_dx(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const int64_t n = (int64_t)p->g.n * p->g.h * p->g.w * p->g.c;
    const unsigned blocks = blocks_for(q, n, THREADS);
    if (flips(p->g)) {
        FOR_TYPE(p->type, flip_launch<T>(q, p));
    } else {
        FOR_TYPE(p->type, (direct_dx_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)));
    }
    return cudaGetLastError();
}

/* Sum over the block in a fixed order; valid in thread 0. */
__device__ static float block_sum(float v)
{
    __shared__ float warps[THREADS / 32];
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(0xffffffffu, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    if (threadIdx.x == 0)
        for (int i = 0; i < THREADS / 32; i++)
            v += warps[i];
    return v;
}

/* A block sums one filter tap for DW_CHANNELS channels over all pixels. */
template <typename T>
__global__ void __launch_bounds__(THREADS) direct_dw_kernel(const ew_cuda_conv_back p)
{
    const ew_cuda_window &g = p.g;
    const T *x = static_cast<const T *>(p.x), *dy = static_cast<const T *>(p.dy);
    const int cg = g.c / g.groups, kg = g.k / g.groups, taps = g.kh * g.kw;
    const int o = blockIdx.x / taps, tap = blockIdx.x % taps, first = blockIdx.y * DW_CHANNELS;
    const int base = o / kg * cg + first;
    const int64_t pixels = (int64_t)g.n * g.oh * g.ow;
    float sum[DW_CHANNELS] = {};
    /* The pixel's position is updated incrementally: divisions would cost more than the rest. */
    const int step_x = THREADS % g.ow, step_y = THREADS / g.ow % g.oh,
              step_n = THREADS / g.ow / g.oh;
    int ox = threadIdx.x % g.ow, oy = threadIdx.x / g.ow % g.oh, n = threadIdx.x / g.ow / g.oh;
#pragma unroll 4
    for (int64_t k = threadIdx.x; k < pixels; k += THREADS) {
        int iy, ix;
        const bool inside = tap_at(g, oy, ox, tap / g.kw, tap % g.kw, &iy, &ix);
        const float up = inside ? to_float(dy[k * g.k + o]) : 0;
        const T *px = x + (((int64_t)n * g.h + iy) * g.w + ix) * g.c + base;
#pragma unroll
        for (int c = 0; c < DW_CHANNELS; c++)
            sum[c] += inside && first + c < cg ? up * to_float(px[c]) : 0;
        ox += step_x;
        oy += step_y + (ox >= g.ow);
        ox -= ox >= g.ow ? g.ow : 0;
        n += step_n + (oy >= g.oh);
        oy -= oy >= g.oh ? g.oh : 0;
    }
#pragma unroll
    for (int c = 0; c < DW_CHANNELS; c++) {
        const float total = block_sum(sum[c]);
        if (threadIdx.x == 0 && first + c < cg)
            put<1>(p.dw + ((int64_t)o * taps + tap) * cg + first + c, &total, p.add);
    }
}

extern "C" int ew_cu_direct_dw(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const int cg = p->g.c / p->g.groups;
    const dim3 grid((unsigned)(p->g.k * p->g.kh * p->g.kw), (cg + DW_CHANNELS - 1) / DW_CHANNELS);
    if (grid.y > 65535)
        return cudaErrorNotSupported;
    FOR_TYPE(p->type, (direct_dw_kernel<T><<<grid, THREADS, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}
