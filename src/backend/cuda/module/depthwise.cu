/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution (groups = c = k), forward and both gradients: memory-bound, so each thread
 * has a few channels of a strip of outputs and reads every input once for all of the strip. */
#include "backend/cuda/module/columns.cuh"

#define THREADS 256
#define STRIP   4

/* What the strip kernel computes: a correlation of x [n, h, w, c] to y [n, oh, ow, c]. */
struct strip_job {
    ew_cuda_window g;
    ew_cuda_act act;
    int add_after, flip, add;
    const void *x, *w, *residual;
    const float *bias;
    void *y;
};

/* Filters of the block's channels as [tap][channel] in shared memory. */
template <typename T>
__device__ static void stage_filters(const strip_job &j, int base, int width, float *to)
{
    const int taps = j.g.kh * j.g.kw, self = threadIdx.y * blockDim.x + threadIdx.x;
    const T *w = static_cast<const T *>(j.w);
    for (int k = self; k < taps * width; k += blockDim.x * blockDim.y) {
        const int c = k / taps, t = k % taps;
        const int from = j.flip ? taps - 1 - t : t;
        to[t * width + c] = base + c < j.g.c ? to_float(w[(int64_t)(base + c) * taps + from]) : 0;
    }
    __syncthreads();
}

template <int V, typename T>
__device__ static void finish(const strip_job &j, int64_t at, const float *bias, float *v)
{
    float r[V];
    if (j.residual)
        load<V>(static_cast<const T *>(j.residual) + at, r);
#pragma unroll
    for (int i = 0; i < V; i++) {
        float s = v[i] + bias[i];
        if (j.residual && !j.add_after)
            s += r[i];
        s = act_apply(j.act, s);
        v[i] = j.residual && j.add_after ? s + r[i] : s;
    }
    put<V>(static_cast<T *>(j.y) + at, v, j.add);
}

/* K x K windows with stride S (dilation 1); K = 0: any window, one output at a time. */
template <int V, int K, int S, typename T>
__global__ void __launch_bounds__(THREADS) strip_kernel(const strip_job j)
{
    extern __shared__ float filters[];
    constexpr int N = K ? STRIP : 1;
    constexpr int SPAN = K ? (STRIP - 1) * S + K : 1;
    const ew_cuda_window &g = j.g;
    const int width = blockDim.x * V, base = blockIdx.x * width, mine = threadIdx.x * V;
    const int c = base + mine, strips = (g.ow + N - 1) / N;
    stage_filters<T>(j, base, width, filters);
    if (c >= g.c)
        return;
    float bias[V];
#pragma unroll
    for (int i = 0; i < V; i++)
        bias[i] = j.bias ? j.bias[c + i] : 0;
    constexpr int ROWS = K == 3 ? 3 : 1; /* whose loads are all under way at once */
    const unsigned jobs = (unsigned)(g.n * g.oh * strips);
    for (unsigned k = blockIdx.y * blockDim.y + threadIdx.y; k < jobs;
         k += gridDim.y * blockDim.y) {
        const unsigned line = k / (unsigned)strips;
        const int ox = (int)(k - line * strips) * N, oy = (int)(line % (unsigned)g.oh);
        const int64_t n = line / (unsigned)g.oh;
        float acc[N][V] = {};
        const int kh = K ? K : g.kh, kw = K ? K : g.kw;
#pragma unroll ROWS
        for (int r = 0; r < kh; r++) {
            const int iy = oy * (K ? S : g.sh) - g.ph + r * (K ? 1 : g.dh);
            if (iy < 0 || iy >= g.h)
                continue;
            const T *row = static_cast<const T *>(j.x) + ((n * g.h + iy) * g.w) * g.c + c;
            if (K) {
                float px[SPAN][V];
#pragma unroll
                for (int s = 0; s < SPAN; s++) {
                    const int ix = ox * S - g.pw + s;
                    if (ix >= 0 && ix < g.w)
                        load<V>(row + (int64_t)ix * g.c, px[s]);
                    else
#pragma unroll
                        for (int i = 0; i < V; i++)
                            px[s][i] = 0;
                }
#pragma unroll
                for (int t = 0; t < (K ? K : 1); t++) {
                    float w[V];
                    load<V>(filters + (r * K + t) * width + mine, w);
#pragma unroll
                    for (int o = 0; o < N; o++)
#pragma unroll
                        for (int i = 0; i < V; i++)
                            acc[o][i] += px[o * S + t][i] * w[i];
                }
            } else {
                for (int t = 0; t < kw; t++) {
                    const int ix = ox * g.sw - g.pw + t * g.dw;
                    if (ix < 0 || ix >= g.w)
                        continue;
                    float w[V], px[V];
                    load<V>(filters + (r * kw + t) * width + mine, w);
                    load<V>(row + (int64_t)ix * g.c, px);
#pragma unroll
                    for (int i = 0; i < V; i++)
                        acc[0][i] += px[i] * w[i];
                }
            }
        }
#pragma unroll
        for (int o = 0; o < N; o++)
            if (ox + o < g.ow)
                finish<V, T>(j, ((n * g.oh + oy) * g.ow + ox + o) * g.c + c, bias, acc[o]);
    }
}

