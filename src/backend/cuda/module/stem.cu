/* SPDX-License-Identifier: Apache-2.0 */
/* First layers in half types: square windows over one or three channels, as an implicit GEMM on
 * tensor cores.  cuDNN's kernels need more channels, and the padded copies cost more than the
 * arithmetic.
 *
 * A block keeps the filters in shared memory and loops over tiles of outputs, whose inputs it
 * stages with four channels: a pixel is then 8 bytes, and a row of a window is contiguous.  The
 * depth is padded to the instruction's with zero filters, so whatever finite values are read behind
 * a row do not matter. */
#include "backend/cuda/module/device_math.cuh"

#define WARPS    4
#define THREADS  (WARPS * 32)
#define ROWS     WARPS /* outputs of a tile: a row per warp */
#define COLUMNS  32    /* and its length */
#define TILES    (COLUMNS / 16)
#define FILTERS  64 /* per block */
#define PAIRS    (FILTERS / 16)
#define CHANNELS 4
#define STEP     8 /* depth of an mma instruction */
#define PIXELS   8 /* most inputs of a tile that a thread stages */
#define SKEW     8 /* elements of padding, against bank conflicts between filters */

/* Sizes of a tile. */
struct tile {
    int steps;          /* mma steps per row of taps */
    int depth;          /* elements per filter in shared memory */
    int in_rows, pitch; /* inputs: rows, and pixels per row */
};

__host__ __device__ static tile tile_of(const ew_cuda_window &g)
{
    tile t;
    t.steps = (g.kw * CHANNELS + STEP - 1) / STEP;
    t.depth = g.kh * t.steps * STEP + SKEW;
    t.in_rows = (ROWS - 1) * g.sh + g.kh;
    t.pitch = (COLUMNS - 1) * g.sw + t.steps * STEP / CHANNELS;
    return t;
}

static size_t shared_bytes(const ew_cuda_window &g)
{
    const tile t = tile_of(g);
    return FILTERS * sizeof(float) +
           2 * (size_t)(FILTERS * t.depth + t.in_rows * t.pitch * CHANNELS);
}

/* Image and first output of tile k. */
struct place {
    int n, y, x;
};

__device__ static place place_of(const ew_cuda_window &g, int k)
{
    const int across = (g.ow + COLUMNS - 1) / COLUMNS, down = (g.oh + ROWS - 1) / ROWS;
    const int line = k / across, n = line / down;
    return {n, (line - n * down) * ROWS, (k - line * across) * COLUMNS};
}

__host__ __device__ static int tiles_of(const ew_cuda_window &g)
{
    return g.n * ((g.oh + ROWS - 1) / ROWS) * ((g.ow + COLUMNS - 1) / COLUMNS);
}

__device__ static void multiply(const unsigned *a, unsigned b, float *c, const __half *)
{
    ptx_mma_f16(c, a, b);
}

__device__ static void multiply(const unsigned *a, unsigned b, float *c, const bf16 *)
{
    ptx_mma_bf16(c, a, b);
}

/* Filter of column i of the block's matrix; permuted so that a lane's four filters are adjacent. */
__device__ static int filter_at(int i)
{
    const int pair = i / 16, half = i / 8 % 2, column = i % 8;
    return pair * 16 + column / 2 * 4 + half * 2 + column % 2;
}

template <typename T>
__device__ static void stage_filters(const ew_cuda_conv &p, const tile &t, int first, T *to)
{
    const ew_cuda_window &g = p.g;
    const int row = t.steps * STEP;
    for (int i = threadIdx.x; i < FILTERS * g.kh * row; i += THREADS) {
        const int at = i / (g.kh * row), in = i - at * g.kh * row;
        const int r = in / row, tap = (in - r * row) / CHANNELS, c = in % CHANNELS;
        const int o = first + filter_at(at);
        const bool real = o < g.k && tap < g.kw && c < g.c;
        to[at * t.depth + in] =
            real ? static_cast<const T *>(p.w)[((int64_t)(o * g.kh + r) * g.kw + tap) * g.c + c]
                 : from_float<T>(0);
    }
}

