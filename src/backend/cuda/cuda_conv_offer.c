/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on CUDA devices: choice of the launcher and its arguments. */
#include "backend/cuda/cuda_backend.h"
#include "graph/ops.h"
#include "op/conv.h"

enum { X, W, B, ADD };

#define SMALL_MACS  (4 << 20) /* smaller convolutions with few filters use our kernels */
#define SMALL_BYTES (48 * 1024)
/* Multiply-accumulates from which NCHW kernels make up for the layout copies (H200); --tune
 * measures both. */
#define PLANAR_MACS       ((int64_t)1 << 28)
#define UNROLLED_CHANNELS 16  /* im2col of fewer channels (a first layer) is memory-bound */
#define UNROLLED_IMAGES   8   /* from this batch size on Winograd is faster */
#define PLANAR_SHARE      256 /* least multiply-accumulates per copied element, forward */

/* The operator's sizes.  ew_conv_resolve wants weights and activations of one type, so x is passed
 * as float32. */
static bool sizes_of(const struct ew_call *c, struct ew_conv_sizes *s)
{
    struct ew_tensor x = *c->in[X], *in[] = {&x, c->in[W], ew_call_in(c, B)};
    struct ew_call view = *c;
    x.dtype = EW_F32;
    view.in = in;
    view.n_in = c->n_in < 3 ? c->n_in : 3;
    return ew_conv_resolve(&view, s) == EW_OK;
}

bool ew_cuda_conv_window(const struct ew_call *c, struct ew_cuda_window *g)
{
    struct ew_conv_sizes s;
    if (!sizes_of(c, &s))
        return false;
    const bool flat = ew_cuda_flatten(&s.w);
    *g = (struct ew_cuda_window){.n = (int)s.w.batch,
                                 .h = (int)s.w.in[1],
                                 .w = (int)s.w.in[2],
                                 .c = (int)s.w.channels,
                                 .oh = (int)s.w.out[1],
                                 .ow = (int)s.w.out[2],
                                 .k = (int)s.filters,
                                 .kh = (int)s.w.kernel[1],
                                 .kw = (int)s.w.kernel[2],
                                 .sh = (int)s.w.stride[1],
                                 .sw = (int)s.w.stride[2],
                                 .ph = (int)s.w.pad[1],
                                 .pw = (int)s.w.pad[2],
                                 .dh = (int)s.w.dilation[1],
                                 .dw = (int)s.w.dilation[2],
                                 .groups = (int)s.groups};
    if (!flat) {
        g->d = (int)s.w.in[0], g->od = (int)s.w.out[0];
        g->kd = (int)s.w.kernel[0], g->sd = (int)s.w.stride[0];
        g->pd = (int)s.w.pad[0], g->dd = (int)s.w.dilation[0];
    }
    return ew_tensor_count(c->in[X]) > 0 && ew_tensor_count(c->in[X]) < INT32_MAX;
}

static bool is_pointwise(const struct ew_cuda_window *g)
{
    return g->kh == 1 && g->kw == 1 && g->sh == 1 && g->sw == 1 && g->ph == 0 && g->pw == 0 &&
           g->groups == 1 && g->oh == g->h && g->ow == g->w;
}

static bool is_depthwise(const struct ew_cuda_window *g)
{
    return g->groups == g->c && g->k == g->c && g->c > 1 &&
           (size_t)g->kh * (size_t)g->kw * 128 * sizeof(float) <= SMALL_BYTES;
}

/* True if `out` windows of `span` fit into `in` with the same padding at both ends. */
static bool is_even_axis(int in, int pad, int span, int stride, int out)
{
    const int room = in + 2 * pad - span; /* -1 / 2 would count as a window */
    return room >= 0 && room / stride + 1 == out;
}

/* Symmetric padding, the only one that cuDNN supports. */
static bool is_even(const struct ew_cuda_window *g)
{
    return (!g->od || is_even_axis(g->d, g->pd, (g->kd - 1) * g->dd + 1, g->sd, g->od)) &&
           is_even_axis(g->h, g->ph, (g->kh - 1) * g->dh + 1, g->sh, g->oh) &&
           is_even_axis(g->w, g->pw, (g->kw - 1) * g->dw + 1, g->sw, g->ow);
}

/* In full float32 cuDNN's fastest kernels are NCHW (Winograd, and all gradients): used if there are
 * enough operations per element of the layout copies. */
