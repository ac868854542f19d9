/* SPDX-License-Identifier: Apache-2.0 */
/* Sub: a - b with broadcasting. */
#include "graph/onnx.h"
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a - b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static void df(double a, double b, double *ga, double *gb)
{
    *ga = 1;
    *gb = -1;
}

EW_BINARY_FORWARD(f, fi)
EW_BINARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3x4"}, {"2x3x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "both", .in = {{"3x1x4"}, {"2x1"}}, .n_in = 2, .out_shape = "3x2x4"},
    {.name = "bytes", .in = {{"4", EW_U8}, {"2x1", EW_U8}}, .n_in = 2, .out_shape = "2x4"},
};

const struct ew_op ew_op_sub = {
    .name = "sub",
    .help = "a - b, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    EW_ARITHMETIC_OP(.type = "Sub"),
    EW_OP_CASES(cases),
};
