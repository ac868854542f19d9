/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, and batch norm forward and backward: column sums, then a pass over all rows. */
#include "backend/cuda/module/norm_sums.cuh"

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

/* ---- Batch norm forward ---- */

/* Rows in flight per thread. */
#define AHEAD      8
#define BACK_AHEAD 4

/* Statistics of a channel from the sums of x - pivot and (x - pivot)^2; the pivot is the first
 * pixel, which avoids cancellation. */
template <typename T> struct stats_end {
    ew_cuda_norm p;
    __device__ double variance(const double *total) const
    {
        const double n = (double)p.pixels, shift = total[0] / n;
        const double v = total[1] / n - shift * shift;
        return v < 0 ? 0 : v; /* fmax would drop the NaN that an infinity causes */
    }
    __device__ void of(int c, const double *total, float out[2]) const
    {
        out[0] = (float)(to_float(static_cast<const T *>(p.x)[c]) + total[0] / (double)p.pixels);
        out[1] = (float)(1 / sqrt(variance(total) + p.eps));
    }
    __device__ void note(int c, const double *total, const float *out) const
    {
        p.kept[c] = out[0];
        p.kept[p.channels + c] = out[1];
        if (!p.update_running)
            return;
        const double n = (double)p.pixels, unbiased = p.pixels > 1 ? n / (n - 1) : 1;
        const double var = variance(total);
        p.mean[c] = (float)(p.momentum * (double)p.mean[c] + (1 - p.momentum) * out[0]);
        p.var[c] = (float)(p.momentum * (double)p.var[c] + (1 - p.momentum) * unbiased * var);
    }
};

/* Rows in reverse order: those written last may still be in the cache. */
template <int V, typename T>
__device__ inline void stats_sum(const ew_cuda_norm &p, const thread_rows &r, int c,
                                 float sum[2][V])
{
    const T *x = static_cast<const T *>(p.x) + r.first * p.channels + c;
    float pivot[V];
    load<V>(static_cast<const T *>(p.x) + c, pivot);
    for (int k = r.count; k > 0; k -= AHEAD) {
        held<T, V> raw[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
            if (k - u > 0)
                raw[u].read(x + (k - 1 - u) * r.step * p.channels);
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            if (k - u <= 0)
                continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                const float d = raw[u].at(i) - pivot[i];
                sum[0][i] += d;
                sum[1][i] += d * d;
            }
        }
    }
}

/* Normalises rows in order; coefficients of the thread's channels stay in registers. */
template <int V, int A, bool RESIDUAL, typename T>
__device__ inline void norm_rows(const ew_cuda_norm &p, const thread_rows &r, int c,
                                 const float *mean, const float *inv)
{
    constexpr int AHEAD_OF = RESIDUAL ? AHEAD / 2 : AHEAD;
    float slope[V], shift[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        slope[i] = inv[i] * p.scale[c + i];
        shift[i] = p.bias[c + i] - mean[i] * slope[i];
    }
    const int64_t first = r.first * p.channels + c, step = r.step * p.channels;
    const T *x = static_cast<const T *>(p.x) + first;
    const T *residual = static_cast<const T *>(p.residual) + first;
    T *y = static_cast<T *>(p.y) + first;
    for (int k = 0; k < r.count; k += AHEAD_OF) {
        held<T, V> raw[AHEAD_OF], more[AHEAD_OF];
#pragma unroll
        for (int u = 0; u < AHEAD_OF; u++) {
            if (k + u >= r.count)
                continue;
            raw[u].read(x + (k + u) * step);
            if (RESIDUAL)
                more[u].read(residual + (k + u) * step);
        }
#pragma unroll
        for (int u = 0; u < AHEAD_OF; u++) {
            if (k + u >= r.count)
                continue;
            float v[V];
#pragma unroll
            for (int i = 0; i < V; i++)
                v[i] = act_apply_as<A>(p.act, raw[u].at(i) * slope[i] + shift[i] +
                                                  (RESIDUAL ? more[u].at(i) : 0));
            store<V>(y + (k + u) * step, v);
        }
    }
}

