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
EW_UNARY_BACKWARD_RISING(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 4 * ew_tensor_count(c->out[0]);
}

static const struct ew_op_case cases[] = {
    EW_UNARY_CASES(EW_FILL_AWAY),
    EW_BENT_CASE("attrs", "alpha=2 gamma=3"),
};

const struct ew_op ew_op_selu = {
    .name = "selu",
    .help = "gamma times x, or times alpha (exp(x) - 1) below 0",
    EW_SCALED_OP(.type = "Selu"),
    .attrs = attrs,
    .cost = cost,
    EW_OP_CASES(cases),
};
