/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers of small networks.  Weights are read from global memory once per image, so the time
 * depends on the number of loads in flight. */
#ifndef EW_BACKEND_CUDA_MODULE_NET_DENSE_CUH
#define EW_BACKEND_CUDA_MODULE_NET_DENSE_CUH

#include "backend/cuda/module/net.cuh"

#define ROWS  4 /* rows of the matrix per warp */
#define PARTS 16

/* y[o] = sum over i of w[o][i] * x[i]; a warp computes ROWS outputs with V-element loads. */
template <int V>
__device__ static void rows_product(const float *w, int rows, int n, const float *x,
                                    const sum_epilogue &e, float *y)
{
    constexpr int BATCH = 4 / V; /* loads in flight per row */
    const int lane = threadIdx.x % 32;
    for (int o = threadIdx.x / 32 * ROWS; o < rows; o += WARPS * ROWS) {
        const int own = o + lane < rows ? o + lane : rows - 1;
        const float operand = lane < ROWS ? operand_of(e, own) : 0;
        float sum[ROWS] = {};
#pragma unroll 1
        for (int i = lane * V; i < n; i += 32 * V * BATCH) {
            pack<float, V> v[BATCH][ROWS];
#pragma unroll
            for (int j = 0; j < BATCH; j++)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    if (i + 32 * V * j < n)
                        v[j][r] = *reinterpret_cast<const pack<float, V> *>(
                            w + (o + r < rows ? o + r : o) * n + i + 32 * V * j);
#pragma unroll
            for (int j = 0; j < BATCH; j++) {
                if (i + 32 * V * j >= n)
                    continue;
                float x_at[V];
                load<V>(x + i + 32 * V * j, x_at);
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int a = 0; a < V; a++)
                        sum[r] += x_at[a] * v[j][r].v[a];
            }
        }
        float mine = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float s = warp_sum(sum[r]);
            mine = lane == r ? s : mine;
        }
        if (lane < ROWS && o + lane < rows)
            y[o + lane] = finish(e, mine, operand);
    }
}

/* y[i] = sum over o of x[o] * w[o][i]; a thread computes V adjacent outputs over a part of the rows
 * (split-k).  `parts`: room for V floats per thread. */
template <int V>
__device__ static void columns_product(const float *w, int rows, int n, const float *x,
                                       float *parts, const sum_epilogue &e, float *y)
{
    const int packs = n / V, spare = THREADS / packs < PARTS ? THREADS / packs : PARTS;
    const int splits = spare < 1 ? 1 : spare < rows ? spare : rows;
    const int per = (rows + splits - 1) / splits;
    for (int job = threadIdx.x; job < packs * splits; job += THREADS) {
        const int split = job / packs, i = (job - split * packs) * V;
        const int last = (split + 1) * per < rows ? (split + 1) * per : rows;
        float sum[V] = {};
#pragma unroll 6
        for (int o = split * per; o < last; o++) {
            const pack<float, V> v = *reinterpret_cast<const pack<float, V> *>(w + o * n + i);
#pragma unroll
            for (int a = 0; a < V; a++)
                sum[a] += x[o] * v.v[a];
        }
        if (splits > 1) {
            store<V>(parts + job * V, sum);
            continue;
        }
#pragma unroll
        for (int a = 0; a < V; a++)
            y[i + a] = finish(e, sum[a], operand_of(e, i + a));
    }
    if (splits == 1)
        return;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += THREADS) {
        const float operand = operand_of(e, i);
        float sum = 0;
#pragma unroll 4
        for (int s = 0; s < splits; s++)
            sum += parts[s * n + i];
        y[i] = finish(e, sum, operand);
    }
}

/* True if rows of n floats can be read in 16-byte loads. */
__device__ static bool in_fours(const float *w, int n)
{
    return n % 4 == 0 && reinterpret_cast<uintptr_t>(w) % 16 == 0;
}

__device__ static void product(const float *w, bool by_rows, int rows, int n, const float *x,
                               float *parts, const sum_epilogue &e, float *y)
{
    const bool fours = in_fours(w, n);
    if (by_rows && fours)
        rows_product<4>(w, rows, n, x, e, y);
    else if (by_rows)
        rows_product<1>(w, rows, n, x, e, y);
    else if (fours)
        columns_product<4>(w, rows, n, x, parts, e, y);
    else
        columns_product<1>(w, rows, n, x, parts, e, y);
}

/* w is [k][inputs], or transposed. */
__device__ static void dense(const ew_cuda_layer &l, const float *x, float *parts, float *y)
{
    const int n = l.h * l.w * l.c;
    const sum_epilogue e = {false, l.act.kind, l.bias, {}};
    product(l.weights, !l.w_turned, l.w_turned ? n : l.k, l.w_turned ? l.k : n, x, parts, e, y);
}

__device__ static void dense_back(const ew_cuda_layer &l, const float *dy, float *parts,
                                  const sum_epilogue &e, float *dx)
{
    const int n = l.h * l.w * l.c;
    product(l.weights, l.w_turned, l.w_turned ? n : l.k, l.w_turned ? l.k : n, dy, parts, e, dx);
}

#endif
