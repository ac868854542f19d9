/* SPDX-License-Identifier: Apache-2.0 */
/* Equal: a == b with broadcasting, as bool. */
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a >= b && a <= b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return a == b;
}

EW_BINARY_FORWARD(f, fi)

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3"}, {"2x3"}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "both", .in = {{"2x1x4", EW_S32}, {"3x1", EW_S32}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "half", .in = {{"5", EW_F16}, {"", EW_F16}}, .n_in = 2, .out_shape = "5"},
    {.name = "bool", .in = {{"5", EW_BOOL}, {"5", EW_BOOL}}, .n_in = 2, .out_shape = "5"},
};

const struct ew_op ew_op_equal = {
    .name = "equal",
    .help = "a = b, as bool, broadcasting",
    .flags = EW_OP_ELEMENTWISE,
    .min_in = 2,
    .max_in = 2,
    .infer = ew_broadcast_infer_bool,
    .forward = forward,
    .onnx = {.type = "Equal", .since = 7},
    EW_OP_CASES(cases),
};