template <int V, int K, int S, typename T>
static int strip_launch(ew_cuda_queue *q, const strip_job *j)
{
    const int width = column_width(j->g.c, V), height = THREADS / width;
    const int64_t across = (j->g.c + width * V - 1) / (width * V);
    const int64_t jobs = (int64_t)j->g.n * j->g.oh * (K ? (j->g.ow + STRIP - 1) / STRIP : j->g.ow);
    const int64_t need = (jobs + height - 1) / height, most = q->processors * 16 / across + 1;
    const size_t shared = sizeof(float) * width * V * j->g.kh * j->g.kw;
    if (shared > 48 * 1024)
        return cudaErrorNotSupported;
    int64_t down = need < most ? need : most;
    down = down > 65535 ? 65535 : down;
    strip_kernel<V, K, S, T>
        <<<dim3((unsigned)across, (unsigned)down), dim3(width, height), shared, stream_of(q)>>>(*j);
    return cudaGetLastError();
}

template <int V, typename T> static int strip_pick(ew_cuda_queue *q, const strip_job *j)
{
    const ew_cuda_window &g = j->g;
    const bool plain = g.kh == g.kw && g.sh == g.sw && g.dh == 1 && g.dw == 1;
    if (plain && g.kh == 3 && g.sh == 1)
        return strip_launch<V, 3, 1, T>(q, j);
    if (plain && g.kh == 3 && g.sh == 2)
        return strip_launch<V, 3, 2, T>(q, j);
    if (plain && g.kh == 5 && g.sh == 1)
        return strip_launch<V, 5, 1, T>(q, j);
    if (plain && g.kh == 5 && g.sh == 2)
        return strip_launch<V, 5, 2, T>(q, j);
    return strip_launch<V, 0, 0, T>(q, j);
}

template <typename T> static int strip_run(ew_cuda_queue *q, const strip_job *j)
{
    const bool wide = j->g.c % 4 == 0 && aligned(j->x, 4 * sizeof(T)) &&
                      aligned(j->y, 4 * sizeof(T)) && aligned(j->residual, 4 * sizeof(T));
    return wide ? strip_pick<4, T>(q, j) : strip_pick<1, T>(q, j);
}

extern "C" int ew_cu_depthwise(ew_cuda_queue *q, const ew_cuda_conv *p)
{
    const strip_job j = {p->g, p->act, p->add_after, 0, 0, p->x, p->w, p->residual, p->bias, p->y};
    int status = 0;
    if (p->g.groups != p->g.c || p->g.k != p->g.c)
        return cudaErrorNotSupported;
    FOR_TYPE(p->type, status = strip_run<T>(q, &j));
    return status;
}

/* ---- Gradient of x ---- */

/* Any stride and dilation: each input gathers from the outputs that read it. */
template <int V, typename T>
__global__ void __launch_bounds__(THREADS) gather_dx_kernel(const ew_cuda_conv_back p)
{
    const ew_cuda_window &g = p.g;
    const T *w = static_cast<const T *>(p.w), *dy = static_cast<const T *>(p.dy);
    const int across = g.c / V, taps = g.kh * g.kw;
    const unsigned jobs = (unsigned)(g.n * g.h * g.w * across);
    for (unsigned k = blockIdx.x * THREADS + threadIdx.x; k < jobs; k += gridDim.x * THREADS) {
        const unsigned pixel = k / (unsigned)across, line = pixel / (unsigned)g.w;
        const int c = (int)(k - pixel * across) * V;
        const int ix = (int)(pixel - line * g.w), iy = (int)(line % (unsigned)g.h);
        const int64_t n = line / (unsigned)g.h;
        float acc[V] = {};
        for (int r = 0; r < g.kh; r++) {
            const int ty = iy + g.ph - r * g.dh, oy = ty / g.sh;
            if (ty < 0 || ty % g.sh || oy >= g.oh)
                continue;
            for (int t = 0; t < g.kw; t++) {
                const int tx = ix + g.pw - t * g.dw, ox = tx / g.sw;
                if (tx < 0 || tx % g.sw || ox >= g.ow)
                    continue;
                float v[V];
                load<V>(dy + ((n * g.oh + oy) * g.ow + ox) * g.c + c, v);
#pragma unroll
                for (int i = 0; i < V; i++)
                    acc[i] += v[i] * to_float(w[(int64_t)(c + i) * taps + r * g.kw + t]);
            }
        }
        put<V>(static_cast<T *>(p.dx) + (int64_t)pixel * g.c + c, acc, p.add);
    }
}

