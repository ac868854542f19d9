/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution (groups = c = k): forward, dgrad, wgrad.  It is memory-bound, so a thread
 * computes a tile of outputs for a few channels and reads every input of the tile once. */
#include "backend/cuda/module/columns.cuh"

#define THREADS 256
#define STRIP   4 /* adjacent outputs of a row per thread */

/* A correlation of x [n, h, w, c] to y [n, oh, ow, c]. */
struct depthwise_job {
    ew_cuda_window g;
    ew_cuda_act act;
    int add_after, flip, add;
    const void *x, *w, *residual;
    const float *bias;
    void *y;
};

/* Copies the filters of the block's channels to shared memory, as [tap][channel]. */
template <typename T>
__device__ static void stage_filters(const depthwise_job &j, int base, int width, float *to)
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

template <int V, int A, typename T>
__device__ static void finish(const depthwise_job &j, const ew_cuda_act &act, int64_t at,
                              const float *bias, float *v)
{
    float r[V];
    if (j.residual)
        load<V>(static_cast<const T *>(j.residual) + at, r);
#pragma unroll
    for (int i = 0; i < V; i++) {
        float s = v[i] + bias[i];
        if (j.residual && !j.add_after)
            s += r[i];
        s = act_known<A>(act, s);
        v[i] = j.residual && j.add_after ? s + r[i] : s;
    }
    put<V>(static_cast<T *>(j.y) + at, v, j.add);
}

/* Accumulates one row of inputs with one row of a K x K filter into a strip of outputs, stride
 * S. */
template <int V, int K, int S>
__device__ static void add_row(const float (*px)[V], const float *filter, int width,
                               float (*acc)[V])
{
#pragma unroll
    for (int t = 0; t < K; t++) {
        float w[V];
        load<V>(filter + t * width, w);
#pragma unroll
        for (int o = 0; o < STRIP; o++)
#pragma unroll
            for (int i = 0; i < V; i++)
                acc[o][i] += px[o * S + t][i] * w[i];
    }
}

/* K x K windows, stride S, dilation 1: a thread computes R rows of STRIP outputs in V channels. */
template <int V, int K, int S, int R, int A, typename T>
__global__ void __launch_bounds__(THREADS, 2) tile_kernel(const depthwise_job j)
{
    extern __shared__ float filters[];
    constexpr int SPAN = (STRIP - 1) * S + K, DEEP = (R - 1) * S + K;
    const ew_cuda_window &g = j.g;
    const int width = blockDim.x * V, base = blockIdx.x * width, mine = threadIdx.x * V;
    const int c = base + mine, strips = (g.ow + STRIP - 1) / STRIP, tiles = (g.oh + R - 1) / R;
    stage_filters<T>(j, base, width, filters);
    if (c >= g.c)
        return;
    const ew_cuda_act act = A == EW_CUDA_ACT_CLIP ? as_bounds(j.act) : j.act;
    float bias[V];
#pragma unroll
    for (int i = 0; i < V; i++)
        bias[i] = j.bias ? j.bias[c + i] : 0;
    const unsigned jobs = (unsigned)(g.n * tiles * strips);
    for (unsigned k = blockIdx.y * blockDim.y + threadIdx.y; k < jobs;
         k += gridDim.y * blockDim.y) {
        const unsigned line = k / (unsigned)strips, n = line / (unsigned)tiles;
        const int ox = (int)(k - line * strips) * STRIP, oy = (int)(line - n * tiles) * R;
        const int x0 = ox * S - g.pw, y0 = oy * S - g.ph;
        const T *image = static_cast<const T *>(j.x) + (int64_t)n * g.h * g.w * g.c + c;
        unsigned inside = 0; /* bit mask of columns inside the image */
#pragma unroll
        for (int s = 0; s < SPAN; s++)
            inside |= (x0 + s >= 0 && x0 + s < g.w ? 1u : 0u) << s;
        float acc[R][STRIP][V] = {};
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
            if (y0 + d < 0 || y0 + d >= g.h)
                continue;
            const T *row = image + ((int64_t)(y0 + d) * g.w + x0) * g.c;
            float px[SPAN][V] = {};
#pragma unroll
            for (int s = 0; s < SPAN; s++)
                if (inside >> s & 1)
                    load<V>(row + s * g.c, px[s]);
#pragma unroll
            for (int o = 0; o < R; o++)
                if (d - o * S >= 0 && d - o * S < K)
                    add_row<V, K, S>(px, filters + (d - o * S) * K * width + mine, width, acc[o]);
        }
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int o = 0; o < STRIP; o++)
                if (oy + r < g.oh && ox + o < g.ow)
                    finish<V, A, T>(j, act,
                                    (((int64_t)n * g.oh + oy + r) * g.ow + ox + o) * g.c + c, bias,
                                    acc[r][o]);
    }
}

