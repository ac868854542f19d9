/* SPDX-License-Identifier: Apache-2.0 */
/* HardSigmoid: alpha x + beta, clipped to [0, 1]. */
#include "op/math_attr.h"
#include "op/pointwise.h"

static const struct ew_field attrs[] = {
    EW_SCALE_FIELD("alpha", alpha, "0.2", "slope; 1/6 in MobileNetV3"),
    EW_SCALE_FIELD("beta", beta, "0.5", "value at 0"),
    EW_FIELD_END,
};

static double f(double x, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    const double y = a->alpha * x + a->beta;
    return y < 0 ? 0 : y > 1 ? 1 : y; /* fmin and fmax would drop NaN */
}

static double df(double x, double y, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return y > 0 && y < 1 ? a->alpha : 0;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 4 * ew_tensor_count(c->out[0]);
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "sixth",
     .attrs = "alpha=0.16666666666666666",
     .in = {{"2x9", EW_F32, EW_FILL_DISTINCT}},
     .n_in = 1,
     .out_shape = "2x9"},
};

const struct ew_op ew_op_hard_sigmoid = {
    .name = "hard_sigmoid",
    .help = "clip(alpha x + beta, 0, 1)",
    EW_SCALED_OP(.type = "HardSigmoid"),
    .attrs = attrs,
    .cost = cost,
    EW_OP_CASES(cases),
};
