/* SPDX-License-Identifier: Apache-2.0 */
/* Round: the nearest whole number, the even one of two. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return nearbyint(x);
}

EW_UNARY_FORWARD(f)

static const struct ew_op_case cases[] = {
    {.name = "plain",
     .in = {{"7", EW_F32, EW_FILL_VALUES, .values = "-2.6,-1.4,-0.6,0.1,0.4,0.6,2.7"}},
     .n_in = 1,
     .out_shape = "7"},
    {.name = "half",
     .in = {{"4", EW_F16, EW_FILL_VALUES, .values = "-1.5,-0.5,0.5,1.25"}},
     .n_in = 1,
     .out_shape = "4"},
};

const struct ew_op ew_op_round = {
    .name = "round",
    .help = "x rounded to nearest, halves to even",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_float,
    .forward = forward,
    .backward = ew_backward_none,
    .onnx = {.type = "Round", .since = 11},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