static bool is_planar(const struct ew_kernel_query *query, const struct ew_cuda_window *g)
{
    const struct ew_cuda *be = ew_cuda(query->be);
    const int64_t x = (int64_t)g->n * g->h * g->w * g->c, y = (int64_t)g->n * g->oh * g->ow * g->k;
    const int64_t macs = y * g->kh * g->kw * g->c;
    return be->type == EW_CUDA_F32 && be->math == EW_CUDA_MATH_FP32 && g->groups == 1 &&
           g->kh * g->kw > 1 && macs >= PLANAR_MACS &&
           (query->phase == EW_PHASE_BACKWARD || macs >= PLANAR_SHARE * (x + y));
}

static bool is_small(const struct ew_cuda_window *g)
{
    const int64_t depth = (int64_t)g->kh * g->kw * (g->c / g->groups);
    return (int64_t)g->n * g->oh * g->ow * g->k * depth < SMALL_MACS && g->k <= 16 &&
           depth * g->k * (int64_t)sizeof(float) <= SMALL_BYTES;
}

/* ---- Forward ---- */

static struct ew_cuda_conv forward_of(const struct ew_call *c)
{
    const struct ew_conv_attr *a = c->attr;
    struct ew_cuda_conv p = {.type = ew_cuda_storage(c->in[X]),
                             .math = ew_cuda(c->be)->math,
                             .act = ew_cuda_act_of(&a->end),
                             .add_after = a->end.add_after,
                             .x = c->in[X]->data,
                             .w = ew_cuda_weight(c, W),
                             .bias = ew_cuda_data(ew_call_in(c, B)),
                             .typed_bias = ew_cuda_weight(c, B),
                             .residual = ew_cuda_data(ew_call_in(c, ADD)),
                             .y = c->out[0]->data,
                             .algo = -1};
    ew_cuda_conv_window(c, &p.g);
    return p;
}

static ew_err run_library(const struct ew_call *c)
{
    const struct ew_cuda_conv p = forward_of(c);
    EW_CUDA_LAUNCH(c, conv, &p);
    return EW_OK;
}

static ew_err run_planar(const struct ew_call *c)
{
    struct ew_cuda_conv p = forward_of(c);
    p.planar = 1;
    p.scratch = c->scratch;
    EW_CUDA_LAUNCH(c, conv, &p);
    return EW_OK;
}

static ew_err run_wide(const struct ew_call *c)
{
    struct ew_cuda_conv p = forward_of(c);
    p.scratch = c->scratch;
    EW_CUDA_LAUNCH(c, wide_conv, &p);
    return EW_OK;
}

static ew_err run_stem(const struct ew_call *c)
{
    const struct ew_cuda_conv p = forward_of(c);
    EW_CUDA_LAUNCH(c, stem, &p);
    return EW_OK;
}

static ew_err run_im2col(const struct ew_call *c)
{
    struct ew_cuda_conv p = forward_of(c);
    p.scratch = c->scratch;
    EW_CUDA_LAUNCH(c, im2col_conv, &p);
    return EW_OK;
}

static ew_err run_direct(const struct ew_call *c)
{
    const struct ew_cuda_conv p = forward_of(c);
    EW_CUDA_LAUNCH(c, direct, &p);
    return EW_OK;
}

static ew_err run_depthwise(const struct ew_call *c)
{
    const struct ew_cuda_conv p = forward_of(c);
    EW_CUDA_LAUNCH(c, depthwise, &p);
    return EW_OK;
}

/* y [pixels, k] = x [pixels, c] * w [k, c]', one GEMM. */
static ew_err run_pointwise(const struct ew_call *c)
{
    const struct ew_cuda_conv p = forward_of(c);
    const int64_t pixels = (int64_t)p.g.n * p.g.h * p.g.w;
    const bool late = p.residual && p.add_after;
    const struct ew_cuda_gemm g = {.type = p.type,
                                   .math = p.math,
                                   .trans_b = 1,
                                   .m = pixels,
                                   .n = p.g.k,
                                   .k = p.g.c,
                                   .alpha = 1,
                                   .act = p.act,
                                   .a = p.x,
                                   .b = p.w,
                                   .residual = late ? NULL : p.residual,
                                   .bias = p.bias,
                                   .typed_bias = p.typed_bias,
                                   .y = p.y};
    EW_CUDA_LAUNCH(c, gemm, &g);
    if (!late)
        return EW_OK;
    const struct ew_cuda_epilogue e = {
        .type = p.type, .rows = pixels, .cols = p.g.k, .residual = p.residual, .y = p.y};
    EW_CUDA_LAUNCH(c, epilogue, &e);
    return EW_OK;
}

