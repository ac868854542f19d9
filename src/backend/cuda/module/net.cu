/* SPDX-License-Identifier: Apache-2.0 */
/* Whole small networks (LeNet-5): a block takes one image through all layers and back, with its
 * activations in shared memory, where a launch for every layer would spend its time on launches.
 * Gradients of weights are a second launch over all images, each sum in a fixed order. */
#include "backend/cuda/module/device_math.cuh"

#define THREADS 512
#define WARPS   (THREADS / 32)
#define ALL     0xffffffffu
#define FILTERS 4 /* of a convolution that a thread has sums of */

/* An activation in shared memory. */
struct view {
    float *data;
    int c, pitch, count;
};

__device__ static int place(const view &v, int i)
{
    return v.c == v.count ? i : i / v.c * v.pitch + i % v.c;
}

__device__ static view view_of(float *data, int pixels, int c)
{
    return {data, c, pixels > 1 ? c | 1 : c, pixels * c};
}

template <typename V> __device__ static V warp_sum(V v)
{
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(ALL, v, d);
    return v;
}

/* The slope of an activation, told by its output. */
__device__ static float slope_at(const ew_cuda_act &a, float y)
{
    switch (a.kind) {
    case EW_CUDA_ACT_RELU:
        return y > 0;
    case EW_CUDA_ACT_SIGMOID:
        return y * (1 - y);
    case EW_CUDA_ACT_TANH:
        return 1 - y * y;
    }
    return 1;
}

/* Where results go: to the next layer, and to memory for what needs them later. */
struct sink {
    view to;
    float *kept; /* may be NULL */
};

__device__ static void give(const sink &s, int i, float v)
{
    s.to.data[place(s.to, i)] = v;
    if (s.kept)
        s.kept[i] = v;
}

__device__ static int rounded(int k)
{
    return (k + FILTERS - 1) / FILTERS * FILTERS;
}

/* ---- Forward ---- */

/* Filters as [tap * c][k], k a multiple of FILTERS. */
__device__ static void stage_forward(const ew_cuda_layer &l, float *to)
{
    const int depth = l.kh * l.kw * l.c, k = rounded(l.k);
    for (int i = threadIdx.x; i < depth * k; i += THREADS) {
        const int o = i / depth, at = i - o * depth;
        to[at * k + o] = o < l.k ? l.weights[i] : 0;
    }
}

__device__ static void conv(const ew_cuda_layer &l, const view &x, const float *filters,
                            const sink &out)
{
    const int pixels = l.oh * l.ow, k = rounded(l.k), groups = k / FILTERS;
    for (int item = threadIdx.x; item < pixels * groups; item += THREADS) {
        const int pixel = item % pixels, o = item / pixels * FILTERS;
        const int y0 = pixel / l.ow * l.sh - l.ph, x0 = pixel % l.ow * l.sw - l.pw;
        float sum[FILTERS] = {0};
        for (int r = 0; r < l.kh; r++)
            for (int t = 0; t < l.kw; t++) {
                const int iy = y0 + r, ix = x0 + t;
                if (iy < 0 || iy >= l.h || ix < 0 || ix >= l.w)
                    continue;
                const float *px = x.data + (iy * l.w + ix) * x.pitch;
                const float *f = filters + (r * l.kw + t) * l.c * k + o;
#pragma unroll 4
                for (int c = 0; c < l.c; c++) {
                    const float v = px[c];
                    const float4 w = *reinterpret_cast<const float4 *>(f + c * k);
                    sum[0] += v * w.x;
                    sum[1] += v * w.y;
                    sum[2] += v * w.z;
                    sum[3] += v * w.w;
                }
            }
        for (int i = 0; i < FILTERS && o + i < l.k; i++)
            give(out, pixel * l.k + o + i, act_apply(l.act, sum[i] + (l.bias ? l.bias[o + i] : 0)));
    }
}