/* A thread's inputs of a tile, with their positions: fetched while the previous tile is
 * multiplied. */
struct inputs {
    int row[PIXELS], column[PIXELS];
};

__device__ static inputs inputs_of(const tile &t)
{
    inputs v;
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        const int at = threadIdx.x + i * THREADS;
        v.row[i] = at / t.pitch;
        v.column[i] = at - v.row[i] * t.pitch;
    }
    return v;
}

template <int C, typename T>
__device__ static void fetch(const ew_cuda_conv &p, const tile &t, const inputs &v, int k,
                             pack<T, CHANNELS> *to)
{
    const ew_cuda_window &g = p.g;
    const place at = place_of(g, k);
    const int y0 = at.y * g.sh - g.ph, x0 = at.x * g.sw - g.pw;
    const T *image = static_cast<const T *>(p.x) + (int64_t)at.n * g.h * g.w * C;
#pragma unroll
    for (int i = 0; i < PIXELS; i++) {
        const int y = y0 + v.row[i], x = x0 + v.column[i];
        const bool inside = v.row[i] < t.in_rows && y >= 0 && y < g.h && x >= 0 && x < g.w;
        const T *from = image + (y * g.w + x) * C;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            to[i].v[c] = c < C && inside ? from[c < C ? c : 0] : from_float<T>(0);
    }
}

template <typename T>
__device__ static void put_inputs(const tile &t, const inputs &v, const pack<T, CHANNELS> *from,
                                  T *to)
{
#pragma unroll
    for (int i = 0; i < PIXELS; i++)
        if (v.row[i] < t.in_rows)
            reinterpret_cast<pack<T, CHANNELS> *>(to)[threadIdx.x + i * THREADS] = from[i];
}

/* A warp's row of outputs: TILES x 16 pixels by all filters of the block. */
template <typename T>
__device__ static void sums_of(const ew_cuda_window &g, const tile &t, const T *inputs,
                               const T *filters, int pairs, float (*acc)[2 * PAIRS][4])
{
    const int lane = threadIdx.x % 32, group = lane / 4, at = lane % 4 * 2;
    const int between = g.sw * CHANNELS; /* elements between adjacent output pixels' windows */
    const T *x = inputs + (threadIdx.x / 32 * g.sh * t.pitch) * CHANNELS + group * between + at;
    const T *f = filters + group * t.depth + at;
    for (int r = 0; r < g.kh; r++, x += t.pitch * CHANNELS)
        for (int s = 0; s < t.steps; s++, f += STEP) {
            unsigned a[TILES][2];
#pragma unroll
            for (int i = 0; i < TILES; i++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    a[i][h] = *reinterpret_cast<const unsigned *>(x + s * STEP +
                                                                  (i * 16 + h * 8) * between);
#pragma unroll
            for (int n = 0; n < 2 * PAIRS; n++) {
                if (n >= 2 * pairs)
                    break;
                const unsigned b = *reinterpret_cast<const unsigned *>(f + n * 8 * t.depth);
#pragma unroll
                for (int i = 0; i < TILES; i++)
                    multiply(a[i], b, acc[i][n], f);
            }
        }
}

/* Epilogue of four filters of a pixel. */
template <int A, typename T>
__device__ static void finish(const ew_cuda_act &act, const float *bias, const float *low,
                              const float *high, T *to)
{
    float v[4] = {low[0], low[1], high[0], high[1]}, b[4];
    load<4>(bias, b);
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = act_known<A>(act, v[i] + b[i]);
    store<4>(to, v);
}

/* Writes a warp's row of outputs: `left` pixels, `between` elements apart, and those of the block's
 * filters that exist. */
template <int A, typename T>
__device__ static void write_row(const ew_cuda_act &act, const float *bias, int filters, int left,
                                 float (*acc)[2 * PAIRS][4], T *y, int between)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < TILES * 2; i++)
#pragma unroll
        for (int pair = 0; pair < PAIRS; pair++) {
            const int x = i * 8 + lane / 4, o = pair * 16 + lane % 4 * 4;
            if (x < left && o < filters)
                finish<A>(act, bias + o, acc[i / 2][pair * 2] + i % 2 * 2,
                          acc[i / 2][pair * 2 + 1] + i % 2 * 2, y + (int64_t)x * between + o);
        }
}

