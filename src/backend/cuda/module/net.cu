/* SPDX-License-Identifier: Apache-2.0 */
/* Whole small networks (LeNet-5): a block takes one image through all layers and back, with its
 * activations in shared memory, where a launch for every layer would spend its time on launches.
 * What is left for a second launch is to add up gradients of weights over images, in their order.
 * A block has few threads to hide the time of loads behind, so loops have many of them under way.
 */
#include "backend/cuda/module/device_math.cuh"

#define THREADS 512
#define WARPS   (THREADS / 32)
#define ALL     0xffffffffu
static_assert(THREADS * 4 == EW_CUDA_NET_PARTS, "a thread's sums have room");
#define FILTERS 4 /* of a convolution that a thread has sums of */
#define ROWS    4 /* of a dense layer that a warp has */
#define BATCH   4 /* loads that are under way for each of them */

/* An activation in shared memory. */
struct view {
    float *data;
    int c, pitch, count;
};

__device__ static int place(const view &v, int i)
{
    return v.pitch == v.c ? i : i / v.c * v.pitch + i % v.c;
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
#pragma unroll 4
    for (int i = threadIdx.x; i < depth * k; i += THREADS) {
        const int o = i / depth, at = i - o * depth;
        to[at * k + o] = o < l.k ? __ldg(l.weights + i) : 0;
    }
}

/* Adds n numbers times FILTERS columns of a matrix, whose rows are `step` apart; U at a time. */
template <int U>
__device__ static void multiply_add(const float *x, const float *f, int step, int n, float *sum)
{
#pragma unroll U
    for (int i = 0; i < n; i++) {
        const float v = x[i];
        const float4 w = *reinterpret_cast<const float4 *>(f + i * step);
        sum[0] += v * w.x;
        sum[1] += v * w.y;
        sum[2] += v * w.z;
        sum[3] += v * w.w;
    }
}

__device__ static void conv(const ew_cuda_layer &l, const view &x, const float *filters,
                            const sink &out)
{
    const int pixels = l.oh * l.ow, k = rounded(l.k), groups = k / FILTERS;
    for (int item = threadIdx.x; item < pixels * groups; item += THREADS) {
        const int pixel = item % pixels, o = item / pixels * FILTERS;
        const int y0 = pixel / l.ow * l.sh - l.ph, x0 = pixel % l.ow * l.sw - l.pw;
        const int first = x0 < 0 ? -x0 : 0, last = l.w - x0 < l.kw ? l.w - x0 : l.kw;
        float sum[FILTERS] = {0};
        for (int r = 0; r < l.kh; r++) {
            if (y0 + r < 0 || y0 + r >= l.h)
                continue;
            const float *row = x.data + ((y0 + r) * l.w + x0) * x.pitch;
            const float *f = filters + r * l.kw * l.c * k + o;
            if (x.pitch == l.c)
                multiply_add<5>(row + first * l.c, f + first * l.c * k, k, (last - first) * l.c,
                                sum);
            else
                for (int t = first; t < last; t++)
                    multiply_add<4>(row + t * x.pitch, f + t * l.c * k, k, l.c, sum);
        }
        for (int i = 0; i < FILTERS && o + i < l.k; i++)
            give(out, pixel * l.k + o + i,
                 act_apply(l.act, sum[i] + (l.bias ? __ldg(l.bias + o + i) : 0)));
    }
}

