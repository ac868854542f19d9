/* SPDX-License-Identifier: Apache-2.0 */
/* Tan: the tangent. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return tan(x);
}

static double df(double x, double y, const void *attr)
{
    return 1 + y * y;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_UNIT)};

const struct ew_op ew_op_tan = {
    .name = "tan",
    .help = "tangent",
    EW_UNARY_OP(.type = "Tan", .since = 7),
    .saves = EW_SAVE_OUT,
    EW_OP_CASES(cases),
};
