/* SPDX-License-Identifier: Apache-2.0 */
/* Sigmoid: 1 / (1 + exp(-x)). */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return 1 / (1 + exp(-x));
}

static double df(double x, double y, const void *attr)
{
    return y * (1 - y);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_NORMAL)};

const struct ew_op ew_op_sigmoid = {
    .name = "sigmoid",
    .help = "1 / (1 + exp(-x))",
    EW_UNARY_OP(.type = "Sigmoid"),
    .saves = EW_SAVE_OUT,
    EW_OP_CASES(cases),
};