/* A warp an output where its weights follow one another, else a thread. */
__device__ static void dense(const ew_cuda_layer &l, const view &x, const sink &out)
{
    const int lane = threadIdx.x % 32, step = l.w_turned ? THREADS : WARPS;
    for (int o = l.w_turned ? threadIdx.x : threadIdx.x / 32; o < l.k; o += step) {
        float sum = 0;
        if (l.w_turned) {
            for (int i = 0; i < x.count; i++)
                sum += x.data[place(x, i)] * l.weights[(int64_t)i * l.k + o];
        } else {
            const float *w = l.weights + (int64_t)o * x.count;
#pragma unroll 8
            for (int i = lane; i < x.count; i += 32)
                sum += x.data[place(x, i)] * w[i];
            sum = warp_sum(sum);
        }
        if (l.w_turned || lane == 0)
            give(out, o, act_apply(l.act, sum + (l.bias ? l.bias[o] : 0)));
    }
}

__device__ static void pool(const ew_cuda_layer &l, const view &x, unsigned char *places,
                            const sink &out)
{
    const bool max = l.kind == EW_CUDA_LAYER_MAX;
    for (int i = threadIdx.x; i < l.oh * l.ow * l.c; i += THREADS) {
        const int pixel = i / l.c, c = i - pixel * l.c;
        const int y0 = pixel / l.ow * l.sh - l.ph, x0 = pixel % l.ow * l.sw - l.pw;
        float best = max ? -INFINITY : 0;
        int at = -1;
        for (int r = 0; r < l.kh; r++)
            for (int t = 0; t < l.kw; t++) {
                const int iy = y0 + r, ix = x0 + t;
                if (iy < 0 || iy >= l.h || ix < 0 || ix >= l.w)
                    continue;
                const float v = x.data[(iy * l.w + ix) * x.pitch + c];
                if (!max) {
                    best += v;
                } else if (at < 0 || v > best || isnan(v)) {
                    if (!(at >= 0 && isnan(best)))
                        best = v, at = r * l.kw + t;
                }
            }
        if (!max)
            best *= 1.f / (float)(l.kh * l.kw);
        if (max && places)
            places[i] = (unsigned char)at;
        give(out, i, act_apply(l.act, best));
    }
}

/* The element of [h, w, c] that element i of the result is. */
__device__ static int turned_from(const ew_cuda_layer &l, int i)
{
    const int dim[3] = {l.h, l.w, l.c}, stride[3] = {l.w * l.c, l.c, 1};
    int from = 0;
    for (int a = 2; a >= 0; a--) {
        const int d = dim[l.perm[a]];
        from += i % d * stride[l.perm[a]];
        i /= d;
    }
    return from;
}

__device__ static void transpose(const ew_cuda_layer &l, const view &x, const sink &out)
{
    for (int i = threadIdx.x; i < l.k; i += THREADS)
        give(out, i, act_apply(l.act, x.data[place(x, turned_from(l, i))]));
}

/* ---- The loss ---- */

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

/* What the sum of all samples' losses is divided by; a warp calls it. */
__device__ static double loss_divisor(const ew_cuda_loss &p, int lane)
{
    double sum = 0;
    for (int64_t i = lane; i < p.samples && p.mean; i += 32) {
        const int64_t l = label_at(p, i);
        sum += l < 0 || l >= p.classes ? 0 : class_weight(p, l);
    }
    return p.mean ? warp_sum(sum) : 1;
}

