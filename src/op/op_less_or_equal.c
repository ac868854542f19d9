/* SPDX-License-Identifier: Apache-2.0 */
/* LessOrEqual: a <= b with broadcasting, as bool. */
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a <= b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return a <= b;
}

static uint64_t fu(uint64_t a, uint64_t b)
{
    return a <= b;
}

EW_BINARY_FORWARD(f, fi, fu)

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3"}, {"2x3"}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "both", .in = {{"2x1x4", EW_S32}, {"3x1", EW_S32}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "half", .in = {{"5", EW_F16}, {"", EW_F16}}, .n_in = 2, .out_shape = "5"},
    {.name = "uint64", .in = {{"5", EW_U64}, {"5", EW_U64}}, .n_in = 2, .out_shape = "5"},
};

const struct ew_op ew_op_less_or_equal = {
    .name = "less_or_equal",
    .help = "a <= b, as bool, broadcasting",
    .flags = EW_OP_ELEMENTWISE,
    .min_in = 2,
    .max_in = 2,
    .infer = ew_broadcast_infer_order,
    .forward = forward,
    .onnx = {.type = "LessOrEqual", .since = 12},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
