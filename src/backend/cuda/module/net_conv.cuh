/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of small networks, forward and dgrad, from shared memory to shared memory.  They are
 * bound by shared memory bandwidth, so a thread computes several filters and, if possible, several
 * pixels per word that it reads. */
#ifndef EW_BACKEND_CUDA_MODULE_NET_CONV_CUH
#define EW_BACKEND_CUDA_MODULE_NET_CONV_CUH

#include "backend/cuda/module/net.cuh"

#define FILTERS 4 /* per thread; in sliding convolutions two */
#define SPAN    EW_CUDA_NET_SPAN

/* ---- Filters in shared memory ---- */

/* Layout [tap * c][k], followed by the biases. */
__device__ static void stage_forward(const ew_cuda_layer &l, float *to)
{
    const int taps = l.kh * l.kw, depth = taps * l.c, step = l.step;
#pragma unroll 4
    for (int i = threadIdx.x; i < depth * step; i += THREADS) {
        const int o = divide(divide(i, l.over_c), l.over_taps), at = i - o * depth;
        to[at * step + o] = o < l.k ? __ldg(l.weights + i) : 0;
    }
    for (int o = threadIdx.x; o < l.k; o += THREADS)
        to[depth * step + o] = l.bias ? __ldg(l.bias + o) : 0;
}

/* Layout [tap * k][c]; for sliding convolutions rotated by 180 degrees. */
__device__ static void stage_back(const ew_cuda_layer &l, float *to)
{
    const int taps = l.kh * l.kw, step = l.step_dy;
#pragma unroll 4
    for (int i = threadIdx.x; i < taps * l.k * l.c; i += THREADS) {
        const int at = divide(i, l.over_c), c = i - at * l.c, k = divide(at, l.over_taps);
        const int tap = at - k * taps, turned = l.slides_dy ? taps - 1 - tap : tap;
        to[(turned * l.k + k) * step + c] = __ldg(l.weights + i);
    }
    for (int i = threadIdx.x; i < taps * l.k * (step - l.c); i += THREADS) {
        const int at = i / (step - l.c);
        to[at * step + l.c + i - at * (step - l.c)] = 0;
    }
}

/* ---- Stride 1: sliding window ---- */

/* A convolution of stride 1.  Its dgrad is one too: of dy with the rotated filters. */
struct sliding {
    int rows, columns, filters; /* of the output */
    int in_rows, depth, kh, top, step;
};

/* Accumulates SPAN pixels of two filters over rows part, part + parts, ... of the n = (filter rows)
 * * (input channels). */
template <int KW>
__device__ static void slide_over(const sliding &g, const float *x, const ew_cuda_layout &at,
                                  const float *filters, int part, int parts, int n,
                                  float sum[2][SPAN])
{
    int c = part, r = 0;
#pragma unroll 1
    for (int d = part; d < n; d += parts) {
        for (; c >= g.depth; c -= g.depth)
            r++;
        const float *from = x + r * at.row + c, *f = filters + (r * KW * g.depth + c) * g.step;
        float v[SPAN + KW - 1];
#pragma unroll
        for (int i = 0; i < SPAN + KW - 1; i++)
            v[i] = from[i * at.column];
#pragma unroll
        for (int t = 0; t < KW; t++) {
            const float2 w = *reinterpret_cast<const float2 *>(f + t * g.depth * g.step);
#pragma unroll
            for (int i = 0; i < SPAN; i++) {
                sum[0][i] += v[i + t] * w.x;
                sum[1][i] += v[i + t] * w.y;
            }
        }
        c += parts;
    }
}

/* Threads that share one sum (split-k): a power of two, as long as there are idle threads. */
__device__ static int sharing(const sliding &g, int items)
{
    int parts = 1;
    while (parts < 8 && items * parts * 2 <= THREADS && parts * 2 <= g.depth * g.kh)
        parts *= 2;
    return parts;
}

/* Pixels beyond the end of a row are computed from whatever the memory holds, and discarded. */
template <int KW>
__device__ static void slide(const sliding &g, const view &x, const float *filters,
                             const sum_epilogue &e, const view &to)
{
    const int spans = (g.columns + SPAN - 1) / SPAN, pairs = (g.filters + 1) / 2;
    const int items = g.rows * spans * pairs, parts = sharing(g, items);
    /* Partial sums are reduced across lanes, so whole warps stay in the loop. */
    for (int job = threadIdx.x; job - (int)threadIdx.x % 32 < items * parts; job += THREADS) {
        const bool any = job < items * parts;
        const int part = job & (parts - 1), item = any ? job / parts : 0;
        const int span = item / pairs, o = (item - span * pairs) * 2;
        const int y = span / spans, x0 = (span - y * spans) * SPAN;
        const int first = y < g.top ? g.top - y : 0, most = g.in_rows + g.top - y;
        const int n = any ? ((most < g.kh ? most : g.kh) - first) * g.depth : 0;
        float sum[2][SPAN] = {};
        slide_over<KW>(g, x.data + (y + first - g.top) * x.at.row + x0 * x.at.column, x.at,
                       filters + first * KW * g.depth * g.step + o, part, parts, n, sum);
        for (int d = parts / 2; d > 0; d /= 2)
#pragma unroll
            for (int i = 0; i < 2 * SPAN; i++)
                sum[i / SPAN][i % SPAN] += __shfl_xor_sync(ALL, sum[i / SPAN][i % SPAN], d);
#pragma unroll
        for (int i = 0; i < 2 * SPAN; i++) {
            const int k = o + i / SPAN, column = x0 + i % SPAN;
            if (!any || (i & (parts - 1)) != part || k >= g.filters || column >= g.columns)
                continue;
            const float v = operand_of(e, e.back ? place(e.kept, y, column, k) : k);
            to.data[place(to.at, y, column, k)] = finish(e, sum[i / SPAN][i % SPAN], v);
        }
    }
}

