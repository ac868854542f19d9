/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit dense layers: 1x1 convolutions with rows as batch. */
#include "backend/cpu/step/int8_step.h"
#include "graph/ops.h"

static const struct ew_qlayer_slots slots = {.x = EW_QGEMM_A,
                                             .x_scale = EW_QGEMM_A_SCALE,
                                             .x_zero = EW_QGEMM_A_ZERO,
                                             .w = EW_QGEMM_B,
                                             .w_scale = EW_QGEMM_B_SCALE,
                                             .w_zero = EW_QGEMM_B_ZERO,
                                             .y_scale = EW_QGEMM_Y_SCALE,
                                             .y_zero = EW_QGEMM_Y_ZERO,
                                             .bias = EW_QGEMM_BIAS,
                                             .add = -1,
                                             .add_scale = -1,
                                             .add_zero = -1,
                                             .sum_scale = -1,
                                             .sum_zero = -1,
                                             .table = -1};

/* qlinear_matmul: inputs in the order of qlinear_conv, no bias. */
static const struct ew_qlayer_slots matmul_slots = {.x = EW_QCONV_X,
                                                    .x_scale = EW_QCONV_X_SCALE,
                                                    .x_zero = EW_QCONV_X_ZERO,
                                                    .w = EW_QCONV_W,
                                                    .w_scale = EW_QCONV_W_SCALE,
                                                    .w_zero = EW_QCONV_W_ZERO,
                                                    .y_scale = EW_QCONV_Y_SCALE,
                                                    .y_zero = EW_QCONV_Y_ZERO,
                                                    .bias = -1,
                                                    .add = -1,
                                                    .add_scale = -1,
                                                    .add_zero = -1,
                                                    .sum_scale = -1,
                                                    .sum_zero = -1,
                                                    .table = -1};

/* False unless it is the product of rows and one matrix. */
static bool layer_of(const struct ew_call *c, struct ew_qlayer *out)
{
    const bool gemm = c->op == &ew_op_qlinear_gemm;
    const struct ew_qgemm_attr *a = c->attr;
    *out = (struct ew_qlayer){.slots = gemm ? &slots : &matmul_slots, .clamp = {-128, 255}};
    const struct ew_shape *x = &c->in[out->slots->x]->shape, *w = &c->in[out->slots->w]->shape;
    if (x->rank < 2 || w->rank != 2 || ew_tensor_count(c->in[out->slots->x]) >= INT32_MAX ||
        ew_tensor_count(c->in[out->slots->x_scale]) != 1 ||
        (c->in[out->slots->x_zero] && ew_tensor_count(c->in[out->slots->x_zero]) != 1))
        return false;
    out->by_row = !gemm || !a->trans_b;
    if (gemm)
        out->clamp = a->clamp;
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