template <int C, int A, typename T>
__global__ void __launch_bounds__(THREADS) stem_kernel(const ew_cuda_conv p)
{
    extern __shared__ float4 memory[];
    const ew_cuda_window &g = p.g;
    const tile t = tile_of(g);
    const inputs mine = inputs_of(t);
    float *bias = reinterpret_cast<float *>(memory);
    T *filters = reinterpret_cast<T *>(bias + FILTERS), *staged = filters + FILTERS * t.depth;
    const ew_cuda_act act = A == EW_CUDA_ACT_CLIP ? as_bounds(p.act) : p.act;
    const int first = blockIdx.y * FILTERS, left = g.k - first < FILTERS ? g.k - first : FILTERS;
    const int tiles = tiles_of(g);
    pack<T, CHANNELS> next[PIXELS];
    fetch<C>(p, t, mine, blockIdx.x, next);
    stage_filters(p, t, first, filters);
    for (int i = threadIdx.x; i < left; i += THREADS)
        bias[i] = p.bias ? p.bias[first + i] : 0;
    for (int k = blockIdx.x; k < tiles; k += gridDim.x) {
        const place at = place_of(g, k);
        const int oy = at.y + threadIdx.x / 32;
        __syncthreads();
        put_inputs(t, mine, next, staged);
        __syncthreads();
        if (k + gridDim.x < tiles)
            fetch<C>(p, t, mine, k + gridDim.x, next);
        if (oy >= g.oh)
            continue;
        float acc[TILES][2 * PAIRS][4] = {};
        sums_of(g, t, staged, filters, (left + 15) / 16, acc);
        T *y = static_cast<T *>(p.y) + (((int64_t)at.n * g.oh + oy) * g.ow + at.x) * g.k + first;
        write_row<A>(act, bias, left, g.ow - at.x, acc, y, g.k);
    }
}

template <int C, int A, typename T> static void stem_launch(ew_cuda_queue *q, const ew_cuda_conv *p)
{
    const ew_cuda_window &g = p->g;
    const int tiles = tiles_of(g), most = q->processors * 3; /* as many blocks as can be resident */
    const dim3 grid(tiles < most ? tiles : most, (g.k + FILTERS - 1) / FILTERS);
    stem_kernel<C, A, T><<<grid, THREADS, shared_bytes(g), stream_of(q)>>>(*p);
}

template <int A, typename T> static int stem_pick(ew_cuda_queue *q, const ew_cuda_conv *p)
{
    switch (p->g.c) {
    case 1:
        stem_launch<1, A, T>(q, p);
        break;
    case 3:
        stem_launch<3, A, T>(q, p);
        break;
    default:
        return cudaErrorNotSupported;
    }
    return cudaGetLastError();
}

extern "C" int ew_cu_kernel_arch(int *out)
{
    cudaFuncAttributes a;
    const cudaError_t e = cudaFuncGetAttributes(&a, stem_kernel<3, EW_ACT_ANY, __half>);
    *out = e ? 0 : a.ptxVersion;
    return e;
}

extern "C" int ew_cu_stem(ew_cuda_queue *q, const ew_cuda_conv *p)
{
    const bool bounds = p->act.kind == EW_CUDA_ACT_NONE || p->act.kind == EW_CUDA_ACT_RELU ||
                        p->act.kind == EW_CUDA_ACT_CLIP;
    if (!ew_cuda_is_stem(&p->g) || p->residual || shared_bytes(p->g) > 48 * 1024)
        return cudaErrorNotSupported;
    if (p->type == EW_CUDA_F16)
        return bounds ? stem_pick<EW_CUDA_ACT_CLIP, __half>(q, p)
                      : stem_pick<EW_ACT_ANY, __half>(q, p);
    if (p->type == EW_CUDA_BF16)
        return bounds ? stem_pick<EW_CUDA_ACT_CLIP, bf16>(q, p) : stem_pick<EW_ACT_ANY, bf16>(q, p);
    return cudaErrorNotSupported;
}
