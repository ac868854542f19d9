/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools of the CUDA module against plain loops in double. */
#include <math.h>

#include "cuda_buffers.h"
#include "op/epilogue.h"

/* A window over [n, h, w, c] with `pad` at the beginning and `end` at the end of each axis. */
static struct ew_cuda_window window(const int *v)
{
    struct ew_cuda_window g = {.n = v[0],
                               .h = v[1],
                               .w = v[2],
                               .c = v[3],
                               .k = v[4],
                               .kh = v[5],
                               .kw = v[5],
                               .sh = v[6],
                               .sw = v[6],
                               .ph = v[7],
                               .pw = v[7],
                               .dh = v[9],
                               .dw = v[9],
                               .groups = v[10]};
    g.oh = (g.h + v[7] + v[8] - (g.kh - 1) * g.dh - 1) / g.sh + 1;
    g.ow = (g.w + v[7] + v[8] - (g.kw - 1) * g.dw - 1) / g.sw + 1;
    return g;
}

static int64_t x_count(const struct ew_cuda_window *g)
{
    return (int64_t)g->n * g->h * g->w * g->c;
}

static int64_t y_count(const struct ew_cuda_window *g)
{
    return (int64_t)g->n * g->oh * g->ow * g->k;
}

static int64_t w_count(const struct ew_cuda_window *g)
{
    return (int64_t)g->k * g->kh * g->kw * (g->c / g->groups);
}

struct conv_ref {
    const float *x, *w, *dy;
    double *y, *dx, *dw; /* accumulated into */
};

/* Accumulates one output pixel of filter o, with all taps. */
static void ref_pixel(const struct ew_cuda_window *g, const struct conv_ref *r, int64_t pixel,
                      int o)
{
    const int cg = g->c / g->groups, first = o / (g->k / g->groups) * cg;
    const int ox = (int)(pixel % g->ow), oy = (int)(pixel / g->ow % g->oh);
    const int64_t n = pixel / g->ow / g->oh;
    for (int tap = 0; tap < g->kh * g->kw; tap++) {
        const int iy = oy * g->sh - g->ph + tap / g->kw * g->dh;
        const int ix = ox * g->sw - g->pw + tap % g->kw * g->dw;
        if (iy < 0 || iy >= g->h || ix < 0 || ix >= g->w)
            continue;
        for (int c = 0; c < cg; c++) {
            const int64_t at = ((n * g->h + iy) * g->w + ix) * g->c + first + c;
            const int64_t f = ((int64_t)o * g->kh * g->kw + tap) * cg + c;
            const double dy = (double)r->dy[pixel * g->k + o];
            r->y[pixel * g->k + o] += (double)r->x[at] * (double)r->w[f];
            r->dx[at] += dy * (double)r->w[f];
            r->dw[f] += dy * (double)r->x[at];
        }
    }
}

enum family { DEPTHWISE, DIRECT, CUDNN, PLANAR, IM2COL, STEM };

struct conv_case {
    const char *name;
    enum family family;
    int type, math, act;
    int v[11]; /* n h w c k kernel stride pad pad_end dilation groups */
};

static const struct ew_cuda_act acts[] = {
    {EW_CUDA_ACT_NONE, 0, 0},       {EW_CUDA_ACT_RELU, 0, 0}, {EW_CUDA_ACT_HARD_SWISH, 0, 0},
    {EW_CUDA_ACT_CLIP, -0.5, 1.5f}, {EW_CUDA_ACT_SILU, 0, 0}, {EW_CUDA_ACT_TANH, 0, 0}};

static int conv_forward(const struct conv_case *k, const struct ew_cuda_conv *p)
{
    return k->family == DEPTHWISE ? CUDA(depthwise(gpu.q, p))
           : k->family == DIRECT  ? CUDA(direct(gpu.q, p))
           : k->family == IM2COL  ? CUDA(im2col_conv(gpu.q, p))
           : k->family == STEM    ? CUDA(stem(gpu.q, p))
                                  : CUDA(conv(gpu.q, p));
}

