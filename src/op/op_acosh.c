/* SPDX-License-Identifier: Apache-2.0 */
/* Acosh: the inverse hyperbolic cosine. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return acosh(x);
}

static double df(double x, double y, const void *attr)
{
    return 1 / sqrt(x * x - 1);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "plain",
     .in = {{"5", EW_F32, EW_FILL_VALUES, .values = "1.1,1.5,2,7,40"}},
     .n_in = 1,
     .out_shape = "5"},
    {.name = "half",
     .in = {{"2", EW_F16, EW_FILL_VALUES, .values = "1.5,3"}},
     .n_in = 1,
     .out_shape = "2"},
};

const struct ew_op ew_op_acosh = {
    .name = "acosh",
    .help = "inverse hyperbolic cosine",
    EW_UNARY_OP(.type = "Acosh", .since = 9),
    .saves = EW_SAVE_IN0,
    EW_OP_CASES(cases),
};