template <int V, int A, typename T>
__device__ inline void norm_apply(const ew_cuda_norm &p, const thread_rows &r, int c,
                                  const float *mean, const float *inv)
{
    if (p.residual)
        norm_rows<V, A, true, T>(p, r, c, mean, inv);
    else
        norm_rows<V, A, false, T>(p, r, c, mean, inv);
}

template <int V, typename T>
__global__ void __launch_bounds__(NORM_SUMS_THREADS, 1)
    norm_sum_kernel(const norm_sums s, const ew_cuda_norm p)
{
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    float sum[2][V] = {};
    if (c < p.channels)
        stats_sum<V, T>(p, rows_of(s.rows), c, sum);
    norm_sums_store<V>(s, sum);
}

template <int V, int A, typename T>
__global__ void __launch_bounds__(NORM_SUMS_THREADS, 1)
    norm_apply_kernel(const norm_sums s, const ew_cuda_norm p)
{
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    float known[2][V];
    norm_sums_load<V>(s, stats_end<T>{p}, p.kept, known);
    if (c < p.channels)
        norm_apply<V, A, T>(p, rows_of(s.rows), c, known[0], known[1]);
}

/* Normalises by the running statistics. */
template <int V, int A, typename T>
__global__ void __launch_bounds__(NORM_SUMS_THREADS, 1) norm_running_kernel(const ew_cuda_norm p)
{
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    if (c >= p.channels)
        return;
    float mean[V], inv[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        mean[i] = p.mean[c + i];
        inv[i] = rsqrtf(p.var[c + i] + p.eps);
        if (p.kept && blockIdx.y == 0 && threadIdx.y == 0) {
            p.kept[c + i] = mean[i];
            p.kept[p.channels + c + i] = inv[i];
        }
    }
    norm_apply<V, A, T>(p, rows_of(p.pixels), c, mean, inv);
}

/* Blocks of a pass over all rows: up to PASS_BLOCKS per multiprocessor; if they do not fill the
 * device, fewer rows per thread. */
#define PASS_BLOCKS 4

static norm_sums_grid pass_blocks(const ew_cuda_queue *q, int64_t rows, int cols, int v, int ahead)
{
    const norm_sums_grid wide =
        norm_sums_blocks(rows, cols, v, ahead, (int64_t)q->processors * PASS_BLOCKS);
    const bool fills = (int64_t)wide.grid.x * wide.grid.y >= q->processors;
    return fills || ahead <= 2 ? wide : pass_blocks(q, rows, cols, v, ahead / 2);
}

template <int V, int A, typename T> static int norm_launch(ew_cuda_queue *q, const ew_cuda_norm *p)
{
    const norm_sums_grid g = pass_blocks(q, p->pixels, p->channels, V, p->batch_stats ? AHEAD : 1);
    norm_sums s = {p->pixels, p->channels, 0, p->scratch};
    if (!p->batch_stats) {
        norm_running_kernel<V, A, T><<<g.grid, g.block, 0, stream_of(q)>>>(*p);
        return cudaGetLastError();
    }
    if (p->again) {
        s.parts = NORM_SUMS_KEPT;
    } else {
        const int status =
            norm_sums_launch<V>(q, norm_sum_kernel<V, T>, *p, stats_end<T>{*p}, AHEAD, &s);
        if (status)
            return status;
    }
    norm_apply_kernel<V, A, T><<<g.grid, g.block, 0, stream_of(q)>>>(s, *p);
    return cudaGetLastError();
}