/* ---- Backward ---- */

/* Scratch begins with the gradient before the activation, of this size; launchers get the rest. */
static size_t mask_bytes(const struct ew_call *c)
{
    const struct ew_conv_attr *a = c->attr;
    return a->end.act == EW_ACT_NONE ? 0 : ew_align_up(ew_tensor_bytes(c->out[0]));
}

static size_t back_scratch(const struct ew_call *c, const struct ew_cuda_window *g)
{
    const int64_t pixels = ew_cuda_out_pixels(g);
    const size_t bias = ew_cuda_reduce_scratch(1, pixels, g->k, 1);
    const size_t taps =
        is_depthwise(g) ? ew_cuda_reduce_scratch(1, pixels, g->c, g->kh * g->kw) : 0;
    const size_t filters = /* dw in a half type, before its conversion to float32 */
        ew_cuda_storage(c->in[X]) == EW_CUDA_F32 ? 0 : (size_t)ew_tensor_count(c->in[W]) * 2;
    const size_t sums = bias > taps ? bias : taps;
    return mask_bytes(c) + (sums > filters ? sums : filters);
}

/* Of one gradient by im2col. */
static size_t im2col_scratch(const struct ew_cuda_window *g)
{
    return ew_align_up(ew_cuda_im2col_scratch(g));
}

/* *dy = gradient before the activation: dy * act'(z).  The activation is a relu, whose derivative
 * follows from its output. */
static ew_err unmask(const struct ew_call *c, const void **dy)
{
    const struct ew_conv_attr *a = c->attr;
    *dy = c->dout[0]->data;
    if (a->end.act == EW_ACT_NONE)
        return EW_OK;
    const struct ew_cuda_act_back p = {.type = ew_cuda_storage(c->out[0]),
                                       .act = ew_cuda_act_of(&a->end),
                                       .by_output = 1,
                                       .n = ew_tensor_count(c->out[0]),
                                       .x = c->out[0]->data,
                                       .dy = c->dout[0]->data,
                                       .dx = c->scratch};
    EW_CUDA_LAUNCH(c, act_back, &p);
    *dy = c->scratch;
    return EW_OK;
}

static ew_err back_bias(const struct ew_call *c, const struct ew_cuda_window *g, const void *dy,
                        struct ew_cuda_queue *q)
{
    if (c->n_in <= B || !c->din[B])
        return EW_OK;
    const struct ew_cuda_reduce r = {.type = ew_cuda_storage(c->in[X]),
                                     .out_f32 = 1,
                                     .add = ew_cuda_adds(c, B),
                                     .outer = 1,
                                     .mid = ew_cuda_out_pixels(g),
                                     .inner = g->k,
                                     .scale = 1,
                                     .a = dy,
                                     .out = c->din[B]->data,
                                     .scratch = (void *)((char *)c->scratch + mask_bytes(c))};
    return ew_cuda_check(ew_cuda(c->be)->cu, ew_cuda(c->be)->cu->reduce(q, &r), "bias gradient");
}

typedef int launcher(struct ew_cuda_queue *q, const struct ew_cuda_conv_back *p);

/* Launchers of the gradients, and their scratch offsets behind the masked dy. */
struct back_launchers {
    launcher *dgrad, *wgrad;
    int planar;
    size_t dgrad_at, wgrad_at;
};

/* The gradients of weights and bias run on the side queue, concurrently with dgrad, which uses no
 * scratch of theirs unless it is planar. */