/* ROWS outputs a warp where their weights follow one another, else a thread each. */
__device__ static void dense(const ew_cuda_layer &l, const view &x, const sink &out)
{
    const int n = x.count, lane = threadIdx.x % 32;
    for (int o = threadIdx.x; o < l.k && l.w_turned; o += THREADS) {
        float sum = 0;
#pragma unroll 16
        for (int i = 0; i < n; i++)
            sum += x.data[i] * __ldg(l.weights + (int64_t)i * l.k + o);
        give(out, o, act_apply(l.act, sum + (l.bias ? __ldg(l.bias + o) : 0)));
    }
    for (int o = threadIdx.x / 32 * ROWS; o < l.k && !l.w_turned; o += WARPS * ROWS) {
        const float *w[ROWS];
        float sum[ROWS] = {0};
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            w[r] = l.weights + (int64_t)(o + r < l.k ? o + r : l.k - 1) * n;
        for (int i = lane; i < n; i += 32 * BATCH) {
            float v[ROWS][BATCH], x_at[BATCH];
#pragma unroll
            for (int j = 0; j < BATCH; j++) {
                const int at = i + 32 * j;
                x_at[j] = at < n ? x.data[at] : 0;
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    v[r][j] = at < n ? __ldg(w[r] + at) : 0;
            }
#pragma unroll
            for (int j = 0; j < BATCH; j++)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    sum[r] += x_at[j] * v[r][j];
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float v = warp_sum(sum[r]);
            if (lane == 0 && o + r < l.k)
                give(out, o + r, act_apply(l.act, v + (l.bias ? __ldg(l.bias + o + r) : 0)));
        }
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
#pragma unroll 4
    for (int i = threadIdx.x; i < taps * l.k * c4; i += THREADS) {
        const int c = i % c4, tap = i / c4 % taps, k = i / c4 / taps;
        to[(tap * l.k + k) * c4 + c] = c < l.c ? __ldg(l.weights + (k * taps + tap) * l.c + c) : 0;
    }
}

/* What stands below: the output that its activation made, whose slope the gradient takes. */
struct below {
    ew_cuda_act act;
    const float *y;
};

/* Divisions take as long as a dozen multiplications: strides of 1 do without. */
__device__ static int whole(int a, int b)
{
    return b == 1 ? a : a / b;
}

__device__ static float slope_below(const below &b, int i)
{
    return b.act.kind == EW_CUDA_ACT_NONE ? 1 : slope_at(b.act, b.y[i]);
}

__device__ static void conv_back(const ew_cuda_layer &l, const view &dy, const float *filters,
                                 const below &b, const sink &out)
{
    const int pixels = l.h * l.w, c4 = rounded(l.c);
    for (int item = threadIdx.x; item < pixels * (c4 / FILTERS); item += THREADS) {
        const int pixel = item % pixels, c = item / pixels * FILTERS;
        const int iy = pixel / l.w + l.ph, ix = pixel % l.w + l.pw;
        float sum[FILTERS] = {0}, slope[FILTERS];
#pragma unroll
        for (int i = 0; i < FILTERS; i++)
            slope[i] = c + i < l.c ? slope_below(b, pixel * l.c + c + i) : 0;
        for (int r = 0; r < l.kh; r++) {
            const int ty = iy - r, oy = whole(ty, l.sh);
            if (ty < 0 || oy * l.sh != ty || oy >= l.oh)
                continue;
            for (int t = 0; t < l.kw; t++) {
                const int tx = ix - t, ox = whole(tx, l.sw);
                if (tx >= 0 && ox * l.sw == tx && ox < l.ow)
                    multiply_add<4>(dy.data + (oy * l.ow + ox) * dy.pitch,
                                    filters + (r * l.kw + t) * l.k * c4 + c, c4, l.k, sum);
            }
        }
        for (int i = 0; i < FILTERS && c + i < l.c; i++)
            give(out, pixel * l.c + c + i, sum[i] * slope[i]);
    }
}

/* A thread an input where its weights lie beside those of the next, else a warp. */
__device__ static void dense_back(const ew_cuda_layer &l, const view &dy, const below &b,
                                  const sink &out)
{
    const int lane = threadIdx.x % 32, n = out.to.count;
    for (int i = threadIdx.x / 32; i < n && l.w_turned; i += WARPS) {
        const float slope = slope_below(b, i);
        float sum = 0;
        for (int o = lane; o < l.k; o += 32)
            sum += dy.data[o] * __ldg(l.weights + (int64_t)i * l.k + o);
        sum = warp_sum(sum);
        if (lane == 0)
            give(out, i, sum * slope);
    }
    for (int i = threadIdx.x; i < n && !l.w_turned; i += THREADS) {
        const float slope = slope_below(b, i);
        const float *w = l.weights + i;
        float sum = 0;
        for (int o = 0; o < l.k; o += 4 * BATCH) {
            float v[4 * BATCH];
#pragma unroll
            for (int j = 0; j < 4 * BATCH; j++)
                v[j] = o + j < l.k ? __ldg(w + (o + j) * n) : 0;
#pragma unroll
            for (int j = 0; j < 4 * BATCH; j++)
                sum += (o + j < l.k ? dy.data[o + j] : 0) * v[j];
        }
        give(out, i, sum * slope);
    }
}

__device__ static void pool_back(const ew_cuda_layer &l, const view &dy,
                                 const unsigned char *places, const below &b, const sink &out)
{
    const float share = 1.f / (float)(l.kh * l.kw);
    for (int i = threadIdx.x; i < l.h * l.w * l.c; i += THREADS) {
        const int pixel = i / l.c, c = i - pixel * l.c;
        const int iy = pixel / l.w + l.ph, ix = pixel % l.w + l.pw;
        const float slope = slope_below(b, i);
        float sum = 0;
        /* From the last window that has it to the first. */
        for (int oy = iy / l.sh; oy >= 0 && oy * l.sh + l.kh > iy; oy--)
            for (int ox = ix / l.sw; ox >= 0 && ox * l.sw + l.kw > ix; ox--) {
                const int o = oy * l.ow + ox, tap = (iy - oy * l.sh) * l.kw + ix - ox * l.sw;
                if (oy >= l.oh || ox >= l.ow)
                    continue;
                if (l.kind == EW_CUDA_LAYER_MEAN)
                    sum += share * dy.data[o * dy.pitch + c];
                else if (places[o * l.c + c] == tap)
                    sum += dy.data[o * dy.pitch + c];
            }
        give(out, i, sum * slope);
    }
}

__device__ static void transpose_back(const ew_cuda_layer &l, const view &dy, const below &b,
                                      const sink &out)
{
    for (int i = threadIdx.x; i < l.k; i += THREADS) {
        const int to = turned_from(l, i);
        give(out, to, dy.data[place(dy, i)] * slope_below(b, to));
    }
}

/* ---- An image's part of the gradients of filters ---- */

/* A thread has FILTERS filters at one of their positions, over some rows of pixels; `parts` has
 * room for FILTERS floats a thread. */
__device__ static void filter_sums(const ew_cuda_layer &l, const view &x, const view &dy,
                                   float *parts, float *to)
{
    const int depth = l.kh * l.kw * l.c, items = depth * (rounded(l.k) / FILTERS);
    const int splits = items < THREADS ? THREADS / items : 1;
    for (int job = threadIdx.x; job < items * splits; job += THREADS) {
        const int split = job / items, item = job - split * items;
        const int at = item % depth, o = item / depth * FILTERS;
        const int c = at % l.c, t = at / l.c % l.kw, r = at / l.c / l.kw;
        const int left = l.pw - t, first = left > 0 ? (left + l.sw - 1) / l.sw : 0;
        const int most = (l.w - 1 + left) / l.sw + 1, last = most < l.ow ? most : l.ow;
        float sum[FILTERS] = {0};
        for (int oy = split * l.oh / splits; oy < (split + 1) * l.oh / splits; oy++) {
            const int iy = oy * l.sh - l.ph + r;
            if (iy < 0 || iy >= l.h)
                continue;
            const float *px = x.data + (iy * l.w - left) * x.pitch + c;
            const float *d = dy.data + oy * l.ow * dy.pitch + o;
#pragma unroll 5
            for (int ox = first; ox < last; ox++) {
                const float v = px[ox * l.sw * x.pitch];
#pragma unroll
                for (int i = 0; i < FILTERS; i++)
                    sum[i] += v * d[ox * dy.pitch + i]; /* beyond the last filter: not used */
            }
        }
        for (int i = 0; i < FILTERS && o + i < l.k; i++)
            if (splits > 1)
                parts[job * FILTERS + i] = sum[i];
            else
                to[(o + i) * depth + at] = sum[i];
    }
    __syncthreads();
    for (int k = threadIdx.x; k < items * FILTERS && splits > 1; k += THREADS) {
        const int item = k / FILTERS, o = item / depth * FILTERS + k % FILTERS;
        float sum = 0;
        for (int i = 0; i < splits; i++)
            sum += parts[(i * items + item) * FILTERS + k % FILTERS];
        if (o < l.k)
            to[o * depth + item % depth] = sum;
    }
    const int lane = threadIdx.x % 32;
    for (int o = threadIdx.x / 32; o < l.k; o += WARPS) {
        float sum = 0;
        for (int i = lane; i < l.oh * l.ow; i += 32)
            sum += dy.data[i * dy.pitch + o];
        sum = warp_sum(sum);
        if (lane == 0)
            to[l.k * depth + o] = sum;
    }
}

/* ---- One image ---- */

__device__ static view output_of(const ew_cuda_layer &l, float *data)
{
    return {data, l.k, l.pitch, l.oh * l.ow * l.k};
}

/* Memory of a block, and of its image. */
struct image_memory {
    float *filters, *inputs; /* shared: of a layer */
    const float *x;
    float *values, *grads, *sums;
    unsigned char *places;
};

__device__ static void load_inputs(const view &to, const float *from)
{
#pragma unroll 4
    for (int i = threadIdx.x; i < to.count; i += THREADS)
        to.data[place(to, i)] = from[i];
}

__device__ static void go_back(const ew_cuda_net &net, const image_memory &m, float *a, float *b)
{
    view dy = output_of(net.layers[net.n - 1], a);
    for (int i = net.n - 1; i >= net.first_back; i--) {
        const ew_cuda_layer &l = net.layers[i], &under = net.layers[i ? i - 1 : 0];
        if (l.kind == EW_CUDA_LAYER_CONV && (l.dw || l.db)) {
            const view x = {m.inputs, l.c, i ? under.pitch : net.x_pitch, l.h * l.w * l.c};
            load_inputs(x, i ? m.values + under.y_at : m.x);
            __syncthreads();
            filter_sums(l, x, dy, m.filters, m.sums + l.sums_at);
            __syncthreads();
        }
        if (i == net.first_back)
            return;
        const below y = {under.act, m.values + under.y_at};
        const sink out = {output_of(under, b), m.grads + under.y_at};
        if (l.kind == EW_CUDA_LAYER_CONV) {
            stage_back(l, m.filters);
            __syncthreads();
            conv_back(l, dy, m.filters, y, out);
        } else if (l.kind == EW_CUDA_LAYER_DENSE) {
            dense_back(l, dy, y, out);
        } else if (l.kind == EW_CUDA_LAYER_TRANSPOSE) {
            transpose_back(l, dy, y, out);
        } else {
            pool_back(l, dy, m.places + l.place_at, y, out);
        }
        __syncthreads();
        b = dy.data;
        dy = out.to;
    }
}

__device__ static view go_forward(const ew_cuda_net &net, const image_memory &m, float *a, float *b)
{
    const ew_cuda_layer &start = net.layers[0];
    view x = {a, start.c, net.x_pitch, start.h * start.w * start.c};
    load_inputs(x, m.x);
    for (int i = 0; i < net.n; i++) {
        const ew_cuda_layer &l = net.layers[i];
        const sink out = {output_of(l, b), m.values ? m.values + l.y_at : nullptr};
        if (l.kind == EW_CUDA_LAYER_CONV)
            stage_forward(l, m.filters);
        __syncthreads();
        if (l.kind == EW_CUDA_LAYER_CONV)
            conv(l, x, m.filters, out);
        else if (l.kind == EW_CUDA_LAYER_DENSE)
            dense(l, x, out);
        else if (l.kind == EW_CUDA_LAYER_TRANSPOSE)
            transpose(l, x, out);
        else
            pool(l, x, m.places ? m.places + l.place_at : nullptr, out);
        b = x.data;
        x = out.to;
        __syncthreads();
    }
    return x;
}

__global__ void __launch_bounds__(THREADS, 1) net_kernel(const ew_cuda_net net)
{
    extern __shared__ float4 memory[];
    const int64_t image = blockIdx.x;
    const ew_cuda_layer &first = net.layers[0], &last = net.layers[net.n - 1];
    float *filters = reinterpret_cast<float *>(memory);
    float *a = filters + net.filter_floats, *b = a + net.value_room;
    const image_memory m = {filters,
                            b + net.value_room,
                            net.x + image * first.h * first.w * first.c,
                            net.values ? net.values + image * net.value_floats : nullptr,
                            net.grads ? net.grads + image * net.value_floats : nullptr,
                            net.sums ? net.sums + image * net.sum_floats : nullptr,
                            net.places ? net.places + image * net.place_bytes : nullptr};
    const view y = go_forward(net, m, a, b);
    for (int i = threadIdx.x; i < y.count && net.y; i += THREADS)
        net.y[image * y.count + i] = y.data[place(y, i)];
    if (!net.loss.samples)
        return;
    const sink dy = {output_of(last, y.data == a ? b : a), m.grads ? m.grads + last.y_at : nullptr};
    cross_entropy(net, y, dy);
    __syncthreads();
    if (m.grads)
        go_back(net, m, dy.to.data, y.data);
}

/* ---- Gradients of weights ---- */

/* Blocks of a layer: one for each THREADS of its weights and biases. */
__host__ __device__ static int weights_of(const ew_cuda_layer &l)
{
    return l.kind == EW_CUDA_LAYER_CONV ? l.kh * l.kw * l.c * l.k : l.h * l.w * l.c * l.k;
}

__host__ __device__ static int blocks_of(const ew_cuda_layer &l)
{
    return l.dw || l.db ? (weights_of(l) + l.k + THREADS - 1) / THREADS : 0;
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
#pragma unroll 8
    for (int image = 0; image < net.images; image++)
        sum += dy[(int64_t)image * net.value_floats] * (bias ? 1 : x.data[image * x.step + i]);
    put_sum(bias ? l.db : l.dw, bias ? o : at, sum, bias ? l.add_db : l.add_dw);
}

/* Adds up what the images' blocks have left. */
__device__ static void conv_weights(const ew_cuda_net &net, const ew_cuda_layer &l, int block)
{
    const int n = weights_of(l), at = block * THREADS + threadIdx.x;
    if (at >= n + l.k)
        return;
    const float *part = net.sums + l.sums_at + at;
    float sum = 0;
#pragma unroll 8
    for (int image = 0; image < net.images; image++)
        sum += part[(int64_t)image * net.sum_floats];
    if (at < n)
        put_sum(l.dw, at, sum, l.add_dw);
    else
        put_sum(l.db, at - n, sum, l.add_db);
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
            conv_weights(net, l, block);
        else
            dense_weights(net, l, x, block);
        return;
    }
    if (threadIdx.x < 32 && net.loss.samples)
        sum_losses(net.loss, threadIdx.x);
}

extern "C" int ew_cu_net(ew_cuda_queue *q, const ew_cuda_net *p)
{
    const size_t bytes = ew_cuda_net_bytes(p);
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