/* Any window: one output pixel at a time. */
template <int V, typename T>
__global__ void __launch_bounds__(THREADS) any_window_kernel(const depthwise_job j)
{
    extern __shared__ float filters[];
    const ew_cuda_window &g = j.g;
    const int width = blockDim.x * V, base = blockIdx.x * width, mine = threadIdx.x * V;
    const int c = base + mine;
    stage_filters<T>(j, base, width, filters);
    if (c >= g.c)
        return;
    float bias[V];
    for (int i = 0; i < V; i++)
        bias[i] = j.bias ? j.bias[c + i] : 0;
    const unsigned jobs = (unsigned)(g.n * g.oh * g.ow);
    for (unsigned k = blockIdx.y * blockDim.y + threadIdx.y; k < jobs;
         k += gridDim.y * blockDim.y) {
        const unsigned line = k / (unsigned)g.ow;
        const int ox = (int)(k - line * g.ow), oy = (int)(line % (unsigned)g.oh);
        const int64_t n = line / (unsigned)g.oh;
        float acc[V] = {};
        for (int r = 0; r < g.kh; r++)
            for (int t = 0; t < g.kw; t++) {
                const int iy = oy * g.sh - g.ph + r * g.dh, ix = ox * g.sw - g.pw + t * g.dw;
                if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w)
                    continue;
                float w[V], px[V];
                load<V>(filters + (r * g.kw + t) * width + mine, w);
                load<V>(static_cast<const T *>(j.x) + ((n * g.h + iy) * g.w + ix) * g.c + c, px);
#pragma unroll
                for (int i = 0; i < V; i++)
                    acc[i] += px[i] * w[i];
            }
        finish<V, EW_ACT_ANY, T>(j, j.act, (int64_t)k * g.c + c, bias, acc);
    }
}

/* Blocks of `width` threads along the channels (V each) by further threads, one per job. */
struct depthwise_grid {
    dim3 grid, block;
    size_t shared;
};

static depthwise_grid grid_for(const ew_cuda_queue *q, const ew_cuda_window &g, int v, int64_t jobs)
{
    const int width = column_width(g.c, v), height = THREADS / width;
    const int64_t across = (g.c + width * v - 1) / (width * v);
    const int64_t need = (jobs + height - 1) / height, most = q->processors * 16 / across + 1;
    int64_t down = need < most ? need : most;
    down = down > 65535 ? 65535 : down;
    return {dim3((unsigned)across, (unsigned)down), dim3(width, height),
            sizeof(float) * width * v * g.kh * g.kw};
}

template <int V, int K, int S, int R, int A, typename T>
static int tile_launch_as(ew_cuda_queue *q, const depthwise_job *j)
{
    const ew_cuda_window &g = j->g;
    const int64_t jobs = (int64_t)g.n * ((g.oh + R - 1) / R) * ((g.ow + STRIP - 1) / STRIP);
    const depthwise_grid s = grid_for(q, g, V, jobs);
    tile_kernel<V, K, S, R, A, T><<<s.grid, s.block, s.shared, stream_of(q)>>>(*j);
    return cudaGetLastError();
}

