/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise chains, activation derivatives, dropout, type conversion. */
#include "backend/cuda/module/device_math.cuh"

#define THREADS 256

__device__ static float unary(const ew_cuda_link &l, float v)
{
    switch (l.op) {
    case EW_CUDA_OP_NEG:
        return -v;
    case EW_CUDA_OP_ABS:
        return fabsf(v);
    case EW_CUDA_OP_EXP:
        return expf(v);
    case EW_CUDA_OP_LOG:
        return logf(v);
    case EW_CUDA_OP_SQRT:
        return sqrtf(v);
    case EW_CUDA_OP_RECIPROCAL:
        return 1 / v;
    case EW_CUDA_OP_ERF:
        return erff(v);
    case EW_CUDA_OP_GELU:
        return 0.5f * v * (1 + erff(v * 0.70710678f));
    case EW_CUDA_OP_SOFTPLUS:
        return fmaxf(v, 0) + log1pf(expf(-fabsf(v)));
    case EW_CUDA_OP_ELU:
        return v > 0 ? v : l.lo * expm1f(v);
    case EW_CUDA_OP_MISH:
        return v * tanhf(fmaxf(v, 0) + log1pf(expf(-fabsf(v))));
    case EW_CUDA_OP_FLOOR:
        return floorf(v);
    case EW_CUDA_OP_CEIL:
        return ceilf(v);
    case EW_CUDA_OP_AFFINE:
        return v * l.lo + l.hi;
    }
    const ew_cuda_act a = {l.op, l.lo, l.hi};
    return act_apply(a, v);
}

__device__ static float binary(int op, float v, float b)
{
    switch (op) {
    case EW_CUDA_OP_ADD:
        return v + b;
    case EW_CUDA_OP_SUB:
        return v - b;
    case EW_CUDA_OP_MUL:
        return v * b;
    case EW_CUDA_OP_DIV:
        return v / b;
    case EW_CUDA_OP_MAX:
        return isnan(v) || isnan(b) ? v + b : fmaxf(v, b);
    case EW_CUDA_OP_MIN:
        return isnan(v) || isnan(b) ? v + b : fminf(v, b);
    case EW_CUDA_OP_AT_LEAST:
        return v < b ? b : v;
    case EW_CUDA_OP_AT_MOST:
        return v > b ? b : v;
    }
    return powf(v, b);
}

/* Loads V elements of an operand along the innermost dimension; stride 1 or 0 (broadcast). */
template <int V, typename T>
__device__ static void operand(const T *p, int64_t at, int64_t stride, float out[V])
{
    if (stride == 1) {
        load<V>(p + at, out);
        return;
    }
    const float v = to_float(p[at]);
#pragma unroll
    for (int i = 0; i < V; i++)
        out[i] = stride == 0 || i == 0 ? v : to_float(p[at + i * stride]);
}

template <int V, typename T>
__global__ void __launch_bounds__(THREADS) chain_kernel(const ew_cuda_chain c, int64_t n)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n;
         k += (int64_t)gridDim.x * THREADS) {
        const unsigned inner = (unsigned)(c.dim[3] / V);
        unsigned rest = (unsigned)k / inner;
        int64_t at[EW_CUDA_DIMS];
        at[3] = (int64_t)((unsigned)k - rest * inner) * V;
#pragma unroll
        for (int d = EW_CUDA_DIMS - 2; d >= 0; d--) {
            const unsigned next = c.dim[d] == 1 ? rest : rest / (unsigned)c.dim[d];
            at[d] = rest - next * c.dim[d];
            rest = next;
        }
        int64_t from = 0;
#pragma unroll
        for (int d = 0; d < EW_CUDA_DIMS; d++)
            from += at[d] * c.a_stride[d];
        float v[V], b[V];
        if (c.a_f32)
            operand<V>(static_cast<const float *>(c.a), from, c.a_stride[3], v);
        else
            operand<V>(static_cast<const T *>(c.a), from, c.a_stride[3], v);
        for (int l = 0; l < c.n; l++) {
            const ew_cuda_link &link = c.link[l];
            if (link.op >= EW_CUDA_OP_ADD && link.op <= EW_CUDA_OP_LAST_BINARY) {
                from = 0;
#pragma unroll
                for (int d = 0; d < EW_CUDA_DIMS; d++)
                    from += at[d] * link.stride[d];
                if (link.b_f32)
                    operand<V>(static_cast<const float *>(link.b), from, link.stride[3], b);
                else
                    operand<V>(static_cast<const T *>(link.b), from, link.stride[3], b);
#pragma unroll
                for (int i = 0; i < V; i++)
                    v[i] = binary(link.op, v[i], b[i]);
            } else {
#pragma unroll
                for (int i = 0; i < V; i++)
                    v[i] = unary(link, v[i]);
            }
        }
        put<V>(static_cast<T *>(c.y) + k * V, v, c.add);
    }
}

