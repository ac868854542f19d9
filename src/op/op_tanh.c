/* SPDX-License-Identifier: Apache-2.0 */
/* Tanh: the hyperbolic tangent. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return tanh(x);
}

static double df(double x, double y, const void *attr)
{
    return 1 - y * y;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_NORMAL)};

const struct ew_op ew_op_tanh = {
    .name = "tanh",
    .help = "hyperbolic tangent",
    EW_UNARY_OP(.type = "Tanh"),
    .saves = EW_SAVE_OUT,
    EW_OP_CASES(cases),
};