static int conv_back(const struct conv_case *k, const struct ew_cuda_conv_back *p)
{
    if (k->family == DEPTHWISE)
        return p->dx ? CUDA(depthwise_dx(gpu.q, p)) : CUDA(depthwise_dw(gpu.q, p));
    if (k->family == DIRECT || k->family == STEM)
        return p->dx ? CUDA(direct_dx(gpu.q, p)) : CUDA(direct_dw(gpu.q, p));
    if (k->family == IM2COL)
        return p->dx ? CUDA(im2col_dx(gpu.q, p)) : CUDA(im2col_dw(gpu.q, p));
    return CUDA(conv_back(gpu.q, p));
}

/* Tensor cores use 11 bits of float32's mantissa. */
static double looser(const struct conv_case *k)
{
    return k->type == EW_CUDA_F32 && k->math == EW_CUDA_MATH_TF32 ? 100 : 2;
}

/* Only first layers have padded im2col rows; they need no dx. */
static bool has_dx(const struct conv_case *k)
{
    const struct ew_cuda_window g = window(k->v);
    return k->family != IM2COL || ew_cuda_im2col_pitch(&g) == g.kh * g.kw * g.c;
}

static void check_conv(const struct conv_case *k)
{
    const struct ew_cuda_window g = window(k->v);
    struct buf x = buf_new(k->type, x_count(&g), 1), w = buf_new(k->type, w_count(&g), 0.3),
               dy = buf_new(k->type, y_count(&g), 1), y = buf_new(k->type, y_count(&g), 0),
               res = buf_new(k->type, y_count(&g), 1), bias = buf_new(EW_CUDA_F32, g.k, 1),
               dx = buf_new(k->type, x_count(&g), 1), dw = buf_new(EW_CUDA_F32, w_count(&g), 1);
    struct conv_ref r = {x.h,
                         w.h,
                         dy.h,
                         calloc(y.n, sizeof(double)),
                         calloc(dx.n, sizeof(double)),
                         calloc(dw.n, sizeof(double))};
    const bool add = k->type == EW_CUDA_F32;
    for (int64_t pixel = 0; pixel < y_count(&g) / g.k; pixel++)
        for (int o = 0; o < g.k; o++)
            ref_pixel(&g, &r, pixel, o);
    const struct ew_epilogue_attr e = {
        .act = acts[k->act].kind, .lo = (double)acts[k->act].lo, .hi = (double)acts[k->act].hi};
    const bool residual = k->family != STEM;
    for (size_t i = 0; i < y.n; i++)
        r.y[i] = ew_act_apply(&e, r.y[i] + (double)bias.h[i % (size_t)g.k] +
                                      (residual ? (double)res.h[i] : 0));
    for (size_t i = 0; i < dx.n; i++)
        r.dx[i] += add ? (double)dx.h[i] : 0;
    for (size_t i = 0; i < dw.n; i++)
        r.dw[i] += add ? (double)dw.h[i] : 0;
    size_t at[4];
    const size_t copies = ew_cuda_planar_bytes(&g, k->type, at);
    void *scratch =
        device_bytes(NULL, ew_cuda_reduce_scratch(1, (int64_t)g.n * g.oh * g.ow, g.c, g.kh * g.kw) +
                               dw.n * 4 + copies + WORKSPACE + ew_cuda_im2col_scratch(&g));
    const struct ew_cuda_conv p = {.type = k->type,
                                   .math = k->math,
                                   .g = g,
                                   .planar = k->family == PLANAR,
                                   .scratch = scratch,
                                   .act = acts[k->act],
                                   .x = x.d,
                                   .w = w.d,
                                   .bias = bias.d,
                                   .residual = residual ? res.d : NULL,
                                   .y = y.d,
                                   .algo = -1};
    expect_status(conv_forward(k, &p), k->name, __LINE__);
    EXPECT_BUF(&y, r.y, looser(k));
    struct ew_cuda_conv_back b = {.type = k->type,
                                  .math = k->math,
                                  .g = g,
                                  .add = add,
                                  .x = x.d,
                                  .w = w.d,
                                  .dy = dy.d,
                                  .dx = dx.d,
                                  .planar = k->family == PLANAR,
                                  .scratch = scratch,
                                  .algo = -1};
    if (has_dx(k)) {
        expect_status(conv_back(k, &b), k->name, __LINE__);
        EXPECT_BUF(&dx, r.dx, looser(k));
    }
    b.dx = NULL;
    b.dw = dw.d;
    expect_status(conv_back(k, &b), k->name, __LINE__);
    /* cuDNN rounds dw to the type of x. */
    EXPECT_BUF(&dw, r.dw, k->type != EW_CUDA_F32 && k->family == CUDNN ? 1000 : looser(k));
    free(r.y);
    free(r.dx);
    free(r.dw);
    gpu_end();
}

