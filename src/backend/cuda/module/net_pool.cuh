/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and transposes of small networks. */
#ifndef EW_BACKEND_CUDA_MODULE_NET_POOL_CUH
#define EW_BACKEND_CUDA_MODULE_NET_POOL_CUH

#include "backend/cuda/module/net.cuh"

/* An output of a pool: pixel, channel, and the part of its window inside the image. */
struct pooled {
    int y, x, c;
    int y0, x0; /* first input of its window; may be outside */
    int top, bottom, left, right;
};

__device__ static pooled pooled_at(const ew_cuda_layer &l, int i)
{
    const int pixel = divide(i, l.over_c), y = divide(pixel, l.over_ow), x = pixel - y * l.ow;
    const int y0 = y * l.sh - l.ph, x0 = x * l.sw - l.pw;
    return {y,
            x,
            i - pixel * l.c,
            y0,
            x0,
            y0 < 0 ? -y0 : 0,
            l.h - y0 < l.kh ? l.h - y0 : l.kh,
            x0 < 0 ? -x0 : 0,
            l.w - x0 < l.kw ? l.w - x0 : l.kw};
}

/* Ties: the first maximum wins.  The first NaN wins over all numbers. */
__device__ static void take_larger(float v, int tap, float &best, int &at)
{
    if (at < 0 || (!isnan(best) && (v > best || isnan(v))))
        best = v, at = tap;
}

/* 2 x 2 windows entirely inside the image: four independent loads. */
__device__ static float largest_of_four(const view &x, const pooled &p, int &at)
{
    const float *from = x.data + place(x.at, p.y0, p.x0, p.c);
    const float v[4] = {from[0], from[x.at.column], from[x.at.row], from[x.at.row + x.at.column]};
    float best = v[0];
    at = 0;
#pragma unroll
    for (int i = 1; i < 4; i++)
        take_larger(v[i], i, best, at);
    return best;
}

__device__ static float largest(const ew_cuda_layer &l, const view &x, const pooled &p, int &at)
{
    float best = -INFINITY;
    at = -1;
    for (int r = p.top; r < p.bottom; r++)
        for (int t = p.left; t < p.right; t++)
            take_larger(x.data[place(x.at, p.y0 + r, p.x0 + t, p.c)], r * l.kw + t, best, at);
    return best;
}

__device__ static float mean(const ew_cuda_layer &l, const view &x, const pooled &p)
{
    float sum = 0;
    for (int r = 0; r < l.kh; r++)
        for (int t = 0; t < l.kw; t++)
            sum += x.data[place(x.at, p.y0 + r, p.x0 + t, p.c)];
    return sum * (1.f / (float)(l.kh * l.kw));
}

/* places: arg-max positions within the windows; may be NULL. */
__device__ static void pool(const ew_cuda_layer &l, const view &x, unsigned char *places,
                            const view &to)
{
    const bool four = l.kh == 2 && l.kw == 2 && l.ph == 0 && l.pw == 0 &&
                      (l.oh - 1) * l.sh + 2 <= l.h && (l.ow - 1) * l.sw + 2 <= l.w;
    for (int i = threadIdx.x; i < l.oh * l.ow * l.c; i += THREADS) {
        const pooled p = pooled_at(l, i);
        int at = -1;
        const float v = l.kind == EW_CUDA_LAYER_MEAN ? mean(l, x, p)
                        : four                       ? largest_of_four(x, p, at)
                                                     : largest(l, x, p, at);
        if (places && l.kind == EW_CUDA_LAYER_MAX)
            places[i] = (unsigned char)at;
        to.data[place(to.at, p.y, p.x, p.c)] = activate(l.act.kind, v);
    }
}

/* ---- Backward ---- */

/* Outputs from which the derivative of the activation below a pool follows.  own: outputs of a max
 * pool without activation, which are the same numbers, contiguous; else below: those of the layer
 * below. */
struct pool_slopes {
    int act;
    const float *own, *below; /* own may be NULL */
    ew_cuda_layout own_at, below_at;
};

__device__ static float pool_slope(const pool_slopes &s, const pooled &p, int tap, int kw)
{
    if (s.act == EW_CUDA_ACT_NONE)
        return 1;
    const int r = tap / kw;
    return slope_at(s.act, s.own ? s.own[place(s.own_at, p.y, p.x, p.c)]
                                 : s.below[place(s.below_at, p.y0 + r, p.x0 + tap - r * kw, p.c)]);
}

