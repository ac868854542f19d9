/* SPDX-License-Identifier: Apache-2.0 */
/* Column sums of [outer, rows, cols], of Q quantities at once, in a fixed order.
 *
 * Split-k: a block takes up to 32 * V columns and one of `splits` parts of the rows; its threads'
 * sums are reduced in shared memory and written to scratch.  The last block to arrive at a set of
 * columns adds the partial sums in order, in double, so the result does not depend on which block
 * that is. */
#ifndef EW_BACKEND_CUDA_MODULE_COLUMNS_CUH
#define EW_BACKEND_CUDA_MODULE_COLUMNS_CUH

#include "backend/cuda/module/device_math.cuh"

struct column_shape {
    int64_t rows;
    int cols, splits;
    float *partial; /* [outer][splits][Q][cols] */
    unsigned *counters;
};

#define COLUMN_THREADS     256
#define COLUMN_INLINE      2   /* up to so many quantities the last block adds the partial sums */
#define COLUMN_MANY_BLOCKS 192 /* with more: limit on the blocks of one `outer`, */
#define COLUMN_MANY_SPLITS 64  /* but at least so many splits are allowed */

/* True in all threads of the last of `n` blocks to arrive; resets the counter to zero. */
__device__ inline bool last_block(unsigned *counter, unsigned n)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        last = atomicInc(counter, n - 1) == n - 1;
    __syncthreads();
    if (last)
        __threadfence();
    return last;
}

/* Partial sums of V adjacent columns written by other blocks: bypasses L1.  V > 1 must divide the
 * number of columns. */
template <int V> __device__ inline void load_parts(const float *p, float out[V])
{
    if (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V / 4; i++) {
            const float4 t = __ldcg(reinterpret_cast<const float4 *>(p) + i);
            out[i * 4 % V] = t.x, out[(i * 4 + 1) % V] = t.y;
            out[(i * 4 + 2) % V] = t.z, out[(i * 4 + 3) % V] = t.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            out[i] = __ldcg(p + i);
    }
}

/* map.add(outer, row, col, sum): sum[q][i] += quantity q of column col + i.
 * end(outer, col, total): consumes total[q] of one column. */
template <int V, int Q, class Map, class End>
__global__ void __launch_bounds__(COLUMN_THREADS)
    column_kernel(const column_shape s, const Map map, const End end)
{
    __shared__ union {
        float block[Q * V][COLUMN_THREADS];
        double total[V][COLUMN_THREADS];
    } fold;
    const int x = threadIdx.x, y = threadIdx.y, width = blockDim.x, height = blockDim.y;
    const int self = y * width + x, base = blockIdx.x * width * V, col = base + x * V;
    const int64_t outer = blockIdx.z;
    float sum[Q][V] = {};
    if (col < s.cols) {
        /* Rows in flight per thread, if the accumulators leave registers for them. */
        constexpr int AHEAD = Q > COLUMN_INLINE ? 1 : 4;
        const int64_t step = (int64_t)s.splits * height;
        int64_t row = (int64_t)blockIdx.y * height + y;
        for (; row + (AHEAD - 1) * step < s.rows; row += AHEAD * step)
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                map.add(outer, row + k * step, col, sum);
        for (; row < s.rows; row += step)
            map.add(outer, row, col, sum);
    }
#pragma unroll
    for (int q = 0; q < Q; q++)
#pragma unroll
        for (int i = 0; i < V; i++)
            fold.block[q * V + i][self] = sum[q][i];
    __syncthreads();
    float *mine = s.partial + (outer * s.splits + blockIdx.y) * Q * s.cols;
    for (int k = self; k < Q * V * width; k += width * height) {
        const int q = k / (V * width), c = k % (V * width);
        float t = 0;
        for (int j = 0; j < height; j++)
            t += fold.block[q * V + c % V][j * width + c / V];
        if (base + c < s.cols)
            mine[q * s.cols + base + c] = t;
    }
    if (Q > COLUMN_INLINE || !last_block(s.counters + outer * gridDim.x + blockIdx.x, s.splits))
        return;
    const float *parts = s.partial + outer * s.splits * Q * s.cols;
    double part[Q][V] = {}, total[Q] = {};
    if (col < s.cols)
#pragma unroll 4
        for (int k = y; k < s.splits; k += height)
#pragma unroll
            for (int q = 0; q < Q; q++) {
                float v[V];
                load_parts<V>(&parts[((int64_t)k * Q + q) * s.cols + col], v);
#pragma unroll
                for (int i = 0; i < V; i++)
                    part[q][i] += v[i];
            }
#pragma unroll
    for (int q = 0; q < Q; q++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < V; i++)
            fold.total[i][self] = part[q][i];
        __syncthreads();
        if (self < V * width)
            for (int j = 0; j < height; j++)
                total[q] += fold.total[self % V][j * width + self / V];
    }
    if (self < V * width && base + self < s.cols)
        end(outer, base + self, total);
}

