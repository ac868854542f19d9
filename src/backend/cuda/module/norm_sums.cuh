/* SPDX-License-Identifier: Apache-2.0 */
/* Two sums for each column of [rows, cols], and a second pass over the rows that needs them.
 *
 * The first launch writes partial sums over parts of the rows.  Up to NORM_SUMS_FEW parts are added
 * by each block of the second launch for its own columns; more of them by a launch in between, one
 * warp per column. All sums have a fixed order: over a thread's rows, a block's threads, and the
 * parts. */
#ifndef EW_BACKEND_CUDA_MODULE_NORM_SUMS_CUH
#define EW_BACKEND_CUDA_MODULE_NORM_SUMS_CUH

#include "backend/cuda/module/columns.cuh"

#define NORM_SUMS_THREADS 512
#define NORM_SUMS_FEW     32 /* parts that blocks of the second launch add themselves; */
#define NORM_SUMS_KEPT    (NORM_SUMS_FEW + 1) /* with more their values are in `kept` */
#define NORM_SUMS_WIDTH   (32 * 8)            /* most columns of a block */

struct norm_sums {
    int64_t rows;
    int cols, parts;
    float *partial; /* [parts][2][cols] */
};

/* Rows of a thread: first, first + step, ... */
struct thread_rows {
    int64_t first, step;
    int count;
};

__device__ inline thread_rows rows_of(int64_t rows)
{
    const int64_t first = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    const int64_t step = (int64_t)gridDim.y * blockDim.y;
    return {first, step, first < rows ? (int)((rows - 1 - first) / step) + 1 : 0};
}

/* Reduces the sums over the block's threads and writes the partial sum. */
template <int V> __device__ inline void norm_sums_store(const norm_sums &s, const float (*sum)[V])
{
    __shared__ float fold[2 * V][NORM_SUMS_THREADS];
    const int width = blockDim.x, height = blockDim.y, self = threadIdx.y * width + threadIdx.x;
    const int base = blockIdx.x * width * V;
#pragma unroll
    for (int i = 0; i < 2 * V; i++)
        fold[i][self] = sum[i / V][i % V];
    __syncthreads();
    float *mine = s.partial + (int64_t)blockIdx.y * 2 * s.cols + base;
    for (int k = self; k < 2 * V * width; k += width * height) {
        const int q = k / (V * width), c = k - q * V * width;
        float t = 0;
#pragma unroll 4
        for (int j = 0; j < height; j++)
            t += fold[q * V + c % V][j * width + c / V];
        if (base + c < s.cols)
            mine[q * s.cols + c] = t;
    }
}

/* end.of(col, total, out): two values per column from its sums; end.note(col, total, out) stores
 * them for later kernels. */
template <class End>
__global__ void __launch_bounds__(COLUMN_THREADS)
    norm_sums_totals_kernel(const norm_sums s, const End end)
{
    const int lane = threadIdx.x % 32, c = (blockIdx.x * COLUMN_THREADS + threadIdx.x) / 32;
    if (c >= s.cols)
        return;
    double total[2] = {};
#pragma unroll 4
    for (int k = lane; k < s.parts; k += 32) {
        total[0] += s.partial[(int64_t)k * 2 * s.cols + c];
        total[1] += s.partial[((int64_t)k * 2 + 1) * s.cols + c];
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        total[0] += __shfl_xor_sync(0xffffffffu, total[0], d);
        total[1] += __shfl_xor_sync(0xffffffffu, total[1], d);
    }
    float out[2];
    if (lane == 0) {
        end.of(c, total, out);
        end.note(c, total, out);
    }
}

/* The two values of the thread's columns, computed once per block.  kept: [2][cols], values stored
 * by the launch in between, if there was one. */
template <int V, class End>
__device__ inline void norm_sums_load(const norm_sums &s, const End &end, const float *kept,
                                      float out[2][V])
{
    __shared__ float own[2][NORM_SUMS_WIDTH];
    const int width = blockDim.x * V, base = blockIdx.x * width;
    for (int k = threadIdx.y * blockDim.x + threadIdx.x; k < width && base + k < s.cols;
         k += blockDim.x * blockDim.y) {
        float v[2];
        if (s.parts > NORM_SUMS_FEW) {
            v[0] = kept[base + k];
            v[1] = kept[s.cols + base + k];
        } else {
            float part[2][NORM_SUMS_FEW];
            double total[2] = {};
#pragma unroll
            for (int i = 0; i < NORM_SUMS_FEW; i++)
#pragma unroll
                for (int q = 0; q < 2; q++)
                    part[q][i] = i < s.parts ? s.partial[(i * 2 + q) * s.cols + base + k] : 0;
#pragma unroll
            for (int i = 0; i < NORM_SUMS_FEW; i++) {
                total[0] += part[0][i];
                total[1] += part[1][i];
            }
            end.of(base + k, total, v);
            if (blockIdx.y == 0)
                end.note(base + k, total, v);
        }
        own[0][k] = v[0];
        own[1][k] = v[1];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2 * V; i++)
        out[i / V][i % V] = own[i / V][threadIdx.x * V + i % V];
}

/* A grid over columns and rows; `ahead`: rows that a thread loads together. */
struct norm_sums_grid {
    dim3 grid, block;
};

static inline norm_sums_grid norm_sums_blocks(int64_t rows, int cols, int v, int ahead,
                                              int64_t blocks)
{
    const int width = column_width(cols, v), height = NORM_SUMS_THREADS / width;
    const int across = (cols + width * v - 1) / (width * v);
    const int64_t need = (rows + (int64_t)height * ahead - 1) / ((int64_t)height * ahead);
    const int64_t most = (blocks + across - 1) / across, down = need < most ? need : most;
    return {dim3((unsigned)across, (unsigned)(down < 1       ? 1
                                              : down > 65535 ? 65535
                                                             : down)),
            dim3((unsigned)width, (unsigned)height)};
}

/* Launches the kernel `sum`, and norm_sums_totals_kernel if there are many parts. */
template <int V, class What, class End>
static int norm_sums_launch(ew_cuda_queue *q, void (*sum)(const norm_sums, const What),
                            const What &what, const End &end, int ahead, norm_sums *s)
{
    norm_sums_grid g = norm_sums_blocks(s->rows, s->cols, V, ahead, q->processors);
    const unsigned room = (unsigned)ew_cuda_splits(1, s->rows, s->cols);
    g.grid.y = g.grid.y < room ? g.grid.y : room;
    s->parts = (int)g.grid.y;
    sum<<<g.grid, g.block, 0, stream_of(q)>>>(*s, what);
    if (s->parts > NORM_SUMS_FEW) {
        const unsigned warps = COLUMN_THREADS / 32;
        norm_sums_totals_kernel<<<((unsigned)s->cols + warps - 1) / warps, COLUMN_THREADS, 0,
                                  stream_of(q)>>>(*s, end);
    }
    return cudaGetLastError();
}

#endif