static void run_cases(const struct conv_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_conv(&cases[i]);
}

static void depthwise_layers(void)
{
    if (!gpu_open())
        return;
    static const struct conv_case cases[] = {
        {"3x3", DEPTHWISE, EW_CUDA_F32, 0, 1, {2, 14, 14, 96, 96, 3, 1, 1, 1, 1, 96}},
        {"3x3/2", DEPTHWISE, EW_CUDA_F32, 0, 2, {2, 15, 13, 32, 32, 3, 2, 1, 1, 1, 32}},
        {"5x5", DEPTHWISE, EW_CUDA_F32, 0, 1, {1, 7, 9, 40, 40, 5, 1, 2, 2, 1, 40}},
        {"5x5/2", DEPTHWISE, EW_CUDA_F32, 0, 0, {2, 14, 14, 240, 240, 5, 2, 2, 2, 1, 240}},
        {"odd channels", DEPTHWISE, EW_CUDA_F32, 0, 1, {2, 9, 11, 7, 7, 3, 1, 1, 1, 1, 7}},
        {"uneven pads", DEPTHWISE, EW_CUDA_F32, 0, 1, {1, 12, 12, 16, 16, 3, 2, 0, 1, 1, 16}},
        {"dilated", DEPTHWISE, EW_CUDA_F32, 0, 1, {1, 12, 12, 16, 16, 3, 1, 2, 2, 2, 16}},
        {"half", DEPTHWISE, EW_CUDA_F16, 0, 1, {2, 14, 14, 96, 96, 3, 1, 1, 1, 1, 96}},
        /* Large enough that threads have several rows on any card. */
        {"rows", DEPTHWISE, EW_CUDA_F32, 0, 3, {9, 57, 55, 96, 96, 3, 1, 1, 1, 1, 96}},
        {"rows/2", DEPTHWISE, EW_CUDA_F16, 0, 4, {9, 77, 75, 96, 96, 3, 2, 1, 1, 1, 96}},
        {"rows 5x5", DEPTHWISE, EW_CUDA_BF16, 0, 2, {9, 39, 37, 96, 96, 5, 1, 2, 2, 1, 96}},
        {"rows 5x5/2", DEPTHWISE, EW_CUDA_F32, 0, 0, {9, 77, 75, 96, 96, 5, 2, 2, 1, 1, 96}},
        {"bfloat16", DEPTHWISE, EW_CUDA_BF16, 0, 2, {2, 15, 13, 32, 32, 5, 2, 2, 2, 1, 32}},
    };
    run_cases(cases, EW_COUNT(cases));
}

static void first_layers(void)
{
    if (!gpu_open())
        return;
    static const struct conv_case cases[] = {
        {"3x3/2, rgb", STEM, EW_CUDA_F16, 0, 3, {2, 35, 70, 3, 32, 3, 2, 1, 1, 1, 1}},
        {"no padding", STEM, EW_CUDA_F16, 0, 1, {2, 31, 67, 3, 64, 3, 2, 0, 0, 1, 1}},
        {"7x7/2", STEM, EW_CUDA_F16, 0, 0, {3, 62, 58, 3, 64, 7, 2, 3, 3, 1, 1}},
        {"24 filters", STEM, EW_CUDA_BF16, 0, 2, {1, 23, 41, 3, 24, 3, 2, 1, 0, 1, 1}},
        {"grey, tanh", STEM, EW_CUDA_F16, 0, 5, {1, 28, 30, 1, 16, 5, 1, 2, 2, 1, 1}},
        {"many filters", STEM, EW_CUDA_BF16, 0, 0, {1, 9, 33, 3, 136, 3, 1, 1, 1, 1, 1}},
    };
    int arch = 0;
    EW_EXPECT_INT(CUDA(kernel_arch(&arch)), 0);
    if (arch < 80)
        ew_test_skip("kernels are for %d, tensor cores of 80 and more are asked for", arch);
    else
        run_cases(cases, EW_COUNT(cases));
}

