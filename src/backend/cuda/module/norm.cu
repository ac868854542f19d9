/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions and batch norm: statistics and application, forward and backward, two launches each.
 */
#include "backend/cuda/module/columns.cuh"

/* ---- Sums ---- */

template <int V, typename T> struct reduce_map {
    const T *a, *b;
    int64_t rows;
    int cols, maximum;
    __device__ void add(int64_t outer, int64_t row, int col, float sum[1][V]) const
    {
        const int64_t at = (outer * rows + row) * cols + col;
        float v[V], w[V];
        load<V>(a + at, v);
        if (b)
            load<V>(b + at, w);
#pragma unroll
        for (int i = 0; i < V; i++)
            sum[0][i] += b ? v[i] * w[i] : v[i];
    }
};

template <typename T> struct reduce_end {
    void *out;
    int cols, out_f32, add;
    float scale;
    __device__ void operator()(int64_t outer, int col, const double *total) const
    {
        const float v = (float)(total[0] * scale);
        if (out_f32)
            put<1>(static_cast<float *>(out) + outer * cols + col, &v, add);
        else
            put<1>(static_cast<T *>(out) + outer * cols + col, &v, add);
    }
};

template <typename T> static int reduce_launch(ew_cuda_queue *q, const ew_cuda_reduce *p)
{
    const T *a = static_cast<const T *>(p->a), *b = static_cast<const T *>(p->b);
    const int cols = (int)p->inner;
    const reduce_end<T> end = {p->out, cols, p->out_f32, p->add, p->scale};
    if (cols % 4 == 0 && aligned(a, 4 * sizeof(T)) && aligned(b, 4 * sizeof(T))) {
        const reduce_map<4, T> map = {a, b, p->mid, cols, 0};
        return column_launch<4, 1>(q, p->outer, p->mid, cols, p->scratch, map, end);
    }
    const reduce_map<1, T> map = {a, b, p->mid, cols, 0};
    return column_launch<1, 1>(q, p->outer, p->mid, cols, p->scratch, map, end);
}

extern "C" int ew_cu_reduce(ew_cuda_queue *q, const ew_cuda_reduce *p)
{
    int status = 0;
    if (p->kind != EW_CUDA_SUM)
        return cudaErrorNotSupported;
    FOR_TYPE(p->type, status = reduce_launch<T>(q, p));
    return status;
}

/* ---- Statistics: sums of x - pivot and of its square; the pivot is the first pixel ---- */

template <int V, typename T> struct stats_map {
    const T *x;
    int cols;
    __device__ void add(int64_t, int64_t row, int col, float sum[2][V]) const
    {
        float v[V], pivot[V];
        load<V>(x + row * cols + col, v);
        load<V>(x + col, pivot);
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float d = v[i] - pivot[i];
            sum[0][i] += d;
            sum[1][i] += d * d;
        }
    }
};

template <typename T> struct stats_end {
    ew_cuda_norm p;
    __device__ void operator()(int64_t, int c, const double *total) const
    {
        const double n = (double)p.pixels, shift = total[0] / n;
        const double mean = to_float(static_cast<const T *>(p.x)[c]) + shift;
        const double var = fmax(total[1] / n - shift * shift, 0.0);
        p.kept[c] = (float)mean;
        p.kept[p.channels + c] = (float)(1 / sqrt(var + p.eps));
        if (!p.update_running)
            return;
        const double unbiased = p.pixels > 1 ? n / (n - 1) : 1;
        p.mean[c] = (float)(p.momentum * (double)p.mean[c] + (1 - p.momentum) * mean);
        p.var[c] = (float)(p.momentum * (double)p.var[c] + (1 - p.momentum) * unbiased * var);
    }
};

/* ---- Application: threads keep the coefficients of their channels ---- */

