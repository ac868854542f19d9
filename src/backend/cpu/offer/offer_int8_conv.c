/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit convolutions. */
#include "backend/cpu/step/conv_pass.h"
#include "backend/cpu/step/int8_step.h"

static const struct ew_qlayer_slots slots = {.x = EW_QCONV_X,
                                             .x_scale = EW_QCONV_X_SCALE,
                                             .x_zero = EW_QCONV_X_ZERO,
                                             .w = EW_QCONV_W,
                                             .w_scale = EW_QCONV_W_SCALE,
                                             .w_zero = EW_QCONV_W_ZERO,
                                             .y_scale = EW_QCONV_Y_SCALE,
                                             .y_zero = EW_QCONV_Y_ZERO,
                                             .bias = EW_QCONV_BIAS,
                                             .add = EW_QCONV_ADD,
                                             .add_scale = EW_QCONV_ADD_SCALE,
                                             .add_zero = EW_QCONV_ADD_ZERO,
                                             .sum_scale = EW_QCONV_SUM_SCALE,
                                             .sum_zero = EW_QCONV_SUM_ZERO,
                                             .table = EW_QCONV_TABLE};

static ew_err layer_of(const struct ew_call *c, struct ew_qlayer *out)
{
    struct ew_int_conv v;
    EW_TRY(ew_qconv_resolve(c, &v));
    *out = (struct ew_qlayer){.slots = &slots,
                              .clamp = ((const struct ew_qconv_attr *)c->attr)->clamp};
    ew_conv_shape_of(&v.s, &out->shape);
    return EW_OK;
}

static ew_err prepare(const struct ew_call *c, enum ew_qlayer_method m)
{
    struct ew_qlayer l;
    EW_TRY(layer_of(c, &l));
    return ew_qlayer_prepare(c, &l, m);
}

static ew_err prepare_gemm(const struct ew_call *c)
{
    return prepare(c, EW_QLAYER_GEMM);
}

static ew_err prepare_depth(const struct ew_call *c)
{
    return prepare(c, EW_QLAYER_DEPTHWISE);
}

static ew_err prepare_column(const struct ew_call *c)
{
    return prepare(c, EW_QLAYER_DEPTHWISE_COLUMN);
}

static ew_err prepare_group(const struct ew_call *c)
{
    return prepare(c, EW_QLAYER_GROUPED);
}

static ew_err prepare_wino(const struct ew_call *c)
{
    return prepare(c, EW_QLAYER_WINOGRAD);
}

static ew_err pack(const struct ew_call *c)
{
    struct ew_qlayer l;
    EW_TRY(layer_of(c, &l));
    return ew_qlayer_pack(c, &l);
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    static ew_err (*const prepares[])(const struct ew_call *) = {
        [EW_QLAYER_GEMM] = prepare_gemm,
        [EW_QLAYER_DEPTHWISE] = prepare_depth,
        [EW_QLAYER_DEPTHWISE_COLUMN] = prepare_column,
        [EW_QLAYER_GROUPED] = prepare_group,
        [EW_QLAYER_WINOGRAD] = prepare_wino,
    };
    struct ew_qlayer l;
    enum ew_qlayer_method methods[EW_QLAYER_METHODS];
    if (query->phase != EW_PHASE_FORWARD || layer_of(query->c, &l) != EW_OK ||
        !ew_qlayer_fits(query->c, &l))
        return 0;
    const int n = ew_qlayer_methods(query->c, &l, methods);
    for (int i = 0; i < n; i++) {
        out[i] = ew_qlayer_kernel(query->c, &l, methods[i]);
        out[i].prepare = prepares[methods[i]];
        out[i].pack = pack;
    }
    return n;
}

const struct ew_kernel_family ew_offer_int8_conv = {.ops = EW_FAMILY_OPS("qlinear_conv"),
                                                    .offer = offer};
