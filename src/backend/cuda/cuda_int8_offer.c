/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit operators on CUDA devices, bit-identical to all other backends (op/quant.h).  Kernels read
 * scales and zero points from device memory. */
#include "backend/cuda/cuda_backend.h"
#include "graph/ops.h"
#include "op/qlinear.h"

static bool is_byte(const struct ew_tensor *t)
{
    return t && (t->dtype == EW_U8 || t->dtype == EW_S8);
}

/* True if scale is a float32 scalar, and the zero point a scalar or absent. */
static bool is_plain(const struct ew_call *c, int scale, int zero)
{
    const struct ew_tensor *s = ew_call_in(c, scale), *z = ew_call_in(c, zero);
    return s && s->dtype == EW_F32 && ew_tensor_count(s) == 1 &&
           (!z || (is_byte(z) && ew_tensor_count(z) == 1));
}

/* A tensor's quantisation; `type`: a tensor with its element type, if there is no zero point to
 * tell it. */
static struct ew_cuda_quant quant_of(const struct ew_call *c, int scale, int zero,
                                     const struct ew_tensor *type)
{
    const struct ew_tensor *z = ew_call_in(c, zero);
    const struct ew_tensor *t = z ? z : type;
    return (struct ew_cuda_quant){.scale = ew_cuda_data(ew_call_in(c, scale)),
                                  .zero = ew_cuda_data(z),
                                  .is_signed = t && t->dtype == EW_S8};
}

/* Weights must be int8 with zero point 0.  Offers know their zero points, which are constants in
 * host memory. */
static bool weights_fit(const struct ew_call *c, int w, int w_scale, int w_zero, int64_t filters)
{
    const struct ew_tensor *t = ew_call_in(c, w), *s = ew_call_in(c, w_scale);
    const struct ew_tensor *z = ew_call_in(c, w_zero);
    if (!t || !t->data || t->dtype != EW_S8 || !s || s->dtype != EW_F32 ||
        (ew_tensor_count(s) != 1 && ew_tensor_count(s) != filters) || (z && !z->data))
        return false;
    for (int64_t i = 0; z && i < ew_tensor_count(z); i++)
        if (ew_tensor_get_int(z, i) != 0)
            return false;
    return true;
}

/* ---- Convolutions ---- */

static bool window_of(const struct ew_call *c, struct ew_cuda_window *g)
{
    struct ew_int_conv v;
    if (ew_qconv_resolve(c, &v) != EW_OK || !ew_cuda_flatten(&v.s.w))
        return false;
    const struct ew_window *w = &v.s.w;
    *g = (struct ew_cuda_window){.n = (int)w->batch,
                                 .h = (int)w->in[1],
                                 .w = (int)w->in[2],
                                 .c = (int)w->channels,
                                 .oh = (int)w->out[1],
                                 .ow = (int)w->out[2],
                                 .k = (int)v.s.filters,
                                 .kh = (int)w->kernel[1],
                                 .kw = (int)w->kernel[2],
                                 .sh = (int)w->stride[1],
                                 .sw = (int)w->stride[2],
                                 .ph = (int)w->pad[1],
                                 .pw = (int)w->pad[2],
                                 .dh = (int)w->dilation[1],
                                 .dw = (int)w->dilation[2],
                                 .groups = (int)v.s.groups};
    return ew_tensor_count(c->in[EW_QCONV_X]) < INT32_MAX && v.s.groups < 65536;
}

static ew_err pack_conv(const struct ew_call *c)
{
    struct ew_cuda_qpack p = {
        .w = c->in[EW_QCONV_W]->data,
        .bias = ew_cuda_data(ew_call_in(c, EW_QCONV_BIAS)),
        .w_scale = c->in[EW_QCONV_W_SCALE]->data,
        .n_scales = (int)ew_tensor_count(c->in[EW_QCONV_W_SCALE]),
        .x = quant_of(c, EW_QCONV_X_SCALE, EW_QCONV_X_ZERO, c->in[EW_QCONV_X]),
        .y = quant_of(c, EW_QCONV_Y_SCALE, EW_QCONV_Y_ZERO, NULL),
        .add = quant_of(c, EW_QCONV_ADD_SCALE, EW_QCONV_ADD_ZERO, ew_call_in(c, EW_QCONV_ADD)),
        .sum = quant_of(c, EW_QCONV_SUM_SCALE, EW_QCONV_SUM_ZERO, NULL),
        .packed = c->packed};
    window_of(c, &p.g);
    EW_CUDA_LAUNCH(c, qpack, &p);
    return EW_OK;
}

