/* SPDX-License-Identifier: Apache-2.0 */
/* Atan: the arc tangent. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return atan(x);
}

static double df(double x, double y, const void *attr)
{
    return 1 / (1 + x * x);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "long", .in = {{"300"}}, .n_in = 1, .out_shape = "300"},
    {.name = "half", .in = {{"7", EW_F16}}, .n_in = 1, .out_shape = "7"},
};

const struct ew_op ew_op_atan = {
    .name = "atan",
    .help = "arc tangent",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_float,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Atan", .since = 7},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