/* True if the operand can be read V elements at a time. */
static bool wide(const void *p, const int64_t *stride, int v, size_t bytes)
{
    if (stride[3] != 1)
        return stride[3] == 0;
    for (int d = 0; d < EW_CUDA_DIMS - 1; d++)
        if (stride[d] % v)
            return false;
    return aligned(p, bytes);
}

template <int V, typename T> static bool chain_fits(const ew_cuda_chain *c)
{
    const size_t own = V * sizeof(T), f32 = V * sizeof(float);
    bool fits = c->dim[3] % V == 0 && wide(c->a, c->a_stride, V, c->a_f32 ? f32 : own) &&
                aligned(c->y, own);
    for (int l = 0; l < c->n && fits; l++)
        fits =
            !c->link[l].b || wide(c->link[l].b, c->link[l].stride, V, c->link[l].b_f32 ? f32 : own);
    return fits;
}

template <typename T> static void chain_launch(ew_cuda_queue *q, const ew_cuda_chain *c)
{
    const int64_t n = c->dim[0] * c->dim[1] * c->dim[2] * c->dim[3];
    if (chain_fits<4, T>(c))
        chain_kernel<4, T><<<blocks_for(q, n / 4, THREADS), THREADS, 0, stream_of(q)>>>(*c, n / 4);
    else
        chain_kernel<1, T><<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(*c, n);
}

extern "C" int ew_cu_chain(ew_cuda_queue *q, const ew_cuda_chain *p)
{
    if (p->dim[0] * p->dim[1] * p->dim[2] * p->dim[3] >= INT64_C(1) << 32)
        return cudaErrorNotSupported;
    FOR_TYPE(p->type, chain_launch<T>(q, p));
    return cudaGetLastError();
}

/* ---- Epilogue of a product ---- */

template <int V, typename T>
__global__ void __launch_bounds__(THREADS) epilogue_kernel(const ew_cuda_epilogue p)
{
    const int across = p.cols / V;
    const T *residual = static_cast<const T *>(p.residual);
    T *y = static_cast<T *>(p.y);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < p.rows * across;
         k += (int64_t)gridDim.x * THREADS) {
        const int c = (int)((unsigned)k % (unsigned)across) * V;
        float v[V], r[V];
        load<V>(y + k * V, v);
        if (residual)
            load<V>(residual + k * V, r);
#pragma unroll
        for (int i = 0; i < V; i++) {
            float s = v[i] + (p.bias ? p.bias[c + i] : 0);
            s += residual && !p.add_after ? r[i] : 0;
            s = act_apply(p.act, s);
            v[i] = residual && p.add_after ? s + r[i] : s;
        }
        store<V>(y + k * V, v);
    }
}

template <typename T> static void epilogue_launch(ew_cuda_queue *q, const ew_cuda_epilogue *p)
{
    const int64_t n = p->rows * p->cols;
    if (p->cols % 4 == 0 && aligned(p->y, 4 * sizeof(T)) && aligned(p->residual, 4 * sizeof(T)))
        epilogue_kernel<4, T><<<blocks_for(q, n / 4, THREADS), THREADS, 0, stream_of(q)>>>(*p);
    else
        epilogue_kernel<1, T><<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(*p);
}

extern "C" int ew_cu_epilogue(ew_cuda_queue *q, const ew_cuda_epilogue *p)
{
    FOR_TYPE(p->type, epilogue_launch<T>(q, p));
    return cudaGetLastError();
}

/* ---- Derivatives ---- */

/* Derivative from the activation's output. */
__device__ static float slope_of_output(const ew_cuda_act &a, float y)
{
    switch (a.kind) {
    case EW_CUDA_ACT_HARD_SIGMOID:
        return y > 0 && y < 1 ? a.lo : 0;
    case EW_CUDA_ACT_SIGMOID:
        return y * (1 - y);
    case EW_CUDA_ACT_TANH:
        return 1 - y * y;
    }
    return act_slope(a, y); /* relu, clip, leaky relu: their derivatives by input and output
                             * agree */
}

template <int V, typename T>
__global__ void __launch_bounds__(THREADS) act_back_kernel(const ew_cuda_act_back p)
{
    const T *x = static_cast<const T *>(p.x), *dy = static_cast<const T *>(p.dy);
    ew_cuda_act act = p.act;
    if (p.bounds) {
        act.lo = p.lo ? *p.lo : -INFINITY;
        act.hi = p.hi ? *p.hi : INFINITY;
    }
    act = act_stored<T>(act);
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < p.n / V;
         k += (int64_t)gridDim.x * THREADS) {
        float v[V], g[V];
        load<V>(x + k * V, v);
        load<V>(dy + k * V, g);
#pragma unroll
        for (int i = 0; i < V; i++)
            g[i] *= p.by_output ? slope_of_output(act, v[i]) : act_slope(act, v[i]);
        put<V>(static_cast<T *>(p.dx) + k * V, g, p.add);
    }
}

