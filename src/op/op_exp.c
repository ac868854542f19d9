/* SPDX-License-Identifier: Apache-2.0 */
/* Exp: e to the power of x. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return exp(x);
}

static double df(double x, double y, const void *attr)
{
    return y;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_NORMAL)};

const struct ew_op ew_op_exp = {
    .name = "exp",
    .help = "e to the power of x",
    EW_UNARY_OP(.type = "Exp"),
    .saves = EW_SAVE_OUT,
    EW_OP_CASES(cases),
};
