/* SPDX-License-Identifier: Apache-2.0 */
/* Group, instance and layer norm: one block per group, the elements that share statistics. */
#include "backend/cuda/module/columns.cuh"

#define THREADS COLUMN_THREADS

/* Block-wide sums of a and b, in all threads, in a fixed order. */
__device__ static void block_sums(double a, double b, double *sum_a, double *sum_b)
{
    __shared__ double warps[2][THREADS / 32];
    for (int d = 16; d > 0; d /= 2) {
        a += __shfl_down_sync(0xffffffffu, a, d);
        b += __shfl_down_sync(0xffffffffu, b, d);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        warps[0][threadIdx.x / 32] = a;
        warps[1][threadIdx.x / 32] = b;
    }
    __syncthreads();
    *sum_a = *sum_b = 0;
    for (int i = 0; i < THREADS / 32; i++) {
        *sum_a += warps[0][i];
        *sum_b += warps[1][i];
    }
}

/* Element e of the block's group, and the index of its scale and bias. */
__device__ static int64_t element(const ew_cuda_group_norm &p, int64_t e, int *param)
{
    const int64_t i = blockIdx.x / p.inner, r = e / p.run;
    const int j = (int)(blockIdx.x % p.inner);
    *param = j * p.run + (int)(e - r * p.run);
    return (i * p.rows + r) * p.inner * p.run + *param;
}

/* Sums are of x - pivot, which avoids cancellation; the pivot is the group's first element. */
template <typename T>
__global__ void __launch_bounds__(THREADS) group_norm_kernel(const ew_cuda_group_norm p)
{
    const T *x = static_cast<const T *>(p.x);
    const int64_t n = p.rows * p.run;
    int k;
    const float pivot = to_float(x[element(p, 0, &k)]);
    float sum = 0, squares = 0;
    for (int64_t e = threadIdx.x; e < n; e += THREADS) {
        const float d = to_float(x[element(p, e, &k)]) - pivot;
        sum += d;
        squares += d * d;
    }
    double total, total_squares;
    block_sums(sum, squares, &total, &total_squares);
    const double shift = total / (double)n;
    const double v = total_squares / (double)n - shift * shift;
    const double var = v < 0 ? 0 : v; /* fmax would drop the NaN that an infinity causes */
    const float mean = (float)(pivot + shift), inv = (float)(1 / sqrt(var + p.eps));
    if (p.kept && threadIdx.x == 0) {
        p.kept[blockIdx.x] = mean;
        p.kept[gridDim.x + blockIdx.x] = inv;
    }
    for (int64_t e = threadIdx.x; e < n; e += THREADS) {
        const int64_t at = element(p, e, &k);
        const float v = (to_float(x[at]) - mean) * inv * p.scale[k] + (p.bias ? p.bias[k] : 0);
        static_cast<T *>(p.y)[at] = from_float<T>(v);
    }
}

/* dx = inv * (dy * scale - mean(dy * scale) - xhat * mean(dy * scale * xhat)) */
template <typename T>
__global__ void __launch_bounds__(THREADS) group_norm_dx_kernel(const ew_cuda_group_norm p)
{
    const T *x = static_cast<const T *>(p.x), *dy = static_cast<const T *>(p.dy);
    const int64_t n = p.rows * p.run;
    const float mean = p.kept[blockIdx.x], inv = p.kept[gridDim.x + blockIdx.x];
    float sum = 0, products = 0;
    int k;
    for (int64_t e = threadIdx.x; e < n; e += THREADS) {
        const int64_t at = element(p, e, &k);
        const float d = to_float(dy[at]) * p.scale[k];
        sum += d;
        products += d * (to_float(x[at]) - mean) * inv;
    }
    double total, total_products;
    block_sums(sum, products, &total, &total_products);
    const float m = (float)(total / (double)n), mx = (float)(total_products / (double)n);
    for (int64_t e = threadIdx.x; e < n; e += THREADS) {
        const int64_t at = element(p, e, &k);
        const float xhat = (to_float(x[at]) - mean) * inv;
        const float v = inv * (to_float(dy[at]) * p.scale[k] - m - xhat * mx);
        put<1>(static_cast<T *>(p.dx) + at, &v, p.add_dx);
    }
}

/* Gradients of scale and bias: column sums over all rows of the batch. */
template <typename T> struct group_norm_map {
    ew_cuda_group_norm p;
    __device__ void add(int64_t, int64_t row, int c, float sum[2][1]) const
    {
        const int64_t group = row / p.rows * p.inner + c / p.run, groups = p.outer * p.inner;
        const int64_t at = row * p.inner * p.run + c;
        const float d = to_float(static_cast<const T *>(p.dy)[at]);
        const float v = to_float(static_cast<const T *>(p.x)[at]);
        sum[0][0] += d;
        sum[1][0] += d * (v - p.kept[group]) * p.kept[groups + group];
    }
};

struct group_norm_end {
    ew_cuda_group_norm p;
    __device__ void operator()(int64_t, int c, const double *total) const
    {
        const float dbias = (float)total[0], dscale = (float)total[1];
        if (p.dbias)
            put<1>(p.dbias + c, &dbias, p.add_dbias);
        if (p.dscale)
            put<1>(p.dscale + c, &dscale, p.add_dscale);
    }
};

extern "C" int ew_cu_group_norm(ew_cuda_queue *q, const ew_cuda_group_norm *p)
{
    const unsigned groups = (unsigned)(p->outer * p->inner);
    FOR_TYPE(p->type, (group_norm_kernel<T><<<groups, THREADS, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}

template <typename T> static int group_norm_back(ew_cuda_queue *q, const ew_cuda_group_norm *p)
{
    int status = 0;
    if (p->dx)
        group_norm_dx_kernel<T><<<(unsigned)(p->outer * p->inner), THREADS, 0, stream_of(q)>>>(*p);
    if (p->dscale || p->dbias) {
        const group_norm_map<T> map = {*p};
        const group_norm_end end = {*p};
        status =
            column_launch<1, 2>(q, 1, p->outer * p->rows, p->inner * p->run, p->scratch, map, end);
    }
    return status ? status : (int)cudaGetLastError();
}

extern "C" int ew_cu_group_norm_back(ew_cuda_queue *q, const ew_cuda_group_norm *p)
{
    int status = 0;
    FOR_TYPE(p->type, status = group_norm_back<T>(q, p));
    return status;
}
