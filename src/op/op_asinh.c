/* SPDX-License-Identifier: Apache-2.0 */
/* Asinh: the inverse hyperbolic sine. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return asinh(x);
}

static double df(double x, double y, const void *attr)
{
    return 1 / sqrt(x * x + 1);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_NORMAL)};

const struct ew_op ew_op_asinh = {
    .name = "asinh",
    .help = "inverse hyperbolic sine",
    EW_UNARY_OP(.type = "Asinh", .since = 9),
    .saves = EW_SAVE_IN0,
    EW_OP_CASES(cases),
};
