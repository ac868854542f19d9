/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of any geometry, one output a thread: for small layers, and for those that the
 * library does not take (uneven padding).  Pools, forward and backward. */
#include "backend/cuda/module/device_math.cuh"

#define THREADS      256
#define SHARED_BYTES (48 * 1024)
#define DW_CHANNELS  4 /* of a filter tap that a block of direct_dw has in registers */

/* Input position of window element (r, t) of output (oy, ox); false: in the padding. */
__device__ static bool tap_at(const ew_cuda_window &g, int oy, int ox, int r, int t, int *iy,
                              int *ix)
{
    *iy = oy * g.sh - g.ph + r * g.dh;
    *ix = ox * g.sw - g.pw + t * g.dw;
    return *iy >= 0 && *iy < g.h && *ix >= 0 && *ix < g.w;
}

/* Output whose window element (r, t) is input (iy, ix); false: none. */
__device__ static bool tap_from(const ew_cuda_window &g, int iy, int ix, int r, int t, int *oy,
                                int *ox)
{
    const int ty = iy + g.ph - r * g.dh, tx = ix + g.pw - t * g.dw;
    *oy = ty / g.sh;
    *ox = tx / g.sw;
    return ty >= 0 && tx >= 0 && ty % g.sh == 0 && tx % g.sw == 0 && *oy < g.oh && *ox < g.ow;
}

/* ---- Convolution ---- */

/* A window of K x K over one image, one group, filters staged: all loads of a channel at once. */
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
 * STAGED: the filters are in shared memory as [tap * channel][filter].  FLIPPED (staged, one
 * group): they are [c, kh, kw, k] and turned by 180 degrees, as dx of stride 1 has them. */
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

/* Stride 1 and few filters: a convolution of dy with the filters turned. */
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

/* Sum over the block, in a fixed order; in thread 0. */
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

/* A block has one filter tap and DW_CHANNELS of its channels, and goes over all pixels. */
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
    /* The place of pixel k is carried along: divisions would cost more than the rest. */
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

/* ---- Pools ---- */

/* Rows or columns [*from, *to) of a window, padding included. */
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

/* Elements of a window that count in a mean: those inside, or also those in the padding. */
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

/* First and last output whose window can hold input i. */
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

/* Windows that do not overlap and leave nothing out: each gradient goes to its own inputs. */
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

/* How many channels a thread takes: 16 bytes of them, where rows and addresses allow. */
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