/* Executes the code with A, the activation kind, as a constant for the common ones. */
#define FOR_NORM_ACT(act, ...)                                                                     \
    switch ((act).kind) {                                                                          \
    case EW_CUDA_ACT_NONE: {                                                                       \
        constexpr int A = EW_CUDA_ACT_NONE;                                                        \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    case EW_CUDA_ACT_RELU: {                                                                       \
        constexpr int A = EW_CUDA_ACT_RELU;                                                        \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    case EW_CUDA_ACT_CLIP: {                                                                       \
        constexpr int A = EW_CUDA_ACT_CLIP;                                                        \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    case EW_CUDA_ACT_HARD_SWISH: {                                                                 \
        constexpr int A = EW_CUDA_ACT_HARD_SWISH;                                                  \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    default: {                                                                                     \
        constexpr int A = EW_ACT_ANY;                                                              \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    }

/* Channels per thread: 16 bytes if row length and alignment allow, else fewer. */
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
        constexpr int most = 16 / sizeof(T);
        const int v = norm_width<T>(p->channels, all, 3);
        if (v == most)
            FOR_NORM_ACT(p->act, status = norm_launch<most, A, T>(q, p))
        else if (v == 4)
            status = norm_launch<4, EW_ACT_ANY, T>(q, p);
        else
            status = norm_launch<1, EW_ACT_ANY, T>(q, p);
    });
    return status;
}

/* ---- Backward ---- */

/* For V channels: the input of the activation is x * slope + shift. */
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

/* A row's values as stored. */
template <int V, int A, typename T> struct norm_row {
    held<T, V> x, dy, y;
    __device__ void read(const ew_cuda_norm_back &p, int64_t at)
    {
        x.read(static_cast<const T *>(p.x) + at);
        dy.read(static_cast<const T *>(p.dy) + at);
        if (A != EW_CUDA_ACT_NONE && p.y)
            y.read(static_cast<const T *>(p.y) + at);
    }
    /* Gradient before the activation. */
    __device__ float slope(const ew_cuda_norm_back &p, const norm_line<V> &line, int i) const
    {
        const float d = dy.at(i);
        if (A == EW_CUDA_ACT_NONE)
            return d;
        if (p.y)
            return d * act_slope_as<A>(act_stored<T>(p.act), y.at(i));
        return d * act_slope_as<A>(p.act, x.at(i) * line.slope[i] + line.shift[i]);
    }
};

/* From the sums of dz and of dz (x - mean): the sums of dz and of dz xhat. */
struct norm_back_end {
    ew_cuda_norm_back p;
    __device__ void of(int c, const double *total, float out[2]) const
    {
        out[0] = (float)total[0];
        out[1] = (float)(total[1] * p.kept[p.channels + c]);
    }
    __device__ void note(int c, const double *, const float *out) const
    {
        p.sums[c] = out[0];
        p.sums[p.channels + c] = out[1];
        if (p.dbias)
            put<1>(p.dbias + c, out, p.add_dbias);
        if (p.dscale)
            put<1>(p.dscale + c, out + 1, p.add_dscale);
    }
};

/* Sums of dz and of dz (x - mean), rows in reverse order. */
template <int V, int A, typename T>
__device__ inline void norm_back_sum(const ew_cuda_norm_back &p, const thread_rows &r, int c,
                                     const norm_line<V> &line, float sum[2][V])
{
    const int64_t first = r.first * p.channels + c, step = r.step * p.channels;
    for (int k = r.count; k > 0; k -= BACK_AHEAD) {
        norm_row<V, A, T> row[BACK_AHEAD];
#pragma unroll
        for (int u = 0; u < BACK_AHEAD; u++)
            if (k - u > 0)
                row[u].read(p, first + (k - 1 - u) * step);
#pragma unroll
        for (int u = 0; u < BACK_AHEAD; u++) {
            if (k - u <= 0)
                continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                const float dz = row[u].slope(p, line, i);
                sum[0][i] += dz;
                sum[1][i] += dz * (row[u].x.at(i) - line.mean[i]);
            }
        }
    }
}

/* dx = slope (dz - mean(dz) - xhat mean(dz xhat)), computed as slope dz + by_x x + rest. */
template <int V, int A, typename T>
__device__ inline void norm_back_apply(const ew_cuda_norm_back &p, const thread_rows &r, int c,
                                       const norm_line<V> &line, const float (*sums)[V])
{
    const float share = p.batch_stats ? 1.f / (float)p.pixels : 0;
    float by_x[V], rest[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        by_x[i] = -line.slope[i] * p.kept[p.channels + c + i] * sums[1][i] * share;
        rest[i] = -line.slope[i] * sums[0][i] * share - by_x[i] * line.mean[i];
    }
    const int64_t first = r.first * p.channels + c, step = r.step * p.channels;
    for (int k = 0; k < r.count; k += BACK_AHEAD) {
        norm_row<V, A, T> row[BACK_AHEAD];
#pragma unroll
        for (int u = 0; u < BACK_AHEAD; u++)
            if (k + u < r.count)
                row[u].read(p, first + (k + u) * step);
#pragma unroll
        for (int u = 0; u < BACK_AHEAD; u++) {
            const int64_t at = first + (k + u) * step;
            float dz[V];
            if (k + u >= r.count)
                continue;
#pragma unroll
            for (int i = 0; i < V; i++)
                dz[i] = row[u].slope(p, line, i);
            if (p.dresidual)
                put<V>(static_cast<T *>(p.dresidual) + at, dz, p.add_dresidual);
            if (!p.dx)
                continue;
#pragma unroll
            for (int i = 0; i < V; i++)
                dz[i] = line.slope[i] * dz[i] + row[u].x.at(i) * by_x[i] + rest[i];
            put<V>(static_cast<T *>(p.dx) + at, dz, p.add_dx);
        }
    }
}

template <int V, int A, typename T>
__global__ void __launch_bounds__(NORM_SUMS_THREADS, 1)
    norm_back_sum_kernel(const norm_sums s, const ew_cuda_norm_back p)
{
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    float sum[2][V] = {};
    if (c < p.channels) {
        norm_line<V> line;
        line.read(p, c);
        norm_back_sum<V, A, T>(p, rows_of(s.rows), c, line, sum);
    }
    norm_sums_store<V>(s, sum);
}

template <int V, int A, typename T>
__global__ void __launch_bounds__(NORM_SUMS_THREADS, 1)
    norm_dx_kernel(const norm_sums s, const ew_cuda_norm_back p)
{
    const int c = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    float sums[2][V];
    norm_sums_load<V>(s, norm_back_end{p}, p.sums, sums);
    if (c >= p.channels || !(p.dx || p.dresidual))
        return;
    norm_line<V> line;
    line.read(p, c);
    norm_back_apply<V, A, T>(p, rows_of(s.rows), c, line, sums);
}

/* If only the gradients of scale and bias are wanted, the second launch has one block per column,
 * which adds the partial sums. */
template <int V, int A, typename T>
static int norm_back_launch(ew_cuda_queue *q, const ew_cuda_norm_back *p)
{
    const bool passes = p->dx || p->dresidual;
    const norm_sums_grid g = passes ? pass_blocks(q, p->pixels, p->channels, V, BACK_AHEAD)
                                    : norm_sums_blocks(p->pixels, p->channels, V, BACK_AHEAD, 1);
    norm_sums s = {p->pixels, p->channels, 0, p->scratch};
    const int status = norm_sums_launch<V>(q, norm_back_sum_kernel<V, A, T>, *p, norm_back_end{*p},
                                           BACK_AHEAD, &s);
    if (status)
        return status;
    norm_dx_kernel<V, A, T><<<g.grid, g.block, 0, stream_of(q)>>>(s, *p);
    return cudaGetLastError();
}

extern "C" int ew_cu_norm_back(ew_cuda_queue *q, const ew_cuda_norm_back *p)
{
    const void *const all[] = {p->x, p->y, p->dy, p->dx, p->dresidual};
    int status = 0;
    FOR_TYPE(p->type, {
        constexpr int most = 16 / sizeof(T);
        const int v = norm_width<T>(p->channels, all, 5);
        if (v == most)
            FOR_NORM_ACT(p->act, status = norm_back_launch<most, A, T>(q, p))
        else if (v == 4)
            status = norm_back_launch<4, EW_ACT_ANY, T>(q, p);
        else
            status = norm_back_launch<1, EW_ACT_ANY, T>(q, p);
    });
    return status;
}
