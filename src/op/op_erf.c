/* SPDX-License-Identifier: Apache-2.0 */
/* Erf: the error function. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return erf(x);
}

static double df(double x, double y, const void *attr)
{
    return M_2_SQRTPI * exp(-x * x);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_NORMAL)};

const struct ew_op ew_op_erf = {
    .name = "erf",
    .help = "error function",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_number,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Erf", .since = 9},
    EW_OP_CASES(cases),
};