static void direct_layers(void)
{
    if (!gpu_open())
        return;
    static const struct conv_case cases[] = {
        {"lenet 1", DIRECT, EW_CUDA_F32, 0, 1, {4, 28, 28, 1, 6, 5, 1, 2, 2, 1, 1}},
        {"lenet 2", DIRECT, EW_CUDA_F32, 0, 1, {4, 14, 14, 6, 16, 5, 1, 0, 0, 1, 1}},
        {"large filters", DIRECT, EW_CUDA_F32, 0, 2, {1, 9, 9, 64, 48, 3, 1, 1, 1, 1, 1}},
        {"groups, stride", DIRECT, EW_CUDA_F32, 0, 0, {2, 11, 9, 12, 8, 3, 2, 1, 1, 1, 4}},
        {"uneven pads", DIRECT, EW_CUDA_F32, 0, 1, {2, 10, 10, 5, 7, 3, 2, 0, 1, 1, 1}},
        {"half", DIRECT, EW_CUDA_F16, 0, 1, {2, 10, 10, 8, 8, 3, 1, 2, 2, 2, 1}},
    };
    run_cases(cases, EW_COUNT(cases));
}

static void unrolled_layers(void)
{
    if (!gpu_open())
        return;
    static const struct conv_case cases[] = {
        {"3x3", IM2COL, EW_CUDA_F32, 0, 1, {3, 8, 7, 64, 48, 3, 1, 1, 1, 1, 1}},
        {"one pixel", IM2COL, EW_CUDA_F32, 0, 0, {4, 1, 1, 96, 64, 3, 1, 1, 1, 1, 1}},
        {"1x1/2", IM2COL, EW_CUDA_F32, 0, 0, {2, 14, 14, 32, 40, 1, 2, 0, 0, 1, 1}},
        {"3x3/2, hard swish", IM2COL, EW_CUDA_F32, 0, 2, {2, 13, 15, 20, 24, 3, 2, 1, 1, 1, 1}},
        {"first layer", IM2COL, EW_CUDA_F32, 0, 1, {2, 32, 30, 3, 64, 7, 2, 3, 3, 1, 1}},
        {"dilated, uneven pads", IM2COL, EW_CUDA_F32, 0, 1, {2, 12, 12, 8, 16, 3, 1, 2, 1, 2, 1}},
        {"in parts", IM2COL, EW_CUDA_F32, 0, 1, {80, 56, 56, 4, 2, 3, 1, 1, 1, 1, 1}},
    };
    run_cases(cases, EW_COUNT(cases));
}

static void library_layers(void)
{
    if (!gpu_open())
        return;
    /* clang-format off */
    static const struct conv_case cases[] = {
        {"channels first 3x3", PLANAR, EW_CUDA_F32, EW_CUDA_MATH_FP32, 1, {2, 14, 15, 64, 32, 3, 1, 1, 1, 1, 1}},
        {"channels first 7x7/2", PLANAR, EW_CUDA_F32, EW_CUDA_MATH_FP32, 2, {2, 32, 30, 3, 64, 7, 2, 3, 3, 1, 1}},
        {"channels first 1x1 images", PLANAR, EW_CUDA_F32, EW_CUDA_MATH_FP32, 0, {3, 1, 1, 16, 24, 3, 1, 1, 1, 1, 1}},
        {"fp32 3x3", CUDNN, EW_CUDA_F32, EW_CUDA_MATH_FP32, 1, {2, 14, 14, 64, 32, 3, 1, 1, 1, 1, 1}},
        {"fp32 7x7/2", CUDNN, EW_CUDA_F32, EW_CUDA_MATH_FP32, 1, {2, 32, 32, 3, 64, 7, 2, 3, 3, 1, 1}},
        {"fp32 hswish", CUDNN, EW_CUDA_F32, EW_CUDA_MATH_FP32, 2, {1, 9, 9, 16, 24, 3, 2, 1, 1, 1, 1}},
        {"fp32 groups", CUDNN, EW_CUDA_F32, EW_CUDA_MATH_FP32, 0, {1, 9, 9, 32, 32, 3, 1, 1, 1, 1, 4}},
        {"tf32 3x3", CUDNN, EW_CUDA_F32, EW_CUDA_MATH_TF32, 1, {2, 14, 14, 64, 32, 3, 1, 1, 1, 1, 1}},
        {"tf32 first", CUDNN, EW_CUDA_F32, EW_CUDA_MATH_TF32, 1, {2, 32, 32, 3, 32, 3, 2, 1, 1, 1, 1}},
        {"fp16 3x3", CUDNN, EW_CUDA_F16, 0, 1, {2, 14, 14, 64, 32, 3, 1, 1, 1, 1, 1}},
        {"fp16 first", CUDNN, EW_CUDA_F16, 0, 1, {2, 32, 32, 3, 32, 3, 2, 1, 1, 1, 1}},
        {"bf16 1x1", CUDNN, EW_CUDA_BF16, 0, 2, {2, 14, 14, 64, 40, 1, 1, 0, 0, 1, 1}},
    };
    /* clang-format on */
    run_cases(cases, EW_COUNT(cases));
}