template <int V, int A, typename T>
__global__ void __launch_bounds__(COLUMN_THREADS) norm_apply_kernel(const ew_cuda_norm p)
{
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    if (c >= p.channels)
        return;
    float slope[V], shift[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        const float mean = p.batch_stats ? p.kept[c + i] : p.mean[c + i];
        const float inv = p.batch_stats ? p.kept[p.channels + c + i] : rsqrtf(p.var[c + i] + p.eps);
        slope[i] = inv * p.scale[c + i];
        shift[i] = p.bias[c + i] - mean * slope[i];
        if (!p.batch_stats && p.kept && blockIdx.y == 0 && threadIdx.y == 0) {
            p.kept[c + i] = mean;
            p.kept[p.channels + c + i] = inv;
        }
    }
    const T *x = static_cast<const T *>(p.x), *residual = static_cast<const T *>(p.residual);
    const int64_t step = (int64_t)gridDim.y * blockDim.y;
    /* Two rows at once: all loads before the first store, which the compiler cannot move. */
    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < p.pixels;
         row += 2 * step) {
        const bool more = row + step < p.pixels;
        const int64_t at[2] = {row * p.channels + c, (row + step) * p.channels + c};
        float v[2][V], r[2][V];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (k && !more)
                continue;
            load<V>(x + at[k], v[k]);
            if (residual)
                load<V>(residual + at[k], r[k]);
        }
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (k && !more)
                continue;
#pragma unroll
            for (int i = 0; i < V; i++)
                v[k][i] = act_apply_as<A>(p.act,
                                          v[k][i] * slope[i] + shift[i] + (residual ? r[k][i] : 0));
            store<V>(static_cast<T *>(p.y) + at[k], v[k]);
        }
    }
}

/* Blocks over (columns, rows) that fill the device a few times. */
static dim3 sheet(const ew_cuda_queue *q, int64_t rows, int cols, int v, dim3 *block)
{
    const int width = column_width(cols, v), height = COLUMN_THREADS / width;
    *block = dim3(width, height);
    const int64_t across = (cols + width * v - 1) / (width * v);
    const int64_t need = (rows + height - 1) / height, most = q->processors * 16 / across + 1;
    const int64_t down = need < most ? need : most;
    return dim3((unsigned)across, (unsigned)(down < 1 ? 1 : down > 65535 ? 65535 : down));
}

