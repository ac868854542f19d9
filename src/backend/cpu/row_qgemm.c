/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit dense layers: a convolution of one tap with the rows as its batch. */
#include "backend/cpu/qconv_step.h"

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

static void layer_of(const struct ew_call *c, struct ew_qlayer *out)
{
    const struct ew_qgemm_attr *a = c->attr;
    const struct ew_conv_axis one = {.in = 1, .out = 1, .taps = 1, .stride = 1, .dilation = 1};
    *out = (struct ew_qlayer){.slots = &slots,
                              .shape = {.batch = (int32_t)c->in[EW_QGEMM_A]->shape.dim[0],
                                        .groups = 1,
                                        .cin = (int32_t)c->in[EW_QGEMM_A]->shape.dim[1],
                                        .cout = (int32_t)c->in[EW_QGEMM_B]->shape.dim[!a->trans_b],
                                        .axis = {one, one, one}},
                              .clamp = a->clamp,
                              .by_row = !a->trans_b};
}

static ew_err prepare(const struct ew_call *c)
{
    struct ew_qlayer l;
    layer_of(c, &l);
    return ew_qlayer_prepare(c, &l, EW_QLAYER_GEMM);
}

static ew_err pack(const struct ew_call *c)
{
    struct ew_qlayer l;
    layer_of(c, &l);
    return ew_qlayer_pack(c, &l);
}

static int offer(const struct ew_ask *ask, struct ew_kernel *out)
{
    struct ew_qlayer l;
    layer_of(ask->c, &l);
    if (ask->phase != EW_PHASE_FORWARD || !ew_qlayer_fits(ask->c, &l))
        return 0;
    out[0] = ew_qlayer_kernel(ask->c, &l, EW_QLAYER_GEMM);
    out[0].prepare = prepare;
    out[0].pack = pack;
    return 1;
}

const struct ew_row ew_row_qgemm = {.ops = EW_ROW_OPS("qlinear_gemm"), .offer = offer};
