/* SPDX-License-Identifier: Apache-2.0 */
/* Selu: gamma times x, or alpha (exp(x) - 1) below 0. */
#include "op/math_attr.h"
#include "op/pointwise.h"

static const struct ew_field attrs[] = {
    EW_SCALE_FIELD("alpha", alpha, "1.67326319217681884765625", "limit far below 0"),
    EW_SCALE_FIELD("gamma", beta, "1.05070102214813232421875", "scale"),
    EW_FIELD_END,
};

static double f(double x, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return a->beta * (x > 0 ? x : a->alpha * expm1(x));
}

static double df(double x, double y, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return y > 0 ? a->beta : y + a->alpha * a->beta;
}

EW_UNARY_FORWARD(f)

/* The sign of y is that of x only where the function rises. */
static ew_err backward(const struct ew_call *c)
{
    const struct ew_scale_attr *a = c->attr;
    EW_CHECK(a->alpha >= 0 && a->beta >= 0, EW_ERR_UNSUPPORTED,
             "%s: alpha is %g, in training it must not be negative", c->name, a->alpha);
    return ew_unary_backward(c, df);
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 4 * ew_tensor_count(c->out[0]);
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5", EW_F32, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "long", .in = {{"300", EW_F32, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "300"},
    {.name = "half", .in = {{"7", EW_F16, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "7"},
    {.name = "attrs",
     .attrs = "alpha=2 gamma=3",
     .in = {{"9", EW_F32, EW_FILL_AWAY}},
     .n_in = 1,
     .out_shape = "9"},
};

const struct ew_op ew_op_selu = {
    .name = "selu",
    .help = "gamma times x, or times alpha (exp(x) - 1) below 0",
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
    .onnx = {.type = "Selu"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