/* ---- Pools ---- */

struct pool_case {
    const char *name;
    int type, kind, count_pad, adaptive;
    int v[11];
    int oh, ow; /* adaptive */
};

/* Window [from, to) of output o. */
static void span(const struct pool_case *k, int o, int in, int out, int *from, int *to)
{
    const int pad = k->v[7];
    *from = k->adaptive ? o * in / out : o * k->v[6] - pad;
    *to = k->adaptive ? ((o + 1) * in + out - 1) / out : *from + k->v[5];
}

static int counted(const struct pool_case *k, int from, int to, int in)
{
    int n = 0;
    for (int i = from; i < to; i++)
        n += k->count_pad ? i < in + k->v[8] : i >= 0 && i < in;
    return n;
}

static void ref_pool(const struct pool_case *k, const struct ew_cuda_window *g, int64_t i,
                     const float *x, const float *dy, double *y, double *dx)
{
    const int c = (int)(i % g->c), ox = (int)(i / g->c % g->ow),
              oy = (int)(i / g->c / g->ow % g->oh);
    const int64_t n = i / g->c / g->ow / g->oh;
    int y0, y1, x0, x1;
    int64_t best = -1;
    span(k, oy, g->h, g->oh, &y0, &y1);
    span(k, ox, g->w, g->ow, &x0, &x1);
    const double share = 1.0 / (counted(k, y0, y1, g->h) * counted(k, x0, x1, g->w));
    y[i] = 0;
    for (int iy = y0; iy < y1; iy++)
        for (int ix = x0; ix < x1; ix++) {
            const int64_t at = ((n * g->h + iy) * g->w + ix) * g->c + c;
            if (iy < 0 || iy >= g->h || ix < 0 || ix >= g->w)
                continue;
            if (k->kind == EW_CUDA_POOL_MEAN) {
                y[i] += (double)x[at] * share;
                dx[at] += (double)dy[i] * share;
            } else if (best < 0 || x[at] > x[best]) {
                best = at;
            }
        }
    if (k->kind == EW_CUDA_POOL_MAX) {
        y[i] = (double)x[best];
        dx[best] += (double)dy[i];
    }
}

static void check_pool(const struct pool_case *k)
{
    struct ew_cuda_window g = window(k->v);
    if (k->adaptive) {
        g.oh = k->oh;
        g.ow = k->ow;
    }
    struct buf x = buf_new(k->type, x_count(&g), 1), dy = buf_new(k->type, y_count(&g), 1),
               y = buf_new(k->type, y_count(&g), 0), dx = buf_new(k->type, x_count(&g), 0);
    double *want_y = calloc(y.n, sizeof(double)), *want_dx = calloc(dx.n, sizeof(double));
    for (int64_t i = 0; i < y_count(&g); i++)
        ref_pool(k, &g, i, x.h, dy.h, want_y, want_dx);
    const struct ew_cuda_pool p = {.type = k->type,
                                   .kind = k->kind,
                                   .count_pad = k->count_pad,
                                   .adaptive = k->adaptive,
                                   .pad_end_h = k->v[8],
                                   .pad_end_w = k->v[8],
                                   .g = g,
                                   .x = x.d,
                                   .y = y.d,
                                   .index =
                                       k->kind == EW_CUDA_POOL_MAX ? device_bytes(NULL, y.n) : NULL,
                                   .dy = dy.d,
                                   .dx = dx.d};
    expect_status(CUDA(pool(gpu.q, &p)), k->name, __LINE__);
    EXPECT_BUF(&y, want_y, 1);
    expect_status(CUDA(pool_back(gpu.q, &p)), k->name, __LINE__);
    EXPECT_BUF(&dx, want_dx, 2);
    free(want_y);
    free(want_dx);
    gpu_end();
}

