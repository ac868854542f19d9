/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks (LeNet-5) in two launches.  Here a block takes one image through all layers and
 * back, with activations in shared memory; a launch per layer would be dominated by launch
 * overhead. Weight gradients, which are sums over images, are left to a second launch
 * (net_weights.cu).  Blocks have too few warps to hide memory latency, so loops are unrolled to
 * keep many loads in flight, and data is prefetched while something else is computed. */
#include "backend/cuda/module/net_conv.cuh"
#include "backend/cuda/module/net_dense.cuh"
#include "backend/cuda/module/net_pool.cuh"

/* ---- The loss ---- */

/* What the loss needs to know of an image; loaded before the forward pass, to hide the latency. */
struct loss_facts {
    int64_t label;
    double share; /* factor of the sample's loss and gradient: 1 / divisor of the loss */
};

__device__ static int64_t label_at(const ew_cuda_loss &p, int64_t i)
{
    const int64_t l = p.label_bytes == 8 ? static_cast<const int64_t *>(p.labels)[i]
                                         : static_cast<const int *>(p.labels)[i];
    return l == p.ignore ? -1 : l < 0 || l >= p.classes ? p.classes : l;
}

__device__ static float class_weight(const ew_cuda_loss &p, int64_t label)
{
    return p.weights ? p.weights[label] : 1;
}

/* Executed by one warp. */
__device__ static void note_loss(const ew_cuda_loss &p, loss_facts *to)
{
    const int lane = threadIdx.x % 32;
    const int64_t label = label_at(p, blockIdx.x);
    double sum = 0;
    for (int64_t i = lane; i < p.samples && p.mean; i += 32) {
        const int64_t l = label_at(p, i);
        sum += l < 0 || l >= p.classes ? 0 : class_weight(p, l);
    }
    sum = warp_sum(sum);
    if (lane == 0)
        *to = {label, p.mean ? 1 / sum : 1};
}

/* As in loss.cu, for one sample, by one warp. */
__device__ static void cross_entropy(const ew_cuda_net &net, const loss_facts &facts,
                                     const float *x, float *dx)
{
    const ew_cuda_loss &p = net.loss;
    const int lane = threadIdx.x;
    if (lane >= 32)
        return;
    const int64_t label = facts.label;
    const bool counts = label >= 0 && label < p.classes;
    const float even = p.smoothing / (float)p.classes;
    float most = -INFINITY, sum = 0, loss = 0, targets = 0;
    for (int k = lane; k < p.classes; k += 32)
        most = fmaxf(most, x[k]);
    for (int d = 16; d > 0; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(ALL, most, d));
    for (int k = lane; k < p.classes; k += 32)
        sum += expf(x[k] - most);
    sum = logf(warp_sum(sum));
    for (int k = lane; k < p.classes && counts; k += 32) {
        const float t = (k == label ? (1 - p.smoothing) * class_weight(p, label) : 0) +
                        (p.smoothing > 0 ? even * class_weight(p, k) : 0);
        if (k == label || p.smoothing > 0)
            loss -= t * (x[k] - most - sum);
        targets += t;
    }
    loss = warp_sum(loss);
    targets = warp_sum(targets);
    if (lane == 0)
        p.scratch[blockIdx.x] = label >= p.classes ? NAN : (float)(loss * facts.share);
    const float up = (float)(net.up * facts.share);
    for (int k = lane; k < p.classes && net.grads; k += 32) {
        const float t = (k == label ? (1 - p.smoothing) * class_weight(p, label) : 0) +
                        (p.smoothing > 0 ? even * class_weight(p, k) : 0);
        dx[k] = counts ? up * (expf(x[k] - most - sum) * targets - t) : 0;
    }
}

/* ---- Between layers ---- */

/* Shared memory of the block, and its image's parts of `values` and `grads`. */
struct image_memory {
    float *filters; /* shared: filters of a layer, or partial sums */
    unsigned char *places;
    loss_facts *facts;
    float *values, *grads;
};

template <typename T>
__device__ static void load_inputs(const ew_cuda_layer &l, const T *from, const view &to)
{
#pragma unroll 4
    for (int i = threadIdx.x; i < l.h * l.w * l.c; i += THREADS) {
        const int pixel = divide(i, l.over_c), y = divide(pixel, l.over_w);
        to.data[place(to.at, y, pixel - y * l.w, i - pixel * l.c)] = to_float(from[i]);
    }
}

