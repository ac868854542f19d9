/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceL2: the Euclidean length over axes. */
#include "op/reduce.h"

static double step(double acc, double x)
{
    return acc + x * x;
}

static double end(double acc, int64_t n)
{
    return sqrt(acc);
}

/* The gradient at 0 is 0, as in other frameworks. */
static double df(double x, double y, int64_t n)
{
    return y > 0 ? x / y : 0;
}

EW_REDUCE_FORWARD(.step = step, .end = end)
EW_REDUCE_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_REDUCE_CASES(EW_FILL_NORMAL),
    EW_REDUCE_CASE_INT,
};

const struct ew_op ew_op_reduce_l2 = {
    .name = "reduce_l2",
    .help = "sqrt of the sum of x^2 over axes",
    .saves = EW_SAVE_IN0 | EW_SAVE_OUT,
    EW_REDUCE_OP("ReduceL2", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
