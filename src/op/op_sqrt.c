/* SPDX-License-Identifier: Apache-2.0 */
/* Sqrt: the square root. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return sqrt(x);
}

static double df(double x, double y, const void *attr)
{
    return 0.5 / y;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_POSITIVE)};

const struct ew_op ew_op_sqrt = {
    .name = "sqrt",
    .help = "square root",
    EW_UNARY_OP(.type = "Sqrt"),
    .saves = EW_SAVE_OUT,
    EW_OP_CASES(cases),
};