static bool is_signed(const struct ew_call *c, int slot)
{
    const struct ew_tensor *t = ew_call_in(c, slot);
    return t && t->dtype == EW_S8;
}

static ew_err run_conv(const struct ew_call *c)
{
    const struct ew_qconv_attr *a = c->attr;
    struct ew_cuda_qconv p = {.x_signed = is_signed(c, EW_QCONV_X),
                              .y_signed = is_signed(c, EW_QCONV_Y_ZERO),
                              .add_signed = is_signed(c, EW_QCONV_ADD),
                              .sum_signed = is_signed(c, EW_QCONV_SUM_ZERO),
                              .to_float = !ew_call_in(c, EW_QCONV_Y_SCALE),
                              .lo = (int)a->clamp.lo,
                              .hi = (int)a->clamp.hi,
                              .x = c->in[EW_QCONV_X]->data,
                              .add = ew_cuda_data(ew_call_in(c, EW_QCONV_ADD)),
                              .table = ew_cuda_data(ew_call_in(c, EW_QCONV_TABLE)),
                              .packed = c->packed,
                              .y = c->out[0]->data};
    window_of(c, &p.g);
    EW_CUDA_LAUNCH(c, qconv, &p);
    return EW_OK;
}

static int offer_packed(struct ew_kernel *out, const char *name,
                        ew_err (*run)(const struct ew_call *),
                        ew_err (*pack)(const struct ew_call *), const struct ew_cuda_window *g)
{
    const int n = ew_cuda_one(out, name, run, 0);
    out->packed = ew_cuda_qpacked_bytes(g);
    out->pack = pack;
    return n;
}

int ew_cuda_offer_qconv(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct ew_cuda_window g;
    const bool add = ew_call_in(c, EW_QCONV_ADD);
    if (query->phase != EW_PHASE_FORWARD || !window_of(c, &g) || !is_byte(c->in[EW_QCONV_X]) ||
        !weights_fit(c, EW_QCONV_W, EW_QCONV_W_SCALE, EW_QCONV_W_ZERO, g.k) ||
        !is_plain(c, EW_QCONV_X_SCALE, EW_QCONV_X_ZERO) ||
        (ew_call_in(c, EW_QCONV_Y_SCALE) ? !is_plain(c, EW_QCONV_Y_SCALE, EW_QCONV_Y_ZERO)
                                         : c->out[0]->dtype != EW_F32) ||
        (add && (!is_plain(c, EW_QCONV_ADD_SCALE, EW_QCONV_ADD_ZERO) ||
                 !is_plain(c, EW_QCONV_SUM_SCALE, EW_QCONV_SUM_ZERO))))
        return 0;
    return offer_packed(out, ew_cuda_is_depthwise(&g) ? "int8 depthwise" : "int8 gemm", run_conv,
                        pack_conv, &g);
}

/* ---- Dense layers: 1x1 convolutions ---- */

static struct ew_cuda_window dense_of(const struct ew_call *c)
{
    const struct ew_shape *a = &c->in[EW_QGEMM_A]->shape, *y = &c->out[0]->shape;
    return (struct ew_cuda_window){.n = (int)a->dim[0],
                                   .h = 1,
                                   .w = 1,
                                   .c = (int)a->dim[1],
                                   .oh = 1,
                                   .ow = 1,
                                   .k = (int)y->dim[1],
                                   .kh = 1,
                                   .kw = 1,
                                   .sh = 1,
                                   .sw = 1,
                                   .dh = 1,
                                   .dw = 1,
                                   .groups = 1};
}

static ew_err pack_gemm(const struct ew_call *c)
{
    const struct ew_qgemm_attr *a = c->attr;
    const struct ew_cuda_qpack p = {
        .g = dense_of(c),
        .transposed = !a->trans_b,
        .w = c->in[EW_QGEMM_B]->data,
        .bias = ew_cuda_data(ew_call_in(c, EW_QGEMM_BIAS)),
        .w_scale = c->in[EW_QGEMM_B_SCALE]->data,
        .n_scales = (int)ew_tensor_count(c->in[EW_QGEMM_B_SCALE]),
        .x = quant_of(c, EW_QGEMM_A_SCALE, EW_QGEMM_A_ZERO, c->in[EW_QGEMM_A]),
        .y = quant_of(c, EW_QGEMM_Y_SCALE, EW_QGEMM_Y_ZERO, NULL),
        .packed = c->packed};
    EW_CUDA_LAUNCH(c, qpack, &p);
    return EW_OK;
}

