/* SPDX-License-Identifier: Apache-2.0 */
/* Weight gradients of small networks over all images, from the activations and output gradients
 * that net.cu has stored; and the loss.  Each sum belongs to one block, which adds in a fixed
 * order. */
#include "backend/cuda/module/net.cuh"

#define BLOCK   512 /* threads; partial sums are in shared memory */
#define FILTERS 2   /* filters per block */
#define WIDEST  5   /* most taps of a filter row per block */

/* The inputs of a layer: stride between images in floats, and layout within one. */
struct inputs {
    const float *data;
    int step;
    ew_cuda_layout at;
};

__device__ static void put_sum(float *to, int i, float v, int add)
{
    if (to)
        to[i] = add ? to[i] + v : v;
}

/* ---- Dense layers: a thread per weight ---- */

__device__ static void dense_weights(const ew_cuda_net &net, const ew_cuda_layer &l,
                                     const inputs &x, int block)
{
    const int n = l.h * l.w * l.c, at = block * BLOCK + threadIdx.x;
    if (at >= n * l.k + l.k)
        return;
    const bool bias = at >= n * l.k;
    const int o = bias ? at - n * l.k : l.w_turned ? at % l.k : at / n;
    const int i = bias ? 0 : l.w_turned ? at / l.k : at % n;
    const float *dy = net.grads + l.y_at + o;
    float sum = 0;
#pragma unroll 8
    for (int image = 0; image < net.images; image++) {
        const float v = bias ? 1 : __ldg(x.data + (int64_t)image * x.step + i);
        sum += __ldg(dy + (int64_t)image * net.value_floats) * v;
    }
    put_sum(bias ? l.db : l.dw, bias ? o : at, sum, bias ? l.add_db : l.add_dw);
}

/* ---- Convolutions ---- */

/* Taps of a filter row per block. */
__host__ __device__ static int taps_of(const ew_cuda_layer &l)
{
    return l.kw == 3 || l.kw == 5 ? l.kw : 1;
}

/* The work of a block: TAPS taps from `t` on in row r of filters o and o + 1, at channel c. */
struct piece {
    int o, r, t, c;
};

__device__ static piece piece_of(const ew_cuda_layer &l, int block)
{
    const int columns = l.kw / taps_of(l);
    piece p;
    p.c = block % l.c;
    block /= l.c;
    p.t = block % columns * taps_of(l);
    block /= columns;
    p.r = block % l.kh;
    p.o = block / l.kh * FILTERS;
    return p;
}

/* Adds partial sum i of all threads; executed by one warp. */
__device__ static float block_sum(const float *parts, int i)
{
    const int lane = threadIdx.x % 32;
    float v = 0;
#pragma unroll
    for (int k = 0; k < BLOCK / 32; k++)
        v += parts[i * BLOCK + k * 32 + lane];
    return warp_sum(v);
}

/* The thread's pixels, strided over all images. */
template <int TAPS>
__device__ static void pixel_sums(const ew_cuda_net &net, const ew_cuda_layer &l, const inputs &x,
                                  const piece &p, float sum[FILTERS][TAPS + 1])
{
    const int pixels = l.oh * l.ow, images_on = BLOCK / pixels, on = BLOCK % pixels;
    const bool second = p.o + 1 < l.k;
    int image = threadIdx.x / pixels, pixel = threadIdx.x % pixels;
#pragma unroll 4
    while (image < net.images) {
        const int oy = divide(pixel, l.over_ow), ox = pixel - oy * l.ow;
        const int iy = oy * l.sh - l.ph + p.r, ix = ox * l.sw - l.pw + p.t;
        const int64_t x_at = (int64_t)image * x.step + place(x.at, iy, ix, p.c);
        const int64_t d_at =
            (int64_t)image * net.value_floats + l.y_at + place(l.kept, oy, ox, p.o);
        const float d[FILTERS] = {__ldg(net.grads + d_at),
                                  second ? __ldg(net.grads + d_at + l.kept.channel) : 0};
#pragma unroll
        for (int t = 0; t < TAPS; t++) {
            const bool inside = iy >= 0 && iy < l.h && ix + t >= 0 && ix + t < l.w;
            const float v = inside ? __ldg(x.data + x_at + t * x.at.column) : 0;
            sum[0][t] += v * d[0];
            sum[1][t] += v * d[1];
        }
        sum[0][TAPS] += d[0];
        sum[1][TAPS] += d[1];
        image += images_on;
        pixel += on;
        if (pixel >= pixels)
            pixel -= pixels, image++;
    }
}