static ew_err run_back(const struct ew_call *c, const struct back_launchers *by)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    struct ew_cuda_queue *side = by->planar ? be->q : ew_cuda_side(c);
    char *scratch = (char *)c->scratch + mask_bytes(c);
    struct ew_cuda_conv_back p = {.type = ew_cuda_storage(c->in[X]),
                                  .math = be->math,
                                  .x = c->in[X]->data,
                                  .w = ew_cuda_weight(c, W),
                                  .scratch = (float *)(void *)(scratch + by->wgrad_at),
                                  .planar = by->planar,
                                  .algo = -1};
    ew_cuda_conv_window(c, &p.g);
    EW_TRY(unmask(c, &p.dy));
    EW_TRY(ew_cuda_fork(be, side));
    if (c->din[W]) {
        p.dw = c->din[W]->data;
        p.add = ew_cuda_adds(c, W);
        EW_TRY(ew_cuda_check(be->cu, by->wgrad(side, &p), "conv wgrad"));
        p.dw = NULL;
    }
    EW_TRY(back_bias(c, &p.g, p.dy, side));
    if (c->din[X]) {
        p.dx = c->din[X]->data;
        p.add = ew_cuda_adds(c, X);
        p.scratch = (float *)(void *)(scratch + by->dgrad_at);
        EW_TRY(ew_cuda_check(be->cu, by->dgrad(be->q, &p), "conv dgrad"));
    }
    return ew_cuda_join(be, side);
}

static ew_err back_library(const struct ew_call *c)
{
    const struct ew_cuda_api *cu = ew_cuda(c->be)->cu;
    return run_back(c, &(struct back_launchers){.dgrad = cu->conv_back, .wgrad = cu->conv_back});
}

static ew_err back_wide(const struct ew_call *c)
{
    const struct ew_cuda_api *cu = ew_cuda(c->be)->cu;
    return run_back(c, &(struct back_launchers){.dgrad = cu->conv_back, .wgrad = cu->wide_dw});
}

static ew_err back_planar(const struct ew_call *c)
{
    const struct ew_cuda_api *cu = ew_cuda(c->be)->cu;
    return run_back(
        c, &(struct back_launchers){.dgrad = cu->conv_back, .wgrad = cu->conv_back, .planar = 1});
}

static ew_err back_im2col(const struct ew_call *c)
{
    const struct ew_cuda_api *cu = ew_cuda(c->be)->cu;
    struct ew_cuda_window g;
    ew_cuda_conv_window(c, &g);
    const size_t sums = ew_align_up(back_scratch(c, &g) - mask_bytes(c));
    return run_back(c, &(struct back_launchers){.dgrad = cu->im2col_dx,
                                                .wgrad = cu->im2col_dw,
                                                .wgrad_at = sums,
                                                .dgrad_at = sums + im2col_scratch(&g)});
}

static ew_err back_direct(const struct ew_call *c)
{
    const struct ew_cuda_api *cu = ew_cuda(c->be)->cu;
    return run_back(c, &(struct back_launchers){.dgrad = cu->direct_dx, .wgrad = cu->direct_dw});
}

static ew_err back_depthwise(const struct ew_call *c)
{
    const struct ew_cuda_api *cu = ew_cuda(c->be)->cu;
    return run_back(c,
                    &(struct back_launchers){.dgrad = cu->depthwise_dx, .wgrad = cu->depthwise_dw});
}

/* dx = dy W, dW = dy' x. */
static ew_err back_pointwise(const struct ew_call *c)
{
    struct ew_cuda_window g;
    const void *dy;
    ew_cuda_conv_window(c, &g);
    const int64_t pixels = (int64_t)g.n * g.h * g.w;
    const struct ew_cuda *be = ew_cuda(c->be);
    struct ew_cuda_queue *side = ew_cuda_side(c);
    EW_TRY(unmask(c, &dy));
    EW_TRY(ew_cuda_fork(be, side));
    if (c->din[W]) {
        const struct ew_cuda_gemm p = {.type = ew_cuda_storage(c->in[X]),
                                       .math = ew_cuda(c->be)->math,
                                       .out_f32 = 1,
                                       .trans_a = 1,
                                       .m = g.k,
                                       .n = g.c,
                                       .k = pixels,
                                       .alpha = 1,
                                       .beta = ew_cuda_adds(c, W) ? 1 : 0,
                                       .a = dy,
                                       .b = c->in[X]->data,
                                       .y = c->din[W]->data};
        EW_TRY(ew_cuda_check(be->cu, be->cu->gemm(side, &p), "conv wgrad"));
    }
    EW_TRY(back_bias(c, &g, dy, side));
    if (c->din[X]) {
        const struct ew_cuda_gemm p = {.type = ew_cuda_storage(c->in[X]),
                                       .math = ew_cuda(c->be)->math,
                                       .m = pixels,
                                       .n = g.c,
                                       .k = g.k,
                                       .alpha = 1,
                                       .beta = ew_cuda_adds(c, X) ? 1 : 0,
                                       .a = dy,
                                       .b = ew_cuda_weight(c, W),
                                       .y = c->din[X]->data};
        EW_CUDA_LAUNCH(c, gemm, &p);
    }
    return ew_cuda_join(be, side);
}

