/* SPDX-License-Identifier: Apache-2.0 */
/* Softsign: x / (1 + |x|). */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return x / (1 + fabs(x));
}

static double df(double x, double y, const void *attr)
{
    return (1 - fabs(y)) * (1 - fabs(y));
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 3 * ew_tensor_count(c->out[0]);
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "long", .in = {{"300"}}, .n_in = 1, .out_shape = "300"},
    {.name = "half", .in = {{"7", EW_F16}}, .n_in = 1, .out_shape = "7"},
};

const struct ew_op ew_op_softsign = {
    .name = "softsign",
    .help = "x / (1 + |x|)",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_OUT,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_float,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Softsign"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
