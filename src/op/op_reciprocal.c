/* SPDX-License-Identifier: Apache-2.0 */
/* Reciprocal: 1 / x. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return 1 / x;
}

static double df(double x, double y, const void *attr)
{
    return -y * y;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_POSITIVE)};

const struct ew_op ew_op_reciprocal = {
    .name = "reciprocal",
    .help = "1 / x",
    EW_UNARY_OP(.type = "Reciprocal"),
    .saves = EW_SAVE_OUT,
    EW_OP_CASES(cases),
};