static bool can_train(const struct ew_call *c)
{
    const struct ew_conv_attr *a = c->attr;
    return (a->end.act == EW_ACT_NONE || a->end.act == EW_ACT_RELU) && !ew_call_in(c, ADD);
}

/* Workspace of cuDNN's NCHW kernels; false: none for a pass. */
static bool planar_workspace(const struct ew_kernel_query *query, const struct ew_cuda_window *g,
                             size_t *bytes)
{
    const struct ew_cuda *be = ew_cuda(query->be);
    const struct ew_cuda_conv p = {.type = ew_cuda_storage(query->c->in[X]),
                                   .math = be->math,
                                   .g = *g,
                                   .planar = 1,
                                   .algo = -1};
    const bool back = query->phase == EW_PHASE_BACKWARD;
    const int last = back ? EW_CUDA_WGRAD : EW_CUDA_FORWARD;
    *bytes = 0;
    for (int pass = back ? EW_CUDA_DGRAD : EW_CUDA_FORWARD; pass <= last; pass++) {
        struct ew_cuda_algo found;
        int n = 1;
        if (be->cu->conv_find(be->q, pass, &p, 0, &found, &n) != 0 || n == 0)
            return false;
        *bytes = found.workspace > *bytes ? found.workspace : *bytes;
    }
    return true;
}

/* Convolution through NCHW copies; copies and workspace are in the call's scratch. */
static int offer_planar(const struct ew_kernel_query *query, const struct ew_cuda_window *g,
                        size_t scratch, struct ew_kernel *out)
{
    const bool back = query->phase == EW_PHASE_BACKWARD;
    size_t at[4], workspace;
    if (!planar_workspace(query, g, &workspace))
        return 0;
    const size_t copies = ew_cuda_planar_bytes(g, ew_cuda_storage(query->c->in[X]), at);
    const size_t need = copies + workspace + (back ? mask_bytes(query->c) : 0);
    return ew_cuda_one(out, "cudnn nchw", back ? back_planar : run_planar,
                       scratch > need ? scratch : need);
}

/* Too few channels for tensor cores, in a half type: a first layer, whose input needs no
 * gradient. */
static bool is_narrow(const struct ew_kernel_query *query, const struct ew_cuda_window *g)
{
    const struct ew_call *c = query->c;
    return ew_cuda_storage(c->in[X]) != EW_CUDA_F32 && g->c < EW_CUDA_WIDE && g->groups == 1 &&
           !(query->phase == EW_PHASE_BACKWARD && c->din && c->din[X]);
}

/* Our first-layer kernel (stem.cu) uses mma instructions for float16 from compute capability 7.5
 * on, for bfloat16 from 8.0 on. */
static bool has_stem(const struct ew_kernel_query *query, const struct ew_cuda_window *g)
{
    const struct ew_cuda *be = ew_cuda(query->be);
    const int least = be->type == EW_CUDA_F16 ? 75 : 80;
    return be->type != EW_CUDA_F32 && be->arch >= least && ew_cuda_is_stem(g) &&
           !ew_call_in(query->c, ADD);
}

/* Output pixels from which stem.cu is faster than cuDNN.  Its blocks load the filters once, and a
 * single image has too few tiles to amortise that (H200, resnet18: 0.19 instead of 0.17 ms). */
static int64_t stem_pixels(const struct ew_kernel_query *query)
{
    return (int64_t)512 * ew_cuda(query->be)->q->processors;
}

/* Convolution with channels zero-padded to EW_CUDA_WIDE. */
static int offer_wide(const struct ew_kernel_query *query, const struct ew_cuda_window *g,
                      size_t scratch, struct ew_kernel *out)
{
    const bool back = query->phase == EW_PHASE_BACKWARD;
    size_t at[3];
    const size_t all = ew_cuda_wide_bytes(g, at), need = back ? all + mask_bytes(query->c) : at[1];
    return ew_cuda_one(out, "cudnn wide", back ? back_wide : run_wide,
                       scratch > need ? scratch : need);
}

/* True if im2col applies: an image's rows are within the limit, and dgrad's need no padded
 * pitch. */
