/* SPDX-License-Identifier: Apache-2.0 */
/* Log: the natural logarithm. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return log(x);
}

static double df(double x, double y, const void *attr)
{
    return 1 / x;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_POSITIVE)};

const struct ew_op ew_op_log = {
    .name = "log",
    .help = "natural logarithm",
    EW_UNARY_OP(.type = "Log"),
    .saves = EW_SAVE_IN0,
    EW_OP_CASES(cases),
};