template <typename T> static void act_back_launch(ew_cuda_queue *q, const ew_cuda_act_back *p)
{
    const size_t bytes = 4 * sizeof(T);
    const bool fits =
        p->n % 4 == 0 && aligned(p->x, bytes) && aligned(p->dy, bytes) && aligned(p->dx, bytes);
    const unsigned blocks = blocks_for(q, fits ? p->n / 4 : p->n, THREADS);
    if (fits)
        act_back_kernel<4, T><<<blocks, THREADS, 0, stream_of(q)>>>(*p);
    else
        act_back_kernel<1, T><<<blocks, THREADS, 0, stream_of(q)>>>(*p);
}

extern "C" int ew_cu_act_back(ew_cuda_queue *q, const ew_cuda_act_back *p)
{
    FOR_TYPE(p->type, act_back_launch<T>(q, p));
    return cudaGetLastError();
}

/* ---- Dropout: base/rng.h's Philox4x32-10 ---- */

/* splitmix64 */
__device__ static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

__device__ static uint4 philox(uint64_t seed, uint64_t index)
{
    uint4 b = make_uint4((unsigned)index, (unsigned)(index >> 32), 0, 0);
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const unsigned lo0 = 0xD2511F53u * b.x, hi0 = __umulhi(0xD2511F53u, b.x);
        const unsigned lo1 = 0xCD9E8D57u * b.z, hi1 = __umulhi(0xCD9E8D57u, b.z);
        b = make_uint4(hi1 ^ b.y ^ k0, lo1, hi0 ^ b.w ^ k1, lo0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return b;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) dropout_kernel(const ew_cuda_dropout p)
{
    const T *x = static_cast<const T *>(p.x);
    T *y = static_cast<T *>(p.y);
    const uint64_t seed = mix(*p.key ^ (uint64_t)p.node);
    const float keep = (float)(1 / (1 - p.ratio));
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < (p.n + 3) / 4;
         k += (int64_t)gridDim.x * THREADS) {
        const uint4 r = philox(seed, (uint64_t)k);
        const unsigned bits[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (k * 4 + i >= p.n)
                break;
            const float v = bits[i] * 0x1p-32 < p.ratio ? 0 * to_float(x[k * 4 + i])
                                                        : keep * to_float(x[k * 4 + i]);
            put<1>(y + k * 4 + i, &v, p.add);
        }
    }
}

extern "C" int ew_cu_dropout(ew_cuda_queue *q, const ew_cuda_dropout *p)
{
    const unsigned blocks = blocks_for(q, (p->n + 3) / 4, THREADS);
    FOR_TYPE(p->type, (dropout_kernel<T><<<blocks, THREADS, 0, stream_of(q)>>>(*p)));
    return cudaGetLastError();
}

/* ---- Type conversion ---- */

template <int V, typename From, typename To>
__global__ void __launch_bounds__(THREADS) cast_kernel(const From *x, To *y, int64_t n, int add)
{
    for (int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x; k < n / V;
         k += (int64_t)gridDim.x * THREADS) {
        float v[V];
        load<V>(x + k * V, v);
        put<V>(y + k * V, v, add);
    }
}

template <typename From, typename To>
static void cast_pick(ew_cuda_queue *q, const From *x, To *y, int64_t n, int add)
{
    if (n % 4 == 0 && aligned(x, 4 * sizeof(From)) && aligned(y, 4 * sizeof(To)))
        cast_kernel<4><<<blocks_for(q, n / 4, THREADS), THREADS, 0, stream_of(q)>>>(x, y, n, add);
    else
        cast_kernel<1><<<blocks_for(q, n, THREADS), THREADS, 0, stream_of(q)>>>(x, y, n, add);
}

template <typename From>
static void cast_launch(ew_cuda_queue *q, const void *x, int to, void *y, int64_t n)
{
    FOR_TYPE(to, cast_pick(q, static_cast<const From *>(x), static_cast<T *>(y), n, 0));
}

extern "C" int ew_cu_cast(ew_cuda_queue *q, int from, const void *x, int to, void *y, int64_t n)
{
    FOR_TYPE(from, cast_launch<T>(q, x, to, y, n));
    return cudaGetLastError();
}

extern "C" int ew_cu_cast_add(ew_cuda_queue *q, int from, const void *x, float *y, int64_t n)
{
    FOR_TYPE(from, cast_pick(q, static_cast<const T *>(x), y, n, 1));
    return cudaGetLastError();
}