static bool unrolls(const struct ew_kernel_query *query, const struct ew_cuda_window *g)
{
    const struct ew_call *c = query->c;
    const bool dx = query->phase == EW_PHASE_BACKWARD && c->din && c->din[X];
    const int pitch = ew_cuda_im2col_pitch(g);
    return ew_cuda_storage(c->in[X]) == EW_CUDA_F32 && g->groups == 1 && !is_pointwise(g) &&
           (!dx || pitch == g->kh * g->kw * g->c) &&
           (size_t)g->oh * (size_t)g->ow * (size_t)pitch * sizeof(float) <= EW_CUDA_IM2COL_BYTES;
}

/* Where im2col + GEMM is faster than cuDNN on an H200: in full float32 small feature maps, strided
 * convolutions and small batches; with tensor cores gradients of small feature maps. */
static bool unrolls_first(const struct ew_kernel_query *query, const struct ew_cuda_window *g)
{
    const bool back = query->phase == EW_PHASE_BACKWARD;
    const int64_t macs = (int64_t)g->n * g->oh * g->ow * g->k * g->kh * g->kw * g->c;
    if (macs < PLANAR_MACS)
        return back || ew_cuda(query->be)->math == EW_CUDA_MATH_FP32;
    if (ew_cuda(query->be)->math != EW_CUDA_MATH_FP32)
        return false;
    const bool strided = g->sh > 1 || g->sw > 1;
    return strided ? back || g->c >= UNROLLED_CHANNELS : !back && g->n < UNROLLED_IMAGES;
}

static int offer_im2col(const struct ew_kernel_query *query, const struct ew_cuda_window *g,
                        size_t scratch, struct ew_kernel *out)
{
    const bool back = query->phase == EW_PHASE_BACKWARD;
    const size_t one = im2col_scratch(g);
    return ew_cuda_one(out, "im2col gemm", back ? back_im2col : run_im2col,
                       back ? ew_align_up(scratch) + 2 * one : one);
}

int ew_cuda_offer_conv(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    struct ew_cuda_window g;
    int n = 0;
    if (ew_cuda_query_type(query, 1 << W | 1 << B, 0) < 0 || !ew_cuda_conv_window(c, &g) ||
        (back && !can_train(c)))
        return 0;
    const size_t scratch = back ? back_scratch(c, &g) : 0;
    if (g.od) {
        n = is_even(&g) ? offer_planar(query, &g, scratch, out) : 0;
        if (n && !back)
            ew_cuda_pack_weights(c, out);
        return n;
    }
    const bool taps = g.kh == g.kw && (g.kh == 3 || g.kh == 5);
    if (is_depthwise(&g) && (!back || taps))
        n += ew_cuda_one(out + n, "depthwise", back ? back_depthwise : run_depthwise, scratch);
    if (is_pointwise(&g))
        n += ew_cuda_one(out + n, "conv 1x1 gemm", back ? back_pointwise : run_pointwise, scratch);
    if (is_small(&g))
        n += ew_cuda_one(out + n, "conv direct", back ? back_direct : run_direct, scratch);
    const bool stem = !back && has_stem(query, &g),
               many = stem && (int64_t)g.n * g.oh * g.ow >= stem_pixels(query);
    if (many)
        n += ew_cuda_one(out + n, "conv stem", run_stem, scratch);
    const bool unrolled = unrolls(query, &g), first = unrolled && unrolls_first(query, &g);
    if (first)
        n += offer_im2col(query, &g, scratch, out + n);
    if (is_even(&g) && is_planar(query, &g))
        n += offer_planar(query, &g, scratch, out + n);
    if (is_even(&g) && is_narrow(query, &g))
        n += offer_wide(query, &g, scratch, out + n);
    if (is_even(&g))
        n += ew_cuda_one(out + n, "cudnn", back ? back_library : run_library, scratch);
    if (stem && !many && n < EW_OFFERS)
        n += ew_cuda_one(out + n, "conv stem", run_stem, scratch);
    if (unrolled && !first && n < EW_OFFERS)
        n += offer_im2col(query, &g, scratch, out + n);
    if (n == 0)
        n += ew_cuda_one(out + n, "conv direct", back ? back_direct : run_direct, scratch);
    for (int i = 0; i < n; i++)
        if (back)
            out[i].prepare = ew_cuda_open_side;
        else
            ew_cuda_pack_weights(c, &out[i]);
    return n;
}