/* R rows per thread if enough threads remain: fewer loads and instructions per output. */
template <int V, int K, int S, int R, typename T>
static int tile_launch(ew_cuda_queue *q, const depthwise_job *j)
{
    const ew_cuda_window &g = j->g;
    const int64_t threads = (int64_t)g.n * g.oh * g.ow * g.c / (STRIP * R * V);
    if (V > 1 && threads >= (int64_t)q->processors * THREADS)
        switch (j->act.kind) {
        case EW_CUDA_ACT_NONE:
        case EW_CUDA_ACT_RELU:
        case EW_CUDA_ACT_CLIP:
            return tile_launch_as<V, K, S, (V > 1 ? R : 1), EW_CUDA_ACT_CLIP, T>(q, j);
        case EW_CUDA_ACT_HARD_SWISH:
            return tile_launch_as<V, K, S, (V > 1 ? R : 1), EW_CUDA_ACT_HARD_SWISH, T>(q, j);
        case EW_CUDA_ACT_SILU:
            return tile_launch_as<V, K, S, (V > 1 ? R : 1), EW_CUDA_ACT_SILU, T>(q, j);
        }
    return tile_launch_as<V, K, S, 1, EW_ACT_ANY, T>(q, j);
}

template <int V, typename T> static int depthwise_pick(ew_cuda_queue *q, const depthwise_job *j)
{
    const ew_cuda_window &g = j->g;
    const bool plain = g.kh == g.kw && g.sh == g.sw && g.dh == 1 && g.dw == 1;
    if (plain && g.kh == 3 && g.sh == 1)
        return tile_launch<V, 3, 1, 4, T>(q, j);
    if (plain && g.kh == 3 && g.sh == 2)
        return tile_launch<V, 3, 2, 2, T>(q, j);
    if (plain && g.kh == 5 && g.sh == 1)
        return tile_launch<V, 5, 1, 2, T>(q, j);
    if (plain && g.kh == 5 && g.sh == 2)
        return tile_launch<V, 5, 2, 2, T>(q, j);
    const depthwise_grid s = grid_for(q, g, V, (int64_t)g.n * g.oh * g.ow);
    if (s.shared > 48 * 1024)
        return cudaErrorNotSupported;
    any_window_kernel<V, T><<<s.grid, s.block, s.shared, stream_of(q)>>>(*j);
    return cudaGetLastError();
}

template <typename T> static int depthwise_run(ew_cuda_queue *q, const depthwise_job *j)
{
    const bool wide = j->g.c % 4 == 0 && aligned(j->x, 4 * sizeof(T)) &&
                      aligned(j->y, 4 * sizeof(T)) && aligned(j->residual, 4 * sizeof(T));
    return wide ? depthwise_pick<4, T>(q, j) : depthwise_pick<1, T>(q, j);
}

extern "C" int ew_cu_depthwise(ew_cuda_queue *q, const ew_cuda_conv *p)
{
    const depthwise_job j = {p->g, p->act, p->add_after, 0,       0,
                             p->x, p->w,   p->residual,  p->bias, p->y};
    int status = 0;
    if (p->g.groups != p->g.c || p->g.k != p->g.c)
        return cudaErrorNotSupported;
    FOR_TYPE(p->type, status = depthwise_run<T>(q, &j));
    return status;
}

/* ---- dgrad ---- */

/* Any stride and dilation: each input gathers from the outputs whose windows contain it. */
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

/* K x K windows with stride 2: only every second tap in each dimension contributes to an input. */
template <int V, int K, typename T>
__global__ void __launch_bounds__(THREADS) halved_dx_kernel(const depthwise_job j)
{
    extern __shared__ float filters[];
    constexpr int READERS = (K + 1) / 2;
    const ew_cuda_window &g = j.g;
    const int width = blockDim.x * V, base = blockIdx.x * width, mine = threadIdx.x * V;
    const int c = base + mine;
    stage_filters<T>(j, base, width, filters);
    if (c >= g.c)
        return;
    const unsigned jobs = (unsigned)(g.n * g.h * g.w);
    for (unsigned k = blockIdx.y * blockDim.y + threadIdx.y; k < jobs;
         k += gridDim.y * blockDim.y) {
        const unsigned line = k / (unsigned)g.w, n = line / (unsigned)g.h;
        const int py = (int)(line - n * g.h) + g.ph, px = (int)(k - line * g.w) + g.pw;
        const T *image = static_cast<const T *>(j.x) + (int64_t)n * g.oh * g.ow * g.c + c;
        float acc[V] = {}, v[READERS * READERS][V];
#pragma unroll
        for (int a = 0; a < READERS * READERS; a++) {
            const int r = (py & 1) + a / READERS * 2, t = (px & 1) + a % READERS * 2;
            const int oy = (py - r) >> 1, ox = (px - t) >> 1;
            pack<T, V> d = {};
            if (r < K && t < K && oy >= 0 && oy < g.oh && ox >= 0 && ox < g.ow)
                d = *reinterpret_cast<const pack<T, V> *>(image + (oy * g.ow + ox) * g.c);
#pragma unroll
            for (int i = 0; i < V; i++)
                v[a][i] = to_float(d.v[i]);
        }
#pragma unroll
        for (int a = 0; a < READERS * READERS; a++) {
            const int r = (py & 1) + a / READERS * 2, t = (px & 1) + a % READERS * 2;
            float w[V];
            load<V>(filters + (r < K && t < K ? r * K + t : 0) * width + mine, w);
#pragma unroll
            for (int i = 0; i < V; i++)
                acc[i] += v[a][i] * w[i];
        }
        put<V>(static_cast<T *>(j.y) + (int64_t)k * g.c + c, acc, j.add);
    }
}

