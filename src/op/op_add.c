/* SPDX-License-Identifier: Apache-2.0 */
/* Add: a + b with broadcasting. */
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a + b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void df(double a, double b, double *ga, double *gb)
{
    *ga = 1;
    *gb = 1;
}

EW_BINARY_FORWARD(f, fi)
EW_BINARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3x4"}, {"2x3x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "bias", .in = {{"2x3x4"}, {"4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "both", .in = {{"2x1x4"}, {"3x1"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "int", .in = {{"4", EW_S64}, {"", EW_S64}}, .n_in = 2, .out_shape = "4"},
    {.name = "nothing", .in = {{"0x3"}, {"3"}}, .n_in = 2, .out_shape = "0x3"},
};

const struct ew_op ew_op_add = {
    .name = "add",
    .help = "a + b, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 2,
    .max_in = 2,
    .param_in = 1 << 1,
    .infer = ew_broadcast_infer_number,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Add", .since = 7},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
