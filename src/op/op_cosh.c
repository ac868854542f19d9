/* SPDX-License-Identifier: Apache-2.0 */
/* Cosh: the hyperbolic cosine. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return cosh(x);
}

static double df(double x, double y, const void *attr)
{
    return sinh(x);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_NORMAL)};

const struct ew_op ew_op_cosh = {
    .name = "cosh",
    .help = "hyperbolic cosine",
    EW_UNARY_OP(.type = "Cosh", .since = 9),
    .saves = EW_SAVE_IN0,
    EW_OP_CASES(cases),
};
