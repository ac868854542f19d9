/* SPDX-License-Identifier: Apache-2.0 */
/* Div: a / b with broadcasting; integers truncate towards zero, and x / 0 is 0. */
#include "graph/onnx.h"
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a / b;
}

static int64_t fi(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; /* INT64_MIN / -1 would trap */
}

static uint64_t fu(uint64_t a, uint64_t b)
{
    return b == 0 ? 0 : a / b;
}

static void df(double a, double b, double *ga, double *gb)
{
    *ga = 1 / b;
    *gb = -a / (b * b);
}

EW_BINARY_FORWARD(f, fi, fu)
EW_BINARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "same",
     .in = {{"2x3"}, {"2x3", .fill = EW_FILL_POSITIVE}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "both",
     .in = {{"2x1x4"}, {"3x1", .fill = EW_FILL_POSITIVE}},
     .n_in = 2,
     .out_shape = "2x3x4"},
    {.name = "int",
     .in = {{"4", EW_S64}, {"4", EW_S64, EW_FILL_VALUES, .values = "1,-1,0,3"}},
     .n_in = 2,
     .out_shape = "4"},
    {.name = "uint64",
     .in = {{"2", EW_U64, EW_FILL_VALUES, .values = "7,9"},
            {"2", EW_U64, EW_FILL_VALUES, .values = "2,0"}},
     .n_in = 2,
     .out_shape = "2"},
};

const struct ew_op ew_op_div = {
    .name = "div",
    .help = "a / b, broadcasting; whole numbers truncate",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    EW_ARITHMETIC_OP(.type = "Div"),
    EW_OP_CASES(cases),
};