template <int V, int K, typename T>
static int halved_dx(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    depthwise_job j = {};
    j.g = p->g;
    j.add = p->add;
    j.x = p->dy, j.w = p->w, j.y = p->dx;
    const depthwise_grid s = grid_for(q, p->g, V, (int64_t)p->g.n * p->g.h * p->g.w);
    halved_dx_kernel<V, K, T><<<s.grid, s.block, s.shared, stream_of(q)>>>(j);
    return cudaGetLastError();
}

template <typename T> static int gather_dx(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const ew_cuda_window &g = p->g;
    const int64_t n = (int64_t)g.n * g.h * g.w * g.c;
    const bool wide =
        g.c % 4 == 0 && aligned(p->dy, 4 * sizeof(T)) && aligned(p->dx, 4 * sizeof(T));
    if (wide && g.kh == g.kw && g.sh == 2 && g.sw == 2 && g.dh == 1 && g.dw == 1) {
        if (g.kh == 3)
            return halved_dx<4, 3, T>(q, p);
        if (g.kh == 5)
            return halved_dx<4, 5, T>(q, p);
    }
    if (wide)
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
    /* Stride 1: dgrad is a correlation with the filter rotated by 180 degrees. */
    depthwise_job j = {};
    j.g = g;
    j.g.h = g.oh, j.g.w = g.ow, j.g.oh = g.h, j.g.ow = g.w;
    j.g.ph = g.kh - 1 - g.ph, j.g.pw = g.kw - 1 - g.pw;
    j.flip = 1, j.add = p->add;
    j.x = p->dy, j.w = p->w, j.y = p->dx;
    FOR_TYPE(p->type, status = depthwise_run<T>(q, &j));
    return status;
}

/* ---- wgrad: for each tap a sum of products over all pixels ---- */

/* One "row" of the column sum is a segment of an output row, along which the thread slides its
 * window: window columns stay in registers, and the next ones are loaded ahead. */
