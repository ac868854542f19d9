/* SPDX-License-Identifier: Apache-2.0 */
/* IsNaN: true where x is not a number. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return isnan(x) ? 1 : 0;
}

EW_UNARY_FORWARD(f)

static const struct ew_op_case cases[] = {
    {.name = "plain",
     .in = {{"4", EW_F32, EW_FILL_VALUES, .values = "nan,1,inf,0"}},
     .n_in = 1,
     .out_shape = "4"},
    {.name = "half",
     .in = {{"2", EW_F16, EW_FILL_VALUES, .values = "nan,1"}},
     .n_in = 1,
     .out_shape = "2"},
};

const struct ew_op ew_op_is_nan = {
    .name = "is_nan",
    .help = "true where x is not a number",
    .flags = EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_test,
    .forward = forward,
    .onnx = {.type = "IsNaN", .since = 9},
    EW_OP_CASES(cases),
};
