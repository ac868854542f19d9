/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and softmax cross-entropy, one warp per row; the optimiser step of all parameters. */
#include "backend/cuda/module/columns.cuh"

#define THREADS 256
#define WARPS   (THREADS / 32)
#define ALL     0xffffffffu

__device__ static float warp_max(float v)
{
    for (int d = 16; d > 0; d /= 2)
        v = fmaxf(v, __shfl_xor_sync(ALL, v, d));
    return v;
}

/* Bit-identical in all lanes: the butterfly adds the same pairs, and addition commutes. */
__device__ static float warp_sum(float v)
{
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(ALL, v, d);
    return v;
}

/* Maximum of x, and log(sum of exp(x - maximum)). */
template <typename T> __device__ static float log_sum(const T *x, int n, int lane, float *largest)
{
    float most = -INFINITY, sum = 0;
    for (int i = lane; i < n; i += 32)
        most = fmaxf(most, to_float(x[i]));
    most = warp_max(most);
    for (int i = lane; i < n; i += 32)
        sum += expf(to_float(x[i]) - most);
    *largest = most;
    return logf(warp_sum(sum));
}

/* ---- Softmax ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS) softmax_kernel(const ew_cuda_softmax p)
{
    const int lane = threadIdx.x % 32;
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; row < p.rows;
         row += (int64_t)gridDim.x * WARPS) {
        const T *x = static_cast<const T *>(p.x) + row * p.cols;
        T *y = static_cast<T *>(p.y) + row * p.cols;
        float most;
        const float sum = log_sum(x, p.cols, lane, &most);
        const float inv = expf(-sum);
        for (int i = lane; i < p.cols; i += 32) {
            const float v = to_float(x[i]) - most;
            y[i] = from_float<T>(p.kind == EW_CUDA_SOFTMAX ? expf(v) * inv : v - sum);
        }
    }
}

/* softmax: dx = y (dy - sum(dy y)); log_softmax: dx = dy - exp(y) sum(dy). */
template <typename T>
__global__ void __launch_bounds__(THREADS) softmax_back_kernel(const ew_cuda_softmax p)
{
    const int lane = threadIdx.x % 32;
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; row < p.rows;
         row += (int64_t)gridDim.x * WARPS) {
        const T *y = static_cast<const T *>(p.x) + row * p.cols;
        const T *dy = static_cast<const T *>(p.dy) + row * p.cols;
        T *dx = static_cast<T *>(p.y) + row * p.cols;
        float sum = 0;
        for (int i = lane; i < p.cols; i += 32)
            sum += to_float(dy[i]) * (p.kind == EW_CUDA_SOFTMAX ? to_float(y[i]) : 1);
        sum = warp_sum(sum);
        for (int i = lane; i < p.cols; i += 32) {
            const float v = to_float(y[i]), g = to_float(dy[i]);
            const float d = p.kind == EW_CUDA_SOFTMAX ? v * (g - sum) : g - expf(v) * sum;
            put<1>(dx + i, &d, p.add);
        }
    }
}

