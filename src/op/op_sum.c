/* SPDX-License-Identifier: Apache-2.0 */
/* Sum: of any number of inputs, with broadcasting. */
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a + b;
}

static ew_err forward(const struct ew_call *c)
{
    static const struct ew_binary fn = {.f = f};
    return ew_variadic_forward(c, &fn, 1);
}

static ew_err backward(const struct ew_call *c)
{
    return ew_variadic_backward_sum(c, 1);
}

static const struct ew_op_case cases[] = {
    {.name = "one", .in = {{"2x3"}}, .n_in = 1, .out_shape = "2x3"},
    {.name = "three", .in = {{"2x1x4"}, {"3x1"}, {"4"}}, .n_in = 3, .out_shape = "2x3x4"},
    {.name = "two", .in = {{"3x100"}, {"3x100"}}, .n_in = 2, .out_shape = "3x100"},
};

const struct ew_op ew_op_sum = {
    .name = "sum",
    .help = "sum of the inputs, broadcasting",
    .flags = EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = -1,
    .infer = ew_broadcast_infer_float,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Sum"},
    EW_OP_CASES(cases),
};