/* As loss.cu's, of one sample by one warp. */
__device__ static void cross_entropy(const ew_cuda_net &net, const view &x, const sink &out)
{
    const ew_cuda_loss &p = net.loss;
    const int lane = threadIdx.x, sample = blockIdx.x;
    if (lane >= 32)
        return;
    const int64_t label = label_at(p, sample);
    const bool counts = label >= 0 && label < p.classes;
    const float even = p.smoothing / (float)p.classes;
    float most = -INFINITY, sum = 0, loss = 0, targets = 0;
    for (int k = lane; k < p.classes; k += 32)
        most = fmaxf(most, x.data[place(x, k)]);
    for (int d = 16; d > 0; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(ALL, most, d));
    for (int k = lane; k < p.classes; k += 32)
        sum += expf(x.data[place(x, k)] - most);
    sum = logf(warp_sum(sum));
    for (int k = lane; k < p.classes && counts; k += 32) {
        const float t = (k == label ? (1 - p.smoothing) * class_weight(p, label) : 0) +
                        (p.smoothing > 0 ? even * class_weight(p, k) : 0);
        loss -= t * (x.data[place(x, k)] - most - sum);
        targets += t;
    }
    loss = warp_sum(loss);
    targets = warp_sum(targets);
    const double divisor = loss_divisor(p, lane);
    if (lane == 0)
        p.scratch[sample] = label >= p.classes ? NAN : (float)(loss / divisor);
    if (!net.grads)
        return;
    const float up = (float)(net.up / divisor);
    for (int k = lane; k < p.classes; k += 32) {
        const float t = (k == label ? (1 - p.smoothing) * class_weight(p, label) : 0) +
                        (p.smoothing > 0 ? even * class_weight(p, k) : 0);
        const float v = x.data[place(x, k)];
        give(out, k, counts ? up * (expf(v - most - sum) * targets - t) : 0);
    }
}

/* ---- Backward: from the gradient before a layer's activation to that of the layer below ---- */

/* Filters as [tap * k][c], c a multiple of FILTERS. */
__device__ static void stage_back(const ew_cuda_layer &l, float *to)
{
    const int taps = l.kh * l.kw, c4 = rounded(l.c);
    for (int i = threadIdx.x; i < taps * l.k * c4; i += THREADS) {
        const int c = i % c4, tap = i / c4 % taps, k = i / c4 / taps;
        to[(tap * l.k + k) * c4 + c] = c < l.c ? l.weights[(k * taps + tap) * l.c + c] : 0;
    }
}

/* What stands below: the output that its activation made, whose slope the gradient takes. */
struct below {
    ew_cuda_act act;
    const float *y;
};

__device__ static void hand_down(const sink &out, const below &b, int i, float v)
{
    give(out, i, b.act.kind == EW_CUDA_ACT_NONE ? v : v * slope_at(b.act, b.y[i]));
}

__device__ static void conv_back(const ew_cuda_layer &l, const view &dy, const float *filters,
                                 const below &b, const sink &out)
{
    const int pixels = l.h * l.w, c4 = rounded(l.c);
    for (int item = threadIdx.x; item < pixels * (c4 / FILTERS); item += THREADS) {
        const int pixel = item % pixels, c = item / pixels * FILTERS;
        const int iy = pixel / l.w + l.ph, ix = pixel % l.w + l.pw;
        float sum[FILTERS] = {0};
        for (int r = 0; r < l.kh; r++)
            for (int t = 0; t < l.kw; t++) {
                const int ty = iy - r, tx = ix - t, oy = ty / l.sh, ox = tx / l.sw;
                if (ty < 0 || tx < 0 || oy * l.sh != ty || ox * l.sw != tx || oy >= l.oh ||
                    ox >= l.ow)
                    continue;
                const float *d = dy.data + (oy * l.ow + ox) * dy.pitch;
                const float *f = filters + (r * l.kw + t) * l.k * c4 + c;
#pragma unroll 4
                for (int k = 0; k < l.k; k++) {
                    const float v = d[k];
                    const float4 w = *reinterpret_cast<const float4 *>(f + k * c4);
                    sum[0] += v * w.x;
                    sum[1] += v * w.y;
                    sum[2] += v * w.z;
                    sum[3] += v * w.w;
                }
            }
        for (int i = 0; i < FILTERS && c + i < l.c; i++)
            hand_down(out, b, pixel * l.c + c + i, sum[i]);
    }
}