template <int V, int K, int S, typename T> struct depthwise_dw_map {
    ew_cuda_window g;
    const T *x, *dy;
    int stretches, length; /* segments per output row, pixels per segment */

    /* Loads N columns of the K input rows around an output row, from column `first` on. */
    template <int N>
    __device__ void read(const T *image, int y0, int first, float to[K][N][V]) const
    {
#pragma unroll
        for (int r = 0; r < K; r++)
#pragma unroll
            for (int t = 0; t < N; t++) {
                const int iy = y0 + r, ix = first + t;
                const bool inside = iy >= 0 && iy < g.h && ix >= 0 && ix < g.w;
                pack<T, V> v = {};
                if (inside)
                    v = *reinterpret_cast<const pack<T, V> *>(image + (iy * g.w + ix) * g.c);
#pragma unroll
                for (int i = 0; i < V; i++)
                    to[r][t][i] = to_float(v.v[i]);
            }
    }
    __device__ void add(int64_t, int64_t row, int c, float sum[K * K][V]) const
    {
        constexpr int KEPT = K - S;
        const unsigned line = (unsigned)row / (unsigned)stretches;
        const unsigned n = line / (unsigned)g.oh;
        const int oy = (int)(line - n * g.oh), y0 = oy * S - g.ph;
        const int from = (int)((unsigned)row - line * stretches) * length;
        const int to = from + length < g.ow ? from + length : g.ow;
        const T *image = x + (int64_t)n * g.h * g.w * g.c + c;
        const T *up = dy + (int64_t)line * g.ow * g.c + c;
        float win[K][K][V], next[K][S][V], d[V], next_d[V];
        float kept[K][KEPT][V];
        read<KEPT>(image, y0, from * S - g.pw, kept);
        read<S>(image, y0, from * S - g.pw + KEPT, next);
        load<V>(up + (int64_t)from * g.c, next_d);
        for (int ox = from; ox < to; ox++) {
#pragma unroll
            for (int r = 0; r < K; r++)
#pragma unroll
                for (int t = 0; t < K; t++)
#pragma unroll
                    for (int i = 0; i < V; i++)
                        win[r][t][i] = t < KEPT ? kept[r][t < KEPT ? t : 0][i]
                                                : next[r][t < KEPT ? 0 : t - KEPT][i];
#pragma unroll
            for (int i = 0; i < V; i++)
                d[i] = next_d[i];
            if (ox + 1 < to) {
                read<S>(image, y0, (ox + 1) * S - g.pw + KEPT, next);
                load<V>(up + (int64_t)(ox + 1) * g.c, next_d);
            }
#pragma unroll
            for (int t = 0; t < K * K; t++)
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum[t][i] += win[t / K][t % K][i] * d[i];
#pragma unroll
            for (int r = 0; r < K; r++)
#pragma unroll
                for (int t = 0; t < KEPT; t++)
#pragma unroll
                    for (int i = 0; i < V; i++)
                        kept[r][t][i] = win[r][t + S][i];
        }
    }
};

/* Any stride and dilation. */
template <int V, int K, typename T> struct depthwise_dw_any_map {
    ew_cuda_window g;
    const T *x, *dy;
    __device__ void add(int64_t, int64_t row, int c, float sum[K * K][V]) const
    {
        const unsigned line = (unsigned)row / (unsigned)g.ow;
        const int ox = (int)((unsigned)row - line * g.ow), oy = (int)(line % (unsigned)g.oh);
        const int64_t n = line / (unsigned)g.oh;
        float up[V];
        load<V>(dy + row * g.c + c, up);
#pragma unroll
        for (int r = 0; r < K; r++) {
            const int iy = oy * g.sh - g.ph + r * g.dh;
#pragma unroll
            for (int t = 0; t < K; t++) {
                const int ix = ox * g.sw - g.pw + t * g.dw;
                if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w)
                    continue;
                float v[V];
                load<V>(x + ((n * g.h + iy) * g.w + ix) * g.c + c, v);
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum[r * K + t][i] += v[i] * up[i];
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

#define STRETCH 8 /* target length of a segment, in outputs */

template <int V, int K, int S, typename T>
static int depthwise_dw_slide(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const ew_cuda_window &g = p->g;
    const int stretches = (g.ow + STRETCH - 1) / STRETCH;
    const depthwise_dw_map<V, K, S, T> map = {g, static_cast<const T *>(p->x),
                                              static_cast<const T *>(p->dy), stretches,
                                              (g.ow + stretches - 1) / stretches};
    const depthwise_dw_end end = {p->dw, K * K, p->add};
    const int64_t lines = (int64_t)g.n * g.oh;
    return column_launch<V, K * K>(q, 1, lines * stretches, g.c, p->scratch, map, end,
                                   lines * g.ow);
}

template <int V, int K, typename T>
static int depthwise_dw(ew_cuda_queue *q, const ew_cuda_conv_back *p)
{
    const ew_cuda_window &g = p->g;
    const bool plain = g.sh == g.sw && g.dh == 1 && g.dw == 1;
    if (plain && g.sh == 1)
        return depthwise_dw_slide<V, K, 1, T>(q, p);
    if (plain && g.sh == 2)
        return depthwise_dw_slide<V, K, 2, T>(q, p);
    const depthwise_dw_any_map<V, K, T> map = {g, static_cast<const T *>(p->x),
                                               static_cast<const T *>(p->dy)};
    const depthwise_dw_end end = {p->dw, K * K, p->add};
    return column_launch<V, K * K>(q, 1, (int64_t)g.n * g.oh * g.ow, g.c, p->scratch, map, end);
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