/* Windows that do not overlap: each output writes all inputs of its window.  Inputs in no window
 * are zero already. */
__device__ static void scatter(const ew_cuda_layer &l, const view &dy, const unsigned char *places,
                               const pool_slopes &s, const view &to)
{
    const bool max = l.kind == EW_CUDA_LAYER_MAX;
    const float share = 1.f / (float)(l.kh * l.kw);
    for (int i = threadIdx.x; i < l.oh * l.ow * l.c; i += THREADS) {
        const pooled p = pooled_at(l, i);
        const float d = dy.data[place(dy.at, p.y, p.x, p.c)];
        const int at = max ? places[i] : 0; /* an index beyond the last: the window is all
                                             * padding */
        const float most = max && at < l.kh * l.kw ? d * pool_slope(s, p, at, l.kw) : 0;
        for (int r = p.top; r < p.bottom; r++)
            for (int t = p.left; t < p.right; t++) {
                const int tap = r * l.kw + t;
                to.data[place(to.at, p.y0 + r, p.x0 + t, p.c)] =
                    !max        ? share * d * pool_slope(s, p, tap, l.kw)
                    : tap == at ? most
                                : 0;
            }
    }
}

/* Overlapping windows: each input sums over the windows that contain it. */
__device__ static void gather(const ew_cuda_layer &l, const view &dy, const unsigned char *places,
                              const pool_slopes &s, const view &to)
{
    const bool max = l.kind == EW_CUDA_LAYER_MAX;
    const float share = 1.f / (float)(l.kh * l.kw);
    for (int i = threadIdx.x; i < l.h * l.w * l.c; i += THREADS) {
        const int pixel = divide(i, l.over_c), c = i - pixel * l.c;
        const int y = divide(pixel, l.over_w), x = pixel - y * l.w;
        const int py = y + l.ph, px = x + l.pw;
        const int last_y = py / l.sh < l.oh ? py / l.sh : l.oh - 1;
        const int last_x = px / l.sw < l.ow ? px / l.sw : l.ow - 1;
        float sum = 0;
        for (int oy = last_y; oy >= 0 && oy * l.sh + l.kh > py; oy--)
            for (int ox = last_x; ox >= 0 && ox * l.sw + l.kw > px; ox--) {
                const int o = (oy * l.ow + ox) * l.c + c;
                const int tap = (py - oy * l.sh) * l.kw + px - ox * l.sw;
                const float d = dy.data[place(dy.at, oy, ox, c)];
                if (!max || places[o] == tap)
                    sum += (max ? d : share * d) * pool_slope(s, pooled_at(l, o), tap, l.kw);
            }
        to.data[place(to.at, y, x, c)] = sum;
    }
}

__device__ static void pool_back(const ew_cuda_layer &l, const view &dy,
                                 const unsigned char *places, const pool_slopes &s, const view &to)
{
    if (l.sh < l.kh || l.sw < l.kw) {
        gather(l, dy, places, s, to);
        return;
    }
    if (!l.tiles) {
        for (int i = threadIdx.x; i < l.h * l.w * l.c; i += THREADS) {
            const int pixel = divide(i, l.over_c), y = divide(pixel, l.over_w);
            to.data[place(to.at, y, pixel - y * l.w, i - pixel * l.c)] = 0;
        }
        __syncthreads();
    }
    scatter(l, dy, places, s, to);
}

/* ---- Transposes ---- */

/* Index in [h, w, c] of element i of the result. */
__device__ static int turned_from(const ew_cuda_layer &l, int i)
{
    int from = 0;
#pragma unroll
    for (int a = 2; a >= 0; a--) {
        const int p = l.perm[a], d = p == 0 ? l.h : p == 1 ? l.w : l.c;
        from += i % d * (p == 0 ? l.w * l.c : p == 1 ? l.c : 1);
        i /= d;
    }
    return from;
}

__device__ static void transpose(const ew_cuda_layer &l, const float *x, float *y)
{
    for (int i = threadIdx.x; i < l.k; i += THREADS)
        y[i] = activate(l.act.kind, x[turned_from(l, i)]);
}

__device__ static void transpose_back(const ew_cuda_layer &l, const float *dy,
                                      const sum_epilogue &e, float *dx)
{
    for (int i = threadIdx.x; i < l.k; i += THREADS) {
        const int to = turned_from(l, i);
        dx[to] = finish(e, dy[i], operand_of(e, to));
    }
}

#endif