/* A thread an input where its weights lie beside those of the next, else a warp. */
__device__ static void dense_back(const ew_cuda_layer &l, const view &dy, const below &b,
                                  const sink &out)
{
    const int lane = threadIdx.x % 32, n = out.to.count, step = l.w_turned ? WARPS : THREADS;
    for (int i = l.w_turned ? threadIdx.x / 32 : threadIdx.x; i < n; i += step) {
        float sum = 0;
        if (l.w_turned) {
            for (int o = lane; o < l.k; o += 32)
                sum += dy.data[place(dy, o)] * l.weights[(int64_t)i * l.k + o];
            sum = warp_sum(sum);
        } else {
#pragma unroll 8
            for (int o = 0; o < l.k; o++)
                sum += dy.data[place(dy, o)] * l.weights[(int64_t)o * n + i];
        }
        if (!l.w_turned || lane == 0)
            hand_down(out, b, i, sum);
    }
}

__device__ static void pool_back(const ew_cuda_layer &l, const view &dy,
                                 const unsigned char *places, const below &b, const sink &out)
{
    const float share = 1.f / (float)(l.kh * l.kw);
    for (int i = threadIdx.x; i < l.h * l.w * l.c; i += THREADS) {
        const int pixel = i / l.c, c = i - pixel * l.c;
        const int iy = pixel / l.w + l.ph, ix = pixel % l.w + l.pw;
        float sum = 0;
        for (int r = 0; r < l.kh; r++)
            for (int t = 0; t < l.kw; t++) {
                const int ty = iy - r, tx = ix - t, oy = ty / l.sh, ox = tx / l.sw;
                if (ty < 0 || tx < 0 || oy * l.sh != ty || ox * l.sw != tx || oy >= l.oh ||
                    ox >= l.ow)
                    continue;
                const int o = oy * l.ow + ox;
                if (l.kind == EW_CUDA_LAYER_MEAN)
                    sum += share * dy.data[o * dy.pitch + c];
                else if (places[o * l.c + c] == r * l.kw + t)
                    sum += dy.data[o * dy.pitch + c];
            }
        hand_down(out, b, i, sum);
    }
}

__device__ static void transpose_back(const ew_cuda_layer &l, const view &dy, const below &b,
                                      const sink &out)
{
    for (int i = threadIdx.x; i < l.k; i += THREADS)
        hand_down(out, b, turned_from(l, i), dy.data[place(dy, i)]);
}

/* ---- One image ---- */

__device__ static int outputs_of(const ew_cuda_layer &l)
{
    return l.kind == EW_CUDA_LAYER_DENSE || l.kind == EW_CUDA_LAYER_TRANSPOSE ? 1 : l.oh * l.ow;
}

__device__ static void go_back(const ew_cuda_net &net, float *a, float *b, float *filters,
                               const float *values, float *grads, const unsigned char *places)
{
    view dy = view_of(a, outputs_of(net.layers[net.n - 1]), net.layers[net.n - 1].k);
    for (int i = net.n - 1; i > net.first_back; i--) {
        const ew_cuda_layer &l = net.layers[i], &under = net.layers[i - 1];
        const below y = {under.act, values + under.y_at};
        const sink out = {view_of(b, outputs_of(under), under.k), grads + under.y_at};
        if (l.kind == EW_CUDA_LAYER_CONV) {
            stage_back(l, filters);
            __syncthreads();
            conv_back(l, dy, filters, y, out);
        } else if (l.kind == EW_CUDA_LAYER_DENSE) {
            dense_back(l, dy, y, out);
        } else if (l.kind == EW_CUDA_LAYER_TRANSPOSE) {
            transpose_back(l, dy, y, out);
        } else {
            pool_back(l, dy, places + l.place_at, y, out);
        }
        __syncthreads();
        b = dy.data;
        dy = out.to;
    }
}

