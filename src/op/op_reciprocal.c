/* SPDX-License-Identifier: Apache-2.0 */
/* Reciprocal: 1 / x. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return 1 / x;
}

static double df(double x, double y, const void *attr)
{
    return -y * y;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5", EW_F32, EW_FILL_POSITIVE}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "long", .in = {{"300", EW_F32, EW_FILL_POSITIVE}}, .n_in = 1, .out_shape = "300"},
    {.name = "half", .in = {{"7", EW_F16, EW_FILL_POSITIVE}}, .n_in = 1, .out_shape = "7"},
};

const struct ew_op ew_op_reciprocal = {
    .name = "reciprocal",
    .help = "1 / x",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_OUT,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_float,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Reciprocal"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
