/* SPDX-License-Identifier: Apache-2.0 */
/* Asin: the arc sine. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return asin(x);
}

static double df(double x, double y, const void *attr)
{
    return 1 / sqrt(1 - x * x);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_UNIT)};

const struct ew_op ew_op_asin = {
    .name = "asin",
    .help = "arc sine",
    EW_UNARY_OP(.type = "Asin", .since = 7),
    .saves = EW_SAVE_IN0,
    EW_OP_CASES(cases),
};
