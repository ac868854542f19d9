/* SPDX-License-Identifier: Apache-2.0 */
/* Sin: the sine. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return sin(x);
}

static double df(double x, double y, const void *attr)
{
    return cos(x);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {EW_UNARY_CASES(EW_FILL_NORMAL)};

const struct ew_op ew_op_sin = {
    .name = "sin",
    .help = "sine",
    EW_UNARY_OP(.type = "Sin", .since = 7),
    .saves = EW_SAVE_IN0,
    EW_OP_CASES(cases),
};