/* Clears the padding columns of an activation, which no layer writes. */
__device__ static void clear_edges(const view &v, int h, int w)
{
    const int left = v.at.left * v.at.column, n = left + v.at.right * v.at.column;
    for (int i = threadIdx.x; i < h * n; i += THREADS) {
        const int y = i / n, at = i - y * n;
        v.data[y * v.at.row + (at < left ? at : at + w * v.at.column)] = 0;
    }
}

/* Copies a layer's output, or its gradient, to global memory, coalesced; overlaps with the start of
 * the next layer. */
__device__ static void keep(const ew_cuda_layer &l, const view &v, float *to)
{
    const int pixels = l.oh * l.ow;
#pragma unroll 2
    for (int i = threadIdx.x; i < pixels * l.k; i += THREADS) {
        const int c = divide(i, l.over_out), pixel = i - c * pixels;
        const int y = divide(pixel, l.over_ow), x = pixel - y * l.ow;
        to[place(l.kept, y, x, c)] = v.data[place(v.at, y, x, c)];
    }
}

/* Applies sigmoid or tanh to a layer's output in place. */
__device__ static void bend(const ew_cuda_layer &l, const view &v)
{
    const int pixels = l.oh * l.ow;
    for (int i = threadIdx.x; i < pixels * l.k; i += THREADS) {
        const int c = divide(i, l.over_out), pixel = i - c * pixels;
        const int y = divide(pixel, l.over_ow);
        float *at = v.data + place(v.at, y, pixel - y * l.ow, c);
        *at = l.act.kind == EW_CUDA_ACT_TANH ? tanhf(*at) : sigmoid(*at);
    }
}

/* Pools and transposes do not use the filter buffer: the next layer's filters can be prefetched. */
__device__ static bool leaves_filters(const ew_cuda_layer &l)
{
    return l.kind != EW_CUDA_LAYER_CONV && l.kind != EW_CUDA_LAYER_DENSE;
}

/* ---- One image ---- */

__device__ static void back_one(const ew_cuda_net &net, int i, const image_memory &m,
                                const view &dy, const view &to)
{
    const ew_cuda_layer &l = net.layers[i], &under = net.layers[i - 1];
    const float *y = m.values + under.y_at;
    const sum_epilogue e = {true, under.act.kind, y, under.kept};
    clear_edges(to, under.oh, under.ow);
    if (l.kind == EW_CUDA_LAYER_CONV) {
        if (i == net.n - 1 || !leaves_filters(net.layers[i + 1])) {
            stage_back(l, m.filters);
            __syncthreads();
        }
        conv_back(l, dy, m.filters, e, to);
    } else if (l.kind == EW_CUDA_LAYER_DENSE) {
        dense_back(l, dy.data, m.filters, e, to.data);
    } else {
        if (under.kind == EW_CUDA_LAYER_CONV && i - 1 > net.first_back)
            stage_back(under, m.filters);
        const bool own = l.kind == EW_CUDA_LAYER_MAX && l.act.kind == EW_CUDA_ACT_NONE;
        const pool_slopes s = {under.act.kind, own ? m.values + l.y_at : nullptr, y, l.kept,
                               under.kept};
        if (l.kind == EW_CUDA_LAYER_TRANSPOSE)
            transpose_back(l, dy.data, e, to.data);
        else
            pool_back(l, dy, m.places + l.place_at, s, to);
    }
}

/* Backward from the gradient of the last output (before its activation) to the first layer with
 * weight gradients. */
__device__ static void go_back(const ew_cuda_net &net, const image_memory &m, float *a, float *b)
{
    view dy = {a, net.layers[net.n - 1].dy};
    for (int i = net.n - 1; i >= net.first_back; i--) {
        const ew_cuda_layer &l = net.layers[i];
        if (l.dw || l.db)
            keep(l, dy, m.grads + l.y_at);
        if (i == net.first_back)
            return;
        const view to = {b, net.layers[i - 1].dy};
        back_one(net, i, m, dy, to);
        __syncthreads();
        b = dy.data;
        dy = to;
    }
}

