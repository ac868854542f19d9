/* SPDX-License-Identifier: Apache-2.0 */
/* Sigmoid: 1 / (1 + exp(-x)). */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return 1 / (1 + exp(-x));
}

static double df(double x, double y, const void *attr)
{
    return y * (1 - y);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "half", .in = {{"7", EW_F16}}, .n_in = 1, .out_shape = "7"},
};

const struct ew_op ew_op_sigmoid = {
    .name = "sigmoid",
    .help = "1 / (1 + exp(-x))",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_OUT,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_float,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Sigmoid"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