static void pools(void)
{
    if (!gpu_open())
        return;
    static const struct pool_case cases[] = {
        {"max 2x2", EW_CUDA_F32, EW_CUDA_POOL_MAX, 0, 0, {2, 14, 14, 6, 6, 2, 2, 0, 0, 1, 1}, 0, 0},
        {"max 3x3/2",
         EW_CUDA_F32,
         EW_CUDA_POOL_MAX,
         0,
         0,
         {2, 15, 15, 64, 64, 3, 2, 1, 1, 1, 1},
         0,
         0},
        {"mean", EW_CUDA_F32, EW_CUDA_POOL_MEAN, 0, 0, {2, 9, 9, 12, 12, 3, 1, 1, 1, 1, 1}, 0, 0},
        {"mean, pads",
         EW_CUDA_F32,
         EW_CUDA_POOL_MEAN,
         1,
         0,
         {2, 9, 9, 5, 5, 3, 2, 1, 1, 1, 1},
         0,
         0},
        {"adaptive",
         EW_CUDA_F32,
         EW_CUDA_POOL_MEAN,
         0,
         1,
         {2, 13, 10, 8, 8, 1, 1, 0, 0, 1, 1},
         6,
         7},
        {"adaptive max",
         EW_CUDA_F32,
         EW_CUDA_POOL_MAX,
         0,
         1,
         {1, 7, 7, 4, 4, 1, 1, 0, 0, 1, 1},
         3,
         2},
        {"half", EW_CUDA_F16, EW_CUDA_POOL_MAX, 0, 0, {2, 12, 12, 32, 32, 3, 2, 1, 1, 1, 1}, 0, 0},
        {"bfloat16",
         EW_CUDA_BF16,
         EW_CUDA_POOL_MEAN,
         0,
         0,
         {2, 8, 8, 16, 16, 2, 2, 0, 0, 1, 1},
         0,
         0},
    };
    for (size_t i = 0; i < EW_COUNT(cases); i++)
        check_pool(&cases[i]);
}

/* The maximum of a window with a NaN is NaN, at any position, and the gradient goes to the NaN.
 * Windows of 2 x 2 and 3 x 3 have special kernels; 5 x 5 has none. */
static void maxima_keep_nan(void)
{
    static const int types[] = {EW_CUDA_F32, EW_CUDA_F16, EW_CUDA_BF16};
    if (!gpu_open())
        return;
    for (size_t t = 0; t < EW_COUNT(types); t++)
        for (int side = 2; side <= 5; side++)
            for (int at = 0; at < side * side; at++) {
                const int v[11] = {1, side, side, 8, 8, side, side, 0, 0, 1, 1};
                const struct ew_cuda_window g = window(v);
                struct buf x = buf_new(types[t], x_count(&g), 1), dx = x,
                           y = buf_new(types[t], y_count(&g), 1);
                x.h[at * g.c + 3] = NAN;
                buf_put(&x);
                const struct ew_cuda_pool p = {.type = types[t],
                                               .kind = EW_CUDA_POOL_MAX,
                                               .g = g,
                                               .x = x.d,
                                               .y = y.d,
                                               .index = device_bytes(NULL, y.n),
                                               .dy = y.d,
                                               .dx = dx.d};
                EXPECT_LAUNCH(pool(gpu.q, &p));
                const float *out = buf_get(&y);
                for (int c = 0; c < g.c; c++)
                    EW_EXPECT(isnan(out[c]) == (c == 3));
                EXPECT_LAUNCH(pool_back(gpu.q, &p));
                const float *back = buf_get(&dx);
                for (int i = 0; i < side * side; i++)
                    EW_EXPECT(isnan(back[i * g.c + 3]) == (i == at));
                gpu_end();
            }
}

EW_TEST_MAIN(EW_TEST(depthwise_layers), EW_TEST(first_layers), EW_TEST(direct_layers),
             EW_TEST(unrolled_layers), EW_TEST(library_layers), EW_TEST(pools),
             EW_TEST(maxima_keep_nan))
