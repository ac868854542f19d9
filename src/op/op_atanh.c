/* SPDX-License-Identifier: Apache-2.0 */
/* Atanh: the inverse hyperbolic tangent. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return atanh(x);
}

static double df(double x, double y, const void *attr)
{
    return 1 / (1 - x * x);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_UNIT)};

const struct ew_op ew_op_atanh = {
    .name = "atanh",
    .help = "inverse hyperbolic tangent",
    EW_UNARY_OP(.type = "Atanh", .since = 9),
    .saves = EW_SAVE_IN0,
    EW_OP_CASES(cases),
};
