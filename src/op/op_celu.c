/* SPDX-License-Identifier: Apache-2.0 */
/* Celu: x, or alpha (exp(x / alpha) - 1) below 0. */
#include "op/math_attr.h"
#include "op/pointwise.h"

static const struct ew_field attrs[] = {
    EW_SCALE_FIELD("alpha", alpha, "1", "limit far below 0, not 0"),
    EW_FIELD_END,
};

static double f(double x, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return x > 0 ? x : a->alpha * expm1(x / a->alpha);
}

static double df(double x, double y, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return y > 0 ? 1 : y / a->alpha + 1;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 4 * ew_tensor_count(c->out[0]);
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5", EW_F32, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "long", .in = {{"300", EW_F32, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "300"},
    {.name = "half", .in = {{"7", EW_F16, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "7"},
    {.name = "alpha",
     .attrs = "alpha=2",
     .in = {{"9", EW_F32, EW_FILL_AWAY}},
     .n_in = 1,
     .out_shape = "9"},
};

const struct ew_op ew_op_celu = {
    .name = "celu",
    .help = "x, or alpha (exp(x / alpha) - 1) below 0",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_OUT,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_scale_attr),
    .attrs = attrs,
    .infer = ew_unary_infer_float,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Celu", .since = 12},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
