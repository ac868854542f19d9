/* SPDX-License-Identifier: Apache-2.0 */
/* Mul: a b with broadcasting. */
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a * b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static void df(double a, double b, double *ga, double *gb)
{
    *ga = b;
    *gb = a;
}

EW_BINARY_FORWARD(f, fi)
EW_BINARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3x4"}, {"2x3x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "gate", .in = {{"2x5x5x3"}, {"2x1x1x3"}}, .n_in = 2, .out_shape = "2x5x5x3"},
    {.name = "left", .in = {{"3"}, {"2x3x1"}}, .n_in = 2, .out_shape = "2x3x3"},
    {.name = "int", .in = {{"4", EW_S8}, {"", EW_S8}}, .n_in = 2, .out_shape = "4"},
};

const struct ew_op ew_op_mul = {
    .name = "mul",
    .help = "a b, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .param_in = 1 << 1,
    .infer = ew_broadcast_infer_number,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Mul", .since = 7},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