template <int V, typename T> static int norm_launch(ew_cuda_queue *q, const ew_cuda_norm *p)
{
    if (p->batch_stats) {
        const stats_map<V, T> map = {static_cast<const T *>(p->x), p->channels};
        const stats_end<T> end = {*p};
        const int status = column_launch<V, 2>(q, 1, p->pixels, p->channels, p->scratch, map, end);
        if (status)
            return status;
    }
    dim3 block;
    const dim3 grid = sheet(q, p->pixels, p->channels, V, &block);
    FOR_ACT(p->act, (norm_apply_kernel<V, A, T><<<grid, block, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}

/* How many channels a thread takes: 16 bytes of them, where rows and addresses allow. */
template <typename T> static int norm_width(int channels, const void *const *p, int n)
{
    int v = (int)(16 / sizeof(T));
    for (int i = 0; i < n; i++)
        while (v > 1 && (channels % v || !aligned(p[i], v * sizeof(T))))
            v /= 2;
    return v;
}

extern "C" int ew_cu_norm(ew_cuda_queue *q, const ew_cuda_norm *p)
{
    const void *const all[] = {p->x, p->y, p->residual};
    int status = 0;
    FOR_TYPE(p->type, {
        const int v = norm_width<T>(p->channels, all, 3);
        status = v == 8   ? norm_launch<8, T>(q, p)
                 : v == 4 ? norm_launch<4, T>(q, p)
                          : norm_launch<1, T>(q, p);
    });
    return status;
}

/* ---- Backward ---- */

/* Of V channels: y before the activation is x * slope + shift. */
template <int V> struct norm_line {
    float mean[V], slope[V], shift[V];
    __device__ void read(const ew_cuda_norm_back &p, int c)
    {
#pragma unroll
        for (int i = 0; i < V; i++) {
            mean[i] = p.kept[c + i];
            slope[i] = p.kept[p.channels + c + i] * p.scale[c + i];
            shift[i] = p.bias[c + i] - mean[i] * slope[i];
        }
    }
};

/* x and dz of V channels of a pixel. */
template <int V, int A, typename T>
__device__ inline void norm_gradient(const ew_cuda_norm_back &p, int64_t at,
                                     const norm_line<V> &line, float *x, float *dz)
{
    load<V>(static_cast<const T *>(p.x) + at, x);
    load<V>(static_cast<const T *>(p.dy) + at, dz);
    float y[V];
    if (A != EW_CUDA_ACT_NONE && p.y)
        load<V>(static_cast<const T *>(p.y) + at, y);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (A != EW_CUDA_ACT_NONE)
            dz[i] *= act_slope_as<A>(p.act, p.y ? y[i] : x[i] * line.slope[i] + line.shift[i]);
}

/* Sums of dz and of dz (x - mean). */
template <int V, int A, typename T> struct norm_back_map {
    ew_cuda_norm_back p;
    __device__ void add(int64_t, int64_t row, int c, float sum[2][V]) const
    {
        norm_line<V> line;
        float x[V], dz[V];
        line.read(p, c);
        norm_gradient<V, A, T>(p, row * p.channels + c, line, x, dz);
#pragma unroll
        for (int i = 0; i < V; i++) {
            sum[0][i] += dz[i];
            sum[1][i] += dz[i] * (x[i] - line.mean[i]);
        }
    }
};

struct norm_back_end {
    ew_cuda_norm_back p;
    __device__ void operator()(int64_t, int c, const double *total) const
    {
        const float dz = (float)total[0], dzx = (float)(total[1] * p.kept[p.channels + c]);
        p.sums[c] = dz;
        p.sums[p.channels + c] = dzx;
        if (p.dbias)
            put<1>(p.dbias + c, &dz, p.add_dbias);
        if (p.dscale)
            put<1>(p.dscale + c, &dzx, p.add_dscale);
    }
};

/* dx = slope (dz - mean(dz) - xhat mean(dz xhat)), as slope dz + x by_x + rest. */
template <int V, int A, typename T>
__global__ void __launch_bounds__(COLUMN_THREADS) norm_dx_kernel(const ew_cuda_norm_back p)
{
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    if (c >= p.channels)
        return;
    norm_line<V> line;
    float by_x[V], rest[V];
    const float share = p.batch_stats ? 1.f / (float)p.pixels : 0;
    line.read(p, c);
#pragma unroll
    for (int i = 0; i < V; i++) {
        const float inv = p.kept[p.channels + c + i];
        by_x[i] = -line.slope[i] * inv * p.sums[p.channels + c + i] * share;
        rest[i] = -line.slope[i] * p.sums[c + i] * share - by_x[i] * line.mean[i];
    }
    const int64_t step = (int64_t)gridDim.y * blockDim.y;
    /* Two rows at once: all loads before the first store, which the compiler cannot move. */
    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < p.pixels;
         row += 2 * step) {
        const bool more = row + step < p.pixels;
        const int64_t at[2] = {row * p.channels + c, (row + step) * p.channels + c};
        float x[2][V], dz[2][V];
#pragma unroll
        for (int k = 0; k < 2; k++)
            if (k == 0 || more)
                norm_gradient<V, A, T>(p, at[k], line, x[k], dz[k]);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            if (k && !more)
                continue;
            if (p.dresidual)
                put<V>(static_cast<T *>(p.dresidual) + at[k], dz[k], p.add_dresidual);
            if (!p.dx)
                continue;
#pragma unroll
            for (int i = 0; i < V; i++)
                dz[k][i] = line.slope[i] * dz[k][i] + x[k][i] * by_x[i] + rest[i];
            put<V>(static_cast<T *>(p.dx) + at[k], dz[k], p.add_dx);
        }
    }
}

template <int V, int A, typename T>
static int norm_back_launch(ew_cuda_queue *q, const ew_cuda_norm_back *p)
{
    const norm_back_map<V, A, T> map = {*p};
    const norm_back_end end = {*p};
    const int status = column_launch<V, 2>(q, 1, p->pixels, p->channels, p->scratch, map, end);
    if (status || (!p->dx && !p->dresidual))
        return status;
    dim3 block;
    const dim3 grid = sheet(q, p->pixels, p->channels, V, &block);
    norm_dx_kernel<V, A, T><<<grid, block, 0, stream_of(q)>>>(*p);
    return cudaGetLastError();
}

extern "C" int ew_cu_norm_back(ew_cuda_queue *q, const ew_cuda_norm_back *p)
{
    const void *const all[] = {p->x, p->y, p->dy, p->dx, p->dresidual};
    int status = 0;
    FOR_TYPE(p->type, {
        const int v = norm_width<T>(p->channels, all, 5);
        FOR_ACT(p->act, status = v == 8   ? norm_back_launch<8, A, T>(q, p)
                                 : v == 4 ? norm_back_launch<4, A, T>(q, p)
                                          : norm_back_launch<1, A, T>(q, p));
    });
    return status;
}