__device__ static void forward_one(const ew_cuda_net &net, int i, const image_memory &m,
                                   const view &x, const view &to)
{
    const ew_cuda_layer &l = net.layers[i];
    clear_edges(to, l.oh, l.ow);
    if (l.kind == EW_CUDA_LAYER_CONV) {
        if (i > 0 && !leaves_filters(net.layers[i - 1])) {
            stage_forward(l, m.filters);
            __syncthreads();
        }
        conv(l, x, m.filters, to);
    } else if (l.kind == EW_CUDA_LAYER_DENSE) {
        dense(l, x.data, m.filters, to.data);
    } else {
        if (i + 1 < net.n && net.layers[i + 1].kind == EW_CUDA_LAYER_CONV)
            stage_forward(net.layers[i + 1], m.filters);
        if (l.kind == EW_CUDA_LAYER_TRANSPOSE)
            transpose(l, x.data, to.data);
        else
            pool(l, x, m.places ? m.places + l.place_at : nullptr, to);
    }
}

/* Forward through all layers.  Returns the last output; the buffer of its input is then free. */
template <typename T>
__device__ static float *go_forward(const ew_cuda_net &net, const image_memory &m, float *a,
                                    float *b)
{
    const ew_cuda_layer &first = net.layers[0];
    view x = {a, net.x_layout};
    load_inputs(first,
                static_cast<const T *>(net.x) + (int64_t)blockIdx.x * first.h * first.w * first.c,
                x);
    clear_edges(x, first.h, first.w);
    if (first.kind == EW_CUDA_LAYER_CONV)
        stage_forward(first, m.filters);
    __syncthreads();
    if (net.loss.samples && threadIdx.x >= THREADS - 32)
        note_loss(net.loss, m.facts);
    for (int i = 0; i < net.n; i++) {
        const ew_cuda_layer &l = net.layers[i];
        const view to = {b, l.y};
        forward_one(net, i, m, x, to);
        __syncthreads();
        if (is_curved(l.act.kind)) {
            bend(l, to);
            __syncthreads();
        }
        if (m.values && l.keeps)
            keep(l, to, m.values + l.y_at);
        b = x.data;
        x = to;
    }
    return x.data;
}

/* BACK: compiled with loss and backward. */
template <typename T, bool BACK>
__global__ void __launch_bounds__(THREADS, 1) net_kernel(const ew_cuda_net net)
{
    extern __shared__ float4 memory[];
    __shared__ loss_facts facts;
    const int64_t image = blockIdx.x;
    const ew_cuda_layer &last = net.layers[net.n - 1];
    float *filters = reinterpret_cast<float *>(memory);
    float *a = filters + net.filter_floats, *b = a + net.value_room;
    unsigned char *places = reinterpret_cast<unsigned char *>(b + net.value_room);
    const image_memory m = {filters, net.grads ? places : nullptr, &facts,
                            net.values ? net.values + image * net.value_floats : nullptr,
                            net.grads ? net.grads + image * net.value_floats : nullptr};
    float *y = go_forward<T>(net, m, a, b), *dy = y == a ? b : a;
    const int n = last.oh * last.ow * last.k;
    for (int i = threadIdx.x; i < n && net.y; i += THREADS)
        static_cast<T *>(net.y)[image * n + i] = from_float<T>(y[i]);
    if (!BACK || !net.loss.samples)
        return;
    cross_entropy(net, facts, y, dy);
    __syncthreads();
    if (m.grads)
        go_back(net, m, dy, y);
}

template <typename T, bool BACK> static int launch(const ew_cuda_queue *q, const ew_cuda_net *p)
{
    const cudaError_t e = cudaFuncSetAttribute(
        net_kernel<T, BACK>, cudaFuncAttributeMaxDynamicSharedMemorySize, EW_CUDA_NET_BYTES);
    if (e)
        return e;
    net_kernel<T, BACK><<<(unsigned)p->images, THREADS, ew_cuda_net_bytes(p), stream_of(q)>>>(*p);
    return cudaGetLastError();
}

extern "C" int ew_cu_net(ew_cuda_queue *q, const ew_cuda_net *p)
{
    if (p->loss.samples)
        return launch<float, true>(q, p);
    FOR_TYPE(p->type, return (launch<T, false>(q, p)));
    return cudaSuccess;
}