__global__ void __launch_bounds__(THREADS) net_kernel(const ew_cuda_net net)
{
    extern __shared__ float4 memory[];
    float *filters = reinterpret_cast<float *>(memory);
    float *a = filters + net.shared_floats[2], *b = a + net.shared_floats[0];
    const int image = blockIdx.x;
    float *values = net.values ? net.values + (int64_t)image * net.value_floats : nullptr;
    float *grads = net.grads ? net.grads + (int64_t)image * net.value_floats : nullptr;
    unsigned char *places = net.places ? net.places + (int64_t)image * net.place_bytes : nullptr;
    view x = view_of(a, net.layers[0].h * net.layers[0].w, net.layers[0].c);
    for (int i = threadIdx.x; i < x.count; i += THREADS)
        x.data[place(x, i)] = net.x[(int64_t)image * x.count + i];
    for (int i = 0; i < net.n; i++) {
        const ew_cuda_layer &l = net.layers[i];
        const sink out = {view_of(b, outputs_of(l), l.k), values ? values + l.y_at : nullptr};
        if (l.kind == EW_CUDA_LAYER_CONV)
            stage_forward(l, filters);
        __syncthreads();
        if (l.kind == EW_CUDA_LAYER_CONV)
            conv(l, x, filters, out);
        else if (l.kind == EW_CUDA_LAYER_DENSE)
            dense(l, x, out);
        else if (l.kind == EW_CUDA_LAYER_TRANSPOSE)
            transpose(l, x, out);
        else
            pool(l, x, places ? places + l.place_at : nullptr, out);
        b = x.data;
        x = out.to;
        __syncthreads();
    }
    for (int i = threadIdx.x; i < x.count && net.y; i += THREADS)
        net.y[(int64_t)image * x.count + i] = x.data[place(x, i)];
    if (!net.loss.samples)
        return;
    const ew_cuda_layer &last = net.layers[net.n - 1];
    const sink dy = {view_of(b, 1, x.count), grads ? grads + last.y_at : nullptr};
    cross_entropy(net, x, dy);
    __syncthreads();
    if (grads)
        go_back(net, dy.to.data, x.data, filters, values, grads, places);
}

/* ---- Gradients of weights ---- */

/* Blocks of a layer: a convolution has one for each of its filters' positions, of 32 filters, and
 * one for the bias; a dense layer one for each THREADS of its weights and biases. */
__host__ __device__ static int blocks_of(const ew_cuda_layer &l)
{
    if (l.kind == EW_CUDA_LAYER_CONV && (l.dw || l.db))
        return (l.kh * l.kw * l.c + 1) * ((l.k + 31) / 32);
    if (l.kind == EW_CUDA_LAYER_DENSE && (l.dw || l.db))
        return (l.h * l.w * l.c * l.k + l.k + THREADS - 1) / THREADS;
    return 0;
}

/* The inputs of a layer: floats from one image to the next. */
struct inputs {
    const float *data;
    int64_t step;
};

__device__ static void put_sum(float *to, int i, float v, int add)
{
    if (to)
        to[i] = add ? to[i] + v : v;
}

__device__ static void dense_weights(const ew_cuda_net &net, const ew_cuda_layer &l,
                                     const inputs &x, int block)
{
    const int n = l.h * l.w * l.c, at = block * THREADS + threadIdx.x;
    if (at >= n * l.k + l.k)
        return;
    const bool bias = at >= n * l.k;
    const int o = bias ? at - n * l.k : l.w_turned ? at % l.k : at / n;
    const int i = bias ? 0 : l.w_turned ? at / l.k : at % n;
    const float *dy = net.grads + l.y_at + o;
    float sum = 0;
#pragma unroll 4
    for (int image = 0; image < net.images; image++)
        sum += dy[(int64_t)image * net.value_floats] * (bias ? 1 : x.data[image * x.step + i]);
    put_sum(bias ? l.db : l.dw, bias ? o : at, sum, bias ? l.add_db : l.add_dw);
}