extern "C" int ew_cu_softmax(ew_cuda_queue *q, const ew_cuda_softmax *p)
{
    const unsigned blocks = blocks_for(q, p->rows, WARPS);
    FOR_TYPE(p->type, (softmax_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}

extern "C" int ew_cu_softmax_back(ew_cuda_queue *q, const ew_cuda_softmax *p)
{
    const unsigned blocks = blocks_for(q, p->rows, WARPS);
    FOR_TYPE(p->type, (softmax_back_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}

/* ---- Cross-entropy ---- */

/* -1: the sample is ignored.  A label outside [0, classes) becomes `classes` and gives nan, since a
 * kernel cannot report an error. */
__device__ static int64_t label_at(const ew_cuda_loss &p, int64_t i)
{
    const int64_t l = p.label_bytes == 8 ? static_cast<const int64_t *>(p.labels)[i]
                                         : static_cast<const int *>(p.labels)[i];
    return l == p.ignore ? -1 : l < 0 || l >= p.classes ? p.classes : l;
}

__device__ static float weight_of(const ew_cuda_loss &p, int64_t label)
{
    return p.weights ? p.weights[label] : 1;
}

/* Sum over the block, in all threads. */
__device__ static double block_total(double v)
{
    __shared__ double part[THREADS];
    part[threadIdx.x] = v;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    __syncthreads();
    v = part[0];
    __syncthreads();
    return v;
}

/* Divisor of the loss: the counted samples or their weights, or 1. */
__device__ static double divisor_of(const ew_cuda_loss &p)
{
    if (!p.mean)
        return 1;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < p.samples; i += THREADS) {
        const int64_t l = label_at(p, i);
        sum += l < 0 || l >= p.classes ? 0 : weight_of(p, l);
    }
    return block_total(sum);
}

/* scratch: losses of the samples.  The target of class k is (1 - e) w_l [k = l] + e / K w_k, with
 * label smoothing e. */
template <typename T> __global__ void __launch_bounds__(THREADS) loss_kernel(const ew_cuda_loss p)
{
    const int lane = threadIdx.x % 32;
    const double divisor = divisor_of(p);
    const float up = (float)((p.dloss ? (double)*p.dloss : 1.0) / divisor);
    const float even = p.smoothing / (float)p.classes;
    for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; row < p.samples;
         row += (int64_t)gridDim.x * WARPS) {
        const T *x = static_cast<const T *>(p.x) + row * p.classes;
        const int64_t label = label_at(p, row);
        const bool counts = label >= 0 && label < p.classes, wrong = label >= p.classes;
        float most, loss = 0, targets = 0;
        const float sum = log_sum(x, p.classes, lane, &most);
        for (int k = lane; k < p.classes && counts; k += 32) {
            const float t = (k == label ? (1 - p.smoothing) * weight_of(p, label) : 0) +
                            (p.smoothing > 0 ? even * weight_of(p, k) : 0);
            if (k == label || p.smoothing > 0) /* else 0 * -INFINITY of a class left out */
                loss -= t * (to_float(x[k]) - most - sum);
            targets += t;
        }
        loss = warp_sum(loss);
        targets = warp_sum(targets);
        if (lane == 0 && p.loss)
            p.scratch[row] = wrong ? NAN : loss;
        if (!p.dx)
            continue;
        T *dx = static_cast<T *>(p.dx) + row * p.classes;
        for (int k = lane; k < p.classes; k += 32) {
            const float t = (k == label ? (1 - p.smoothing) * weight_of(p, label) : 0) +
                            (p.smoothing > 0 ? even * weight_of(p, k) : 0);
            const float d = counts ? up * (expf(to_float(x[k]) - most - sum) * targets - t) : 0;
            put<1>(dx + k, &d, p.add);
        }
    }
    if (!p.loss || !last_block(reinterpret_cast<unsigned *>(p.scratch + p.samples), gridDim.x))
        return;
    double total = 0;
    for (int64_t i = threadIdx.x; i < p.samples; i += THREADS)
        total += __ldcg(&p.scratch[i]);
    total = block_total(total);
    if (threadIdx.x == 0)
        *p.loss = (float)(total / divisor);
}

extern "C" int ew_cu_loss(ew_cuda_queue *q, const ew_cuda_loss *p)
{
    const unsigned blocks = blocks_for(q, p->samples, WARPS);
    if (p->loss) {
        const cudaError_t e =
            cudaMemsetAsync(p->scratch + p->samples, 0, sizeof(unsigned), stream_of(q));
        if (e)
            return e;
    }
    FOR_TYPE(p->type, (loss_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}

/* ---- Optimiser ---- */

#define PER_THREAD (EW_CUDA_UPDATE_CHUNK / THREADS)

/* An element of a parameter with gradient and optimiser state. */
struct element {
    float w, g, m, v;
};

__device__ static void step_sgd(const ew_cuda_rates &r, bool nesterov, bool momentum, element &e)
{
    e.g += (float)r.weight_decay * e.w;
    float step = e.g;
    if (momentum) {
        e.m = (float)r.momentum * e.m + e.g;
        step = nesterov ? e.g + (float)r.momentum * e.m : e.m;
    }
    e.w -= (float)r.lr * step;
}

__device__ static void step_adam(const ew_cuda_rates &r, bool decoupled, element &e)
{
    if (decoupled)
        e.w -= (float)(r.lr * r.weight_decay) * e.w;
    else
        e.g += (float)r.weight_decay * e.w;
    e.m = (float)r.beta1 * e.m + (float)(1 - r.beta1) * e.g;
    e.v = (float)r.beta2 * e.v + (float)(1 - r.beta2) * e.g * e.g;
    e.w -= (float)(r.lr / r.bias1) * e.m / (sqrtf(e.v * (float)(1 / r.bias2)) + (float)r.eps);
}

__device__ static void store_element(const ew_cuda_param &p, int64_t i, const element &e)
{
    p.w[i] = e.w;
    if (p.state[0])
        p.state[0][i] = e.m;
    if (p.state[1])
        p.state[1][i] = e.v;
    if (p.copy && p.copy_type == EW_CUDA_F16)
        static_cast<__half *>(p.copy)[i] = from_float<__half>(e.w);
    else if (p.copy)
        static_cast<bf16 *>(p.copy)[i] = from_float<bf16>(e.w);
}

/* Elements [first, first + EW_CUDA_UPDATE_CHUNK) of a parameter: a thread issues all its loads
 * before it uses the first. */
__device__ static void update_chunk(int kind, const ew_cuda_param &p, const ew_cuda_rates &r,
                                    float inverse, int64_t first)
{
    element e[PER_THREAD] = {};
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int64_t i = first + k * THREADS + threadIdx.x;
        if (i < p.n)
            e[k] = {p.w[i], p.g[i] * inverse, p.state[0] ? p.state[0][i] : 0,
                    p.state[1] ? p.state[1][i] : 0};
    }
#pragma unroll
    for (int k = 0; k < PER_THREAD; k++) {
        const int64_t i = first + k * THREADS + threadIdx.x;
        if (i >= p.n)
            return;
        if (kind == EW_CUDA_ADAM || kind == EW_CUDA_ADAMW)
            step_adam(r, kind == EW_CUDA_ADAMW, e[k]);
        else
            step_sgd(r, kind == EW_CUDA_NESTEROV, p.state[0] != NULL, e[k]);
        store_element(p, i, e[k]);
    }
}

__global__ void __launch_bounds__(THREADS) update_kernel(const ew_cuda_update u)
{
    const ew_cuda_rates r = *u.rates;
    const bool scaled = u.scale && r.scaled;
    if (scaled && u.scale->overflow)
        return;
    update_chunk(u.kind, u.params[u.chunk_param[blockIdx.x]], r, scaled ? 1 / u.scale->scale : 1,
                 (int64_t)u.chunk_index[blockIdx.x] * EW_CUDA_UPDATE_CHUNK);
}

__global__ void __launch_bounds__(THREADS) overflow_kernel(const ew_cuda_update u)
{
    const ew_cuda_param p = u.params[u.chunk_param[blockIdx.x]];
    const int64_t first = (int64_t)u.chunk_index[blockIdx.x] * EW_CUDA_UPDATE_CHUNK;
    const int64_t end = first + EW_CUDA_UPDATE_CHUNK < p.n ? first + EW_CUDA_UPDATE_CHUNK : p.n;
    bool bad = false;
#pragma unroll 4
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS)
        bad |= !isfinite(p.g[i]);
    if (bad)
        u.scale->overflow = 1;
}

__global__ void scale_kernel(ew_cuda_scale *s)
{
    if (s->overflow) {
        s->scale = fmaxf(s->scale / 2, 1);
        s->good = 0;
        s->skipped++;
    } else if (++s->good == EW_CUDA_SCALE_STEPS) {
        s->scale = fminf(s->scale * 2, 0x1p24f);
        s->good = 0;
    }
    s->overflow = 0;
}

extern "C" int ew_cu_update(ew_cuda_queue *q, const ew_cuda_update *p)
{
    if (p->n_chunks == 0)
        return 0;
    if (p->scale)
        overflow_kernel<<<p->n_chunks, THREADS, 0, stream_of(q)>>>(*p);
    update_kernel<<<p->n_chunks, THREADS, 0, stream_of(q)>>>(*p);
    if (p->scale)
        scale_kernel<<<1, 1, 0, stream_of(q)>>>(p->scale);
    return cudaGetLastError();
}

__global__ void set_rates_kernel(ew_cuda_rates *to, const ew_cuda_rates v)
{
    *to = v;
}

extern "C" int ew_cu_set_rates(ew_cuda_queue *q, ew_cuda_rates *p, const ew_cuda_rates *v)
{
    set_rates_kernel<<<1, 1, 0, stream_of(q)>>>(p, *v);
    return cudaGetLastError();
}

template <typename T>
__global__ void seed_kernel(T *to, float v, const ew_cuda_rates *rates, const ew_cuda_scale *scale)
{
    *to = scale && rates->scaled ? v * scale->scale : v;
}

extern "C" int ew_cu_seed(ew_cuda_queue *q, void *p, int wide, float v, const ew_cuda_rates *rates,
                          const ew_cuda_scale *scale)
{
    if (wide)
        seed_kernel<<<1, 1, 0, stream_of(q)>>>(static_cast<double *>(p), v, rates, scale);
    else
        seed_kernel<<<1, 1, 0, stream_of(q)>>>(static_cast<float *>(p), v, rates, scale);
    return cudaGetLastError();
}
