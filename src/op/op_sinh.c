/* SPDX-License-Identifier: Apache-2.0 */
/* Sinh: the hyperbolic sine. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return sinh(x);
}

static double df(double x, double y, const void *attr)
{
    return cosh(x);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "long", .in = {{"300"}}, .n_in = 1, .out_shape = "300"},
    {.name = "half", .in = {{"7", EW_F16}}, .n_in = 1, .out_shape = "7"},
};

const struct ew_op ew_op_sinh = {
    .name = "sinh",
    .help = "hyperbolic sine",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_float,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Sinh", .since = 9},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