static ew_err run_gemm(const struct ew_call *c)
{
    const struct ew_qgemm_attr *a = c->attr;
    const struct ew_cuda_qconv p = {.g = dense_of(c),
                                    .x_signed = is_signed(c, EW_QGEMM_A),
                                    .y_signed = c->out[0]->dtype == EW_S8,
                                    .to_float = !ew_call_in(c, EW_QGEMM_Y_SCALE),
                                    .lo = (int)a->clamp.lo,
                                    .hi = (int)a->clamp.hi,
                                    .x = c->in[EW_QGEMM_A]->data,
                                    .packed = c->packed,
                                    .y = c->out[0]->data};
    EW_CUDA_LAUNCH(c, qconv, &p);
    return EW_OK;
}

int ew_cuda_offer_qgemm(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const struct ew_tensor *bias = ew_call_in(c, EW_QGEMM_BIAS);
    if (query->phase != EW_PHASE_FORWARD || ew_tensor_count(c->out[0]) == 0 ||
        ew_tensor_count(c->in[EW_QGEMM_A]) == 0 || !is_byte(c->in[EW_QGEMM_A]))
        return 0;
    const struct ew_cuda_window g = dense_of(c);
    if (!weights_fit(c, EW_QGEMM_B, EW_QGEMM_B_SCALE, EW_QGEMM_B_ZERO, g.k) ||
        (bias && (bias->dtype != EW_S32 || ew_tensor_count(bias) != g.k)) ||
        !is_plain(c, EW_QGEMM_A_SCALE, EW_QGEMM_A_ZERO) ||
        (ew_call_in(c, EW_QGEMM_Y_SCALE) ? !is_plain(c, EW_QGEMM_Y_SCALE, EW_QGEMM_Y_ZERO)
                                         : c->out[0]->dtype != EW_F32))
        return 0;
    return offer_packed(out, "int8 gemm", run_gemm, pack_gemm, &g);
}

/* ---- Element-wise sums and products ---- */

static ew_err run_binary(const struct ew_call *c)
{
    const struct ew_qbinary_attr *attr = c->attr;
    const struct ew_tensor *a = c->in[EW_QBINARY_A], *b = c->in[EW_QBINARY_B];
    struct ew_cuda_pair s;
    ew_cuda_pair_of(&a->shape, &b->shape, &c->out[0]->shape, &s);
    struct ew_cuda_qbinary p = {.multiply = c->op == &ew_op_qlinear_mul,
                                .a = quant_of(c, EW_QBINARY_A_SCALE, EW_QBINARY_A_ZERO, a),
                                .b = quant_of(c, EW_QBINARY_B_SCALE, EW_QBINARY_B_ZERO, b),
                                .y = quant_of(c, EW_QBINARY_Y_SCALE, EW_QBINARY_Y_ZERO, c->out[0]),
                                .lo = (int)attr->clamp.lo,
                                .hi = (int)attr->clamp.hi,
                                .x_a = a->data,
                                .x_b = b->data,
                                .out = c->out[0]->data};
    for (int d = 0; d < EW_CUDA_DIMS; d++) {
        p.dim[d] = s.dim[d];
        p.a_stride[d] = s.stride[0][d];
        p.b_stride[d] = s.stride[1][d];
    }
    EW_CUDA_LAUNCH(c, qbinary, &p);
    return EW_OK;
}

int ew_cuda_offer_qbinary(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct ew_cuda_pair s;
    if (query->phase != EW_PHASE_FORWARD || ew_tensor_count(c->out[0]) == 0 ||
        !is_plain(c, EW_QBINARY_A_SCALE, EW_QBINARY_A_ZERO) ||
        !is_plain(c, EW_QBINARY_B_SCALE, EW_QBINARY_B_ZERO) ||
        !is_plain(c, EW_QBINARY_Y_SCALE, EW_QBINARY_Y_ZERO) ||
        !ew_cuda_pair_of(&c->in[EW_QBINARY_A]->shape, &c->in[EW_QBINARY_B]->shape,
                         &c->out[0]->shape, &s))
        return 0;
    return ew_cuda_one(out, "int8 element-wise", run_binary, 0);
}

/* ---- Pools ---- */

static bool is_max(const struct ew_call *c)
{
    return c->op == &ew_op_max_pool;
}

static bool is_global(const struct ew_call *c)
{
    return c->op == &ew_op_qlinear_global_average_pool;
}

static bool pool_window(const struct ew_call *c, struct ew_window *w)
{
    return (is_global(c) ? ew_global_resolve(c, w) : ew_pool_resolve(c, w)) == EW_OK &&
           ew_cuda_flatten(w);
}