template <int TAPS>
__device__ static void conv_weights(const ew_cuda_net &net, const ew_cuda_layer &l, const inputs &x,
                                    int block, float *parts)
{
    const piece p = piece_of(l, block);
    const bool biases = p.r == 0 && p.t == 0 && p.c == 0;
    float sum[FILTERS][TAPS + 1] = {};
    pixel_sums<TAPS>(net, l, x, p, sum);
#pragma unroll
    for (int i = 0; i < FILTERS * (TAPS + 1); i++)
        parts[i * BLOCK + threadIdx.x] = sum[i / (TAPS + 1)][i % (TAPS + 1)];
    __syncthreads();
    for (int i = threadIdx.x / 32; i < FILTERS * (TAPS + 1); i += BLOCK / 32) {
        const int o = p.o + i / (TAPS + 1), t = i % (TAPS + 1);
        const float v = block_sum(parts, i);
        if (threadIdx.x % 32 || o >= l.k)
            continue;
        if (t < TAPS)
            put_sum(l.dw, ((o * l.kh + p.r) * l.kw + p.t + t) * l.c + p.c, v, l.add_dw);
        else if (biases)
            put_sum(l.db, o, v, l.add_db);
    }
}

/* ---- Kernel ---- */

__host__ __device__ static int blocks_of(const ew_cuda_layer &l)
{
    if (!l.dw && !l.db)
        return 0;
    if (l.kind == EW_CUDA_LAYER_CONV)
        return l.c * (l.kw / taps_of(l)) * l.kh * ((l.k + FILTERS - 1) / FILTERS);
    return (l.h * l.w * l.c * l.k + l.k + BLOCK - 1) / BLOCK;
}

/* Executed by one warp.  Reads the stored losses, not the labels, whose buffer the plan may have
 * reused for gradients. */
__device__ static void sum_losses(const ew_cuda_loss &p, int lane)
{
    double total = 0;
    for (int64_t i = lane; i < p.samples; i += 32)
        total += p.scratch[i];
    total = warp_sum(total);
    if (lane == 0)
        *p.loss = (float)total;
}

__device__ static inputs inputs_of(const ew_cuda_net &net, int i)
{
    const ew_cuda_layer &l = net.layers[i];
    if (i > 0)
        return {net.values + net.layers[i - 1].y_at, net.value_floats, net.layers[i - 1].kept};
    return {static_cast<const float *>(net.x), l.h * l.w * l.c, {0, l.w * l.c, l.c, 1, 0, 0}};
}

/* The last block computes the loss. */
__global__ void __launch_bounds__(BLOCK) net_weights_kernel(const ew_cuda_net net)
{
    __shared__ float parts[FILTERS * (WIDEST + 1) * BLOCK];
    int block = blockIdx.x;
    for (int i = net.first_back; i < net.n; i++) {
        const ew_cuda_layer &l = net.layers[i];
        const int n = blocks_of(l);
        if (block >= n) {
            block -= n;
            continue;
        }
        const inputs x = inputs_of(net, i);
        if (l.kind == EW_CUDA_LAYER_DENSE)
            dense_weights(net, l, x, block);
        else if (l.kw == 3)
            conv_weights<3>(net, l, x, block, parts);
        else if (l.kw == 5)
            conv_weights<5>(net, l, x, block, parts);
        else
            conv_weights<1>(net, l, x, block, parts);
        return;
    }
    if (threadIdx.x < 32 && net.loss.samples)
        sum_losses(net.loss, threadIdx.x);
}

extern "C" int ew_cu_net_weights(ew_cuda_queue *q, const ew_cuda_net *p)
{
    int blocks = 1;
    for (int i = p->first_back; i < p->n; i++)
        blocks += blocks_of(p->layers[i]);
    net_weights_kernel<<<(unsigned)blocks, BLOCK, 0, stream_of(q)>>>(*p);
    return cudaGetLastError();
}