/* Adds the partial sums of many quantities in a separate launch, one thread per sum: a single block
 * would take longer than the rest of the kernel. */
template <int Q, class End>
__global__ void __launch_bounds__(COLUMN_THREADS)
    column_end_kernel(const column_shape s, const End end)
{
    const int k = blockIdx.x * COLUMN_THREADS + threadIdx.x;
    if (k >= Q * s.cols)
        return;
    double total = 0;
#pragma unroll 16
    for (int i = 0; i < s.splits; i++)
        total += s.partial[(int64_t)i * Q * s.cols + k];
    end.one(k % s.cols, k / s.cols, total);
}

template <int Q, bool MANY> struct column_last {
    template <class End> static void launch(ew_cuda_queue *, const column_shape &, const End &)
    {
    }
};
template <int Q> struct column_last<Q, true> {
    template <class End> static void launch(ew_cuda_queue *q, const column_shape &s, const End &end)
    {
        const unsigned blocks = (unsigned)(Q * s.cols + COLUMN_THREADS - 1) / COLUMN_THREADS;
        column_end_kernel<Q><<<blocks, COLUMN_THREADS, 0, stream_of(q)>>>(s, end);
    }
};

/* Threads per block along the columns, at most 32, such that blocks share the columns evenly. */
static inline int column_width(int cols, int v)
{
    const int threads = (cols + v - 1) / v, blocks = (threads + 31) / 32;
    return (threads + blocks - 1) / blocks;
}

/* outer must be 1 if Q > COLUMN_INLINE.  room: number of rows that scratch was sized for, if not
 * `rows`. */
template <int V, int Q, class Map, class End>
static int column_launch(ew_cuda_queue *q, int64_t outer, int64_t rows, int cols, float *scratch,
                         const Map &map, const End &end, int64_t room = 0)
{
    const int width = column_width(cols, V), height = COLUMN_THREADS / width;
    column_shape s = {rows, cols, ew_cuda_splits(outer, room ? room : rows, cols), scratch,
                      q->counters};
    if (s.splits > (rows + height - 1) / height)
        s.splits = (int)((rows + height - 1) / height);
    const int across = (cols + width * V - 1) / (width * V);
    /* Two blocks per multiprocessor keep enough loads in flight; more splits only lengthen the
     * final sum. */
    const int64_t fill = (2 * q->processors + across * outer - 1) / (across * outer);
    const int few = COLUMN_MANY_BLOCKS / across;
    const int64_t most = Q <= COLUMN_INLINE         ? fill
                         : few > COLUMN_MANY_SPLITS ? few
                                                    : COLUMN_MANY_SPLITS;
    if (s.splits > most)
        s.splits = (int)most;
    const dim3 grid(across, s.splits, (unsigned)outer);
    if ((int64_t)grid.x * grid.z > EW_CUDA_COUNTERS || outer > 65535)
        return cudaErrorInvalidConfiguration;
    column_kernel<V, Q><<<grid, dim3(width, height), 0, stream_of(q)>>>(s, map, end);
    column_last<Q, (Q > COLUMN_INLINE)>::launch(q, s, end);
    return cudaGetLastError();
}

#endif