static ew_err run_pool(const struct ew_call *c)
{
    struct ew_window w;
    EW_CHECK(pool_window(c, &w), EW_ERR_INTERNAL, "%s: is no pool of images", c->name);
    const struct ew_pool_attr *a = is_max(c) || is_global(c) ? NULL : c->attr;
    struct ew_cuda_qpool p = {.mean = !is_max(c),
                              .count_pad = a && a->count_include_pad,
                              .pad_end_h = (int)w.pad_end[1],
                              .pad_end_w = (int)w.pad_end[2],
                              .g = {.n = (int)w.batch,
                                    .h = (int)w.in[1],
                                    .w = (int)w.in[2],
                                    .c = (int)w.channels,
                                    .oh = (int)w.out[1],
                                    .ow = (int)w.out[2],
                                    .k = (int)w.channels,
                                    .kh = (int)w.kernel[1],
                                    .kw = (int)w.kernel[2],
                                    .sh = (int)w.stride[1],
                                    .sw = (int)w.stride[2],
                                    .ph = (int)w.pad[1],
                                    .pw = (int)w.pad[2],
                                    .dh = (int)w.dilation[1],
                                    .dw = (int)w.dilation[2],
                                    .groups = 1},
                              .x = {.is_signed = c->in[0]->dtype == EW_S8},
                              .from = c->in[0]->data,
                              .to = c->out[0]->data};
    if (p.mean) {
        p.x = quant_of(c, EW_QPOOL_X_SCALE, EW_QPOOL_X_ZERO, c->in[EW_QPOOL_X]);
        p.y = quant_of(c, EW_QPOOL_Y_SCALE, EW_QPOOL_Y_ZERO, c->out[0]);
    }
    EW_CUDA_LAUNCH(c, qpool, &p);
    return EW_OK;
}

int ew_cuda_offer_qpool(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct ew_window w;
    if (query->phase != EW_PHASE_FORWARD || !is_byte(c->in[0]) || c->train || ew_call_out(c, 1) ||
        ew_tensor_count(c->in[0]) == 0 || !pool_window(c, &w))
        return 0;
    if (!is_max(c) && (!is_plain(c, EW_QPOOL_X_SCALE, EW_QPOOL_X_ZERO) ||
                       !is_plain(c, EW_QPOOL_Y_SCALE, EW_QPOOL_Y_ZERO)))
        return 0;
    return ew_cuda_one(out, "int8 pool", run_pool, 0);
}

/* ---- Quantise and dequantise ---- */

enum { X, SCALE, ZERO };

static ew_err run_quantize(const struct ew_call *c)
{
    const bool back = c->op == &ew_op_dequantize_linear;
    const struct ew_tensor *bytes = back ? c->in[X] : c->out[0];
    const struct ew_cuda_quantize p = {.type = ew_cuda_storage(back ? c->out[0] : c->in[X]),
                                       .back = back,
                                       .n = ew_tensor_count(c->in[X]),
                                       .q = quant_of(c, SCALE, ZERO, bytes),
                                       .x = c->in[X]->data,
                                       .y = c->out[0]->data};
    EW_CUDA_LAUNCH(c, quantize, &p);
    return EW_OK;
}

/* Per-tensor scale only. */
int ew_cuda_offer_quantize(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->op == &ew_op_dequantize_linear;
    const struct ew_tensor *bytes = back ? c->in[X] : c->out[0],
                           *floats = back ? c->out[0] : c->in[X];
    const enum ew_dtype storage = ew_backend_info(query->be)->storage;
    if (query->phase != EW_PHASE_FORWARD || !is_byte(bytes) || ew_tensor_count(c->in[X]) == 0 ||
        (floats->dtype != EW_F32 && floats->dtype != storage) || !is_plain(c, SCALE, ZERO))
        return 0;
    return ew_cuda_one(out, back ? "dequantize" : "quantize", run_quantize, 0);
}

static ew_err run_lookup(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    return ew_cuda_check(be->cu,
                         be->cu->lookup(be->q, c->in[EW_LOOKUP_X]->data,
                                        c->in[EW_LOOKUP_TABLE]->data, c->out[0]->data,
                                        ew_tensor_count(c->out[0])),
                         "lookup");
}

int ew_cuda_offer_lookup(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    return query->phase == EW_PHASE_FORWARD && ew_tensor_count(c->out[0]) > 0
               ? ew_cuda_one(out, "lookup", run_lookup, 0)
               : 0;
}