/* ---- Any stride and filter width ---- */

/* sum[0..FILTERS) += x[i * apart] * f[i * step + 0..FILTERS) over i < n. */
__device__ static void multiply_add(const float *x, int apart, const float *f, int step, int n,
                                    float *sum)
{
#pragma unroll 4
    for (int i = 0; i < n; i++) {
        const float v = x[i * apart];
        const float4 w = *reinterpret_cast<const float4 *>(f + i * step);
        sum[0] += v * w.x;
        sum[1] += v * w.y;
        sum[2] += v * w.z;
        sum[3] += v * w.w;
    }
}

__device__ static void step_conv(const ew_cuda_layer &l, const view &x, const float *filters,
                                 const sum_epilogue &e, const view &to)
{
    const int pixels = l.oh * l.ow, step = l.step;
    for (int item = threadIdx.x; item < pixels * (step / FILTERS); item += THREADS) {
        const int group = divide(item, l.over_out), pixel = item - group * pixels;
        const int oy = divide(pixel, l.over_ow), ox = pixel - oy * l.ow, o = group * FILTERS;
        const int y0 = oy * l.sh - l.ph, x0 = ox * l.sw - l.pw;
        const int first = x0 < 0 ? -x0 : 0, last = l.w - x0 < l.kw ? l.w - x0 : l.kw;
        float sum[FILTERS] = {};
        for (int r = y0 < 0 ? -y0 : 0; r < l.kh && y0 + r < l.h; r++)
            for (int t = first; t < last; t++)
                multiply_add(x.data + place(x.at, y0 + r, x0 + t, 0), 1,
                             filters + (r * l.kw + t) * l.c * step + o, step, l.c, sum);
#pragma unroll
        for (int i = 0; i < FILTERS; i++)
            if (o + i < l.k)
                to.data[place(to.at, oy, ox, o + i)] = finish(e, sum[i], operand_of(e, o + i));
    }
}

__device__ static void step_conv_back(const ew_cuda_layer &l, const view &dy, const float *filters,
                                      const sum_epilogue &e, const view &to)
{
    const int pixels = l.h * l.w, step = l.step_dy;
    for (int item = threadIdx.x; item < pixels * (step / FILTERS); item += THREADS) {
        const int group = divide(item, l.over_in), pixel = item - group * pixels;
        const int y = divide(pixel, l.over_w), x = pixel - y * l.w, c = group * FILTERS;
        float sum[FILTERS] = {};
        for (int r = 0; r < l.kh; r++) {
            const int ty = y + l.ph - r, oy = l.sh == 1 ? ty : ty / l.sh;
            if (ty < 0 || oy * l.sh != ty || oy >= l.oh)
                continue;
            for (int t = 0; t < l.kw; t++) {
                const int tx = x + l.pw - t, ox = l.sw == 1 ? tx : tx / l.sw;
                if (tx >= 0 && ox * l.sw == tx && ox < l.ow)
                    multiply_add(dy.data + place(dy.at, oy, ox, 0), dy.at.channel,
                                 filters + (r * l.kw + t) * l.k * step + c, step, l.k, sum);
            }
        }
#pragma unroll
        for (int i = 0; i < FILTERS; i++)
            if (c + i < l.c)
                to.data[place(to.at, y, x, c + i)] =
                    finish(e, sum[i], operand_of(e, place(e.kept, y, x, c + i)));
    }
}

/* ---- Dispatch ---- */

__device__ static void conv(const ew_cuda_layer &l, const view &x, const float *filters,
                            const view &to)
{
    const int step = l.step;
    const sum_epilogue e = {false, l.act.kind, filters + l.kh * l.kw * l.c * step, {}};
    const sliding g = {l.oh, l.ow, l.k, l.h, l.c, l.kh, l.ph, step};
    if (!l.slides)
        step_conv(l, x, filters, e, to);
    else if (l.kw == 3)
        slide<3>(g, x, filters, e, to);
    else
        slide<5>(g, x, filters, e, to);
}

__device__ static void conv_back(const ew_cuda_layer &l, const view &dy, const float *filters,
                                 const sum_epilogue &e, const view &to)
{
    const int step = l.step_dy;
    const sliding g = {l.h, l.w, l.c, l.oh, l.k, l.kh, l.kh - 1 - l.ph, step};
    if (!l.slides_dy)
        step_conv_back(l, dy, filters, e, to);
    else if (l.kw == 3)
        slide<3>(g, dy, filters, e, to);
    else
        slide<5>(g, dy, filters, e, to);
}

#endif