template <typename T> static int gather_dx(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const int64_t n = (int64_t)p->g.n * p->g.h * p->g.w * p->g.c;
    if (p->g.c % 4 == 0 && aligned(p->dy, 4 * sizeof(T)) && aligned(p->dx, 4 * sizeof(T)))
        gather_dx_kernel<4, T><<<blocks_for(q, n / 4, THREADS), THREADS, 0, stream_of(q)>>>(*p);
    else
        gather_dx_kernel<1, T><<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(*p);
    return cudaGetLastError();
}

extern "C" int ew_cu_depthwise_dx(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const ew_cuda_window &g = p->g;
    int status = 0;
    if (g.groups != g.c || g.k != g.c)
        return cudaErrorNotSupported;
    if (g.sh != 1 || g.sw != 1 || g.dh != 1 || g.dw != 1) {
        FOR_TYPE(p->type, status = gather_dx<T>(q, p));
        return status;
    }
    /* Stride 1: a correlation with the filter turned by 180 degrees. */
    strip_job j = {};
    j.g = g;
    j.g.h = g.oh, j.g.w = g.ow, j.g.oh = g.h, j.g.ow = g.w;
    j.g.ph = g.kh - 1 - g.ph, j.g.pw = g.kw - 1 - g.pw;
    j.flip = 1, j.add = p->add;
    j.x = p->dy, j.w = p->w, j.y = p->dx;
    FOR_TYPE(p->type, status = strip_run<T>(q, &j));
    return status;
}

/* ---- Gradient of the filter: a sum over pixels of one product a tap ---- */

template <int V, int KH, int KW, typename T> struct depthwise_dw_map {
    ew_cuda_window g;
    const T *x, *dy;
    __device__ void add(int64_t, int64_t row, int c, float sum[KH * KW][V]) const
    {
        const unsigned line = (unsigned)row / (unsigned)g.ow;
        const int ox = (int)((unsigned)row - line * g.ow), oy = (int)(line % (unsigned)g.oh);
        const int64_t n = line / (unsigned)g.oh;
        float up[V];
        load<V>(dy + row * g.c + c, up);
#pragma unroll
        for (int r = 0; r < KH; r++) {
            const int iy = oy * g.sh - g.ph + r * g.dh;
#pragma unroll
            for (int t = 0; t < KW; t++) {
                const int ix = ox * g.sw - g.pw + t * g.dw;
                if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w)
                    continue;
                float v[V];
                load<V>(x + ((n * g.h + iy) * g.w + ix) * g.c + c, v);
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum[r * KW + t][i] += v[i] * up[i];
            }
        }
    }
};

struct depthwise_dw_end {
    float *dw;
    int taps, add;
    __device__ void operator()(int64_t, int, const double *) const
    {
    }
    __device__ void one(int c, int t, double total) const
    {
        const float v = (float)total;
        put<1>(dw + (int64_t)c * taps + t, &v, add);
    }
};

template <int V, int K, typename T>
static int depthwise_dw(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const depthwise_dw_map<V, K, K, T> map = {p->g, static_cast<const T *>(p->x),
                                              static_cast<const T *>(p->dy)};
    const depthwise_dw_end end = {p->dw, K * K, p->add};
    return column_launch<V, K * K>(q, 1, (int64_t)p->g.n * p->g.oh * p->g.ow, p->g.c, p->scratch,
                                   map, end);
}

template <typename T> static int depthwise_dw_pick(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const bool wide =
        p->g.c % 2 == 0 && aligned(p->x, 2 * sizeof(T)) && aligned(p->dy, 2 * sizeof(T));
    if (p->g.kh != p->g.kw)
        return cudaErrorNotSupported;
    if (p->g.kh == 3)
        return wide ? depthwise_dw<2, 3, T>(q, p) : depthwise_dw<1, 3, T>(q, p);
    if (p->g.kh == 5)
        return depthwise_dw<1, 5, T>(q, p);
    return cudaErrorNotSupported;
}

extern "C" int ew_cu_depthwise_dw(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    int status = 0;
    if (p->g.groups != p->g.c || p->g.k != p->g.c)
        return cudaErrorNotSupported;
    FOR_TYPE(p->type, status = depthwise_dw_pick<T>(q, p));
    return status;
}