/* One position of the filters (or the bias): lanes are filters, and pixels where these are few. */
__device__ static void conv_weights(const ew_cuda_net &net, const ew_cuda_layer &l, const inputs &x,
                                    int block)
{
    __shared__ float sums[THREADS];
    const int chunks = (l.k + 31) / 32, depth = l.kh * l.kw * l.c, pixels = l.oh * l.ow;
    const int at = block / chunks, first = block % chunks * 32;
    const int filters = l.k - first < 32 ? l.k - first : 32, rows = 32 / filters;
    const int lane = threadIdx.x % 32, row = lane / filters, o = first + lane % filters;
    const bool bias = at == depth;
    const int c = at % l.c, t = at / l.c % l.kw, r = at / l.c / l.kw;
    float sum = 0;
    for (int q = threadIdx.x / 32 * rows + row; row < rows && q < net.images * pixels;
         q += WARPS * rows) {
        const int image = q / pixels, pixel = q - image * pixels;
        const int oy = pixel / l.ow, ox = pixel - oy * l.ow;
        const int iy = oy * l.sh - l.ph + r, ix = ox * l.sw - l.pw + t;
        const float d = net.grads[(int64_t)image * net.value_floats + l.y_at + pixel * l.k + o];
        const bool inside = iy >= 0 && iy < l.h && ix >= 0 && ix < l.w;
        if (bias)
            sum += d;
        else if (inside)
            sum += d * x.data[image * x.step + (iy * l.w + ix) * l.c + c];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= filters)
        return;
    float total = 0;
    for (int w = 0; w < WARPS; w++)
        for (int i = 0; i < rows; i++)
            total += sums[w * 32 + i * filters + threadIdx.x];
    const int filter = first + threadIdx.x;
    if (bias)
        put_sum(l.db, filter, total, l.add_db);
    else
        put_sum(l.dw, filter * depth + at, total, l.add_dw);
}

/* By one warp.  Labels may be gone by now: their memory is gradients'. */
__device__ static void sum_losses(const ew_cuda_loss &p, int lane)
{
    double total = 0;
    for (int64_t i = lane; i < p.samples; i += 32)
        total += p.scratch[i];
    total = warp_sum(total);
    if (lane == 0)
        *p.loss = (float)total;
}

/* The last block adds up the loss. */
__global__ void __launch_bounds__(THREADS) net_weights_kernel(const ew_cuda_net net)
{
    int block = blockIdx.x;
    for (int i = net.first_back; i < net.n; i++) {
        const ew_cuda_layer &l = net.layers[i];
        const int n = blocks_of(l);
        if (block >= n) {
            block -= n;
            continue;
        }
        const int first = net.layers[0].h * net.layers[0].w * net.layers[0].c;
        const inputs x = i ? inputs{net.values + net.layers[i - 1].y_at, net.value_floats}
                           : inputs{net.x, first};
        if (l.kind == EW_CUDA_LAYER_CONV)
            conv_weights(net, l, x, block);
        else
            dense_weights(net, l, x, block);
        return;
    }
    if (threadIdx.x < 32 && net.loss.samples)
        sum_losses(net.loss, threadIdx.x);
}

extern "C" int ew_cu_net(ew_cuda_queue *q, const ew_cuda_net *p)
{
    const int *n = p->shared_floats;
    const size_t bytes = sizeof(float) * (size_t)(n[0] + n[1] + n[2]);
    const cudaError_t e = cudaFuncSetAttribute(
        net_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, EW_CUDA_NET_BYTES);
    if (e)
        return e;
    net_kernel<<<(unsigned)p->images, THREADS, bytes, stream_of(q)>>>(*p);
    return cudaGetLastError();
}

extern "C" int ew_cu_net_weights(ew_cuda_queue *q, const ew_cuda_net *p)
{
    int blocks = 1;
    for (int i = p->first_back; i < p->n; i++)
        blocks += blocks_of(p->layers[i]);
    net_weights_kernel<<<(unsigned)blocks, THREADS, 0, stream_of(q)>>>(*p);
    return cudaGetLastError();
}
