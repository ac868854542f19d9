/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit dense layers: 1x1 convolutions with rows as batch. */
#include "backend/cpu/step/int8_step.h"
#include "graph/ops.h"

/* False unless it is the product of rows and one matrix. */
static bool layer_of(const struct ew_call *c, struct ew_qlayer *out)
{
    const bool gemm = c->op == &ew_op_qlinear_gemm;
    const struct ew_qgemm_attr *a = c->attr;
    *out = gemm ? (struct ew_qlayer){EW_QGEMM_Y_SCALE, EW_QGEMM_Y_ZERO, EW_QGEMM_BIAS}
                : (struct ew_qlayer){EW_QCONV_Y_SCALE, EW_QCONV_Y_ZERO, EW_QCONV_BIAS};
    const struct ew_shape *x = &c->in[EW_QCONV_X]->shape, *w = &c->in[EW_QCONV_W]->shape;
    if (x->rank < 2 || w->rank != 2 || ew_tensor_count(c->in[EW_QCONV_X]) >= INT32_MAX ||
        ew_tensor_count(c->in[EW_QCONV_X_SCALE]) != 1 ||
        (c->in[EW_QCONV_X_ZERO] && ew_tensor_count(c->in[EW_QCONV_X_ZERO]) != 1))
        return false;
    out->by_row = !gemm || !a->trans_b;
    out->clamp = gemm ? a->clamp : (struct ew_quant_clamp){-128, 255};
    const struct ew_conv_axis one = {.in = 1, .out = 1, .taps = 1, .stride = 1, .dilation = 1};
    out->shape = (struct ew_conv_shape){.batch = (int32_t)ew_shape_span(x, 0, x->rank - 1),
                                        .groups = 1,
                                        .cin = (int32_t)x->dim[x->rank - 1],
                                        .cout = (int32_t)w->dim[out->by_row],
                                        .axis = {one, one, one}};
    return true;
}

static ew_err prepare(const struct ew_call *c)
{
    struct ew_qlayer l;
    EW_CHECK(layer_of(c, &l), EW_ERR_INTERNAL, "%s: its matrices have changed", c->name);
    return ew_qlayer_prepare(c, &l, EW_QLAYER_GEMM);
}

static ew_err pack(const struct ew_call *c)
{
    struct ew_qlayer l;
    EW_CHECK(layer_of(c, &l), EW_ERR_INTERNAL, "%s: its matrices have changed", c->name);
    return ew_qlayer_pack(c, &l);
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_qlayer l;
    if (query->phase != EW_PHASE_FORWARD || !layer_of(query->c, &l) ||
        !ew_qlayer_fits(query->c, &l))
        return 0;
    out[0] = ew_qlayer_kernel(query->c, &l, EW_QLAYER_GEMM);
    out[0].prepare = prepare;
    out[0].pack = pack;
    return 1;
}

const struct ew_kernel_family ew_offer_int8_dense = {
    .ops = EW_FAMILY_OPS(&ew_op_qlinear_gemm, &ew_op_qlinear_matmul), .offer = offer};
