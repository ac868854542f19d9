/* SPDX-License-Identifier: Apache-2.0 */
/* LeakyRelu: x, or alpha x below 0. */
#include "op/math_attr.h"
#include "op/pointwise.h"

static const struct ew_field attrs[] = {
    EW_SCALE_FIELD("alpha", alpha, "0.01", "slope below 0"),
    EW_FIELD_END,
};

static double f(double x, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return x > 0 ? x : a->alpha * x;
}

static double df(double x, double y, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return y > 0 ? 1 : a->alpha;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD_RISING(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 2 * ew_tensor_count(c->out[0]);
}

static const struct ew_op_case cases[] = {
    EW_UNARY_CASES(EW_FILL_AWAY),
    EW_BENT_CASE("alpha", "alpha=0.3"),
};

const struct ew_op ew_op_leaky_relu = {
    .name = "leaky_relu",
    .help = "x, or alpha x below 0",
    EW_SCALED_OP(.type = "LeakyRelu"),
    .attrs = attrs,
    .cost = cost,
    EW_OP_CASES(cases),
};
