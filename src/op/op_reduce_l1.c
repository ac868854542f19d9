/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceL1: the sum of magnitudes over axes. */
#include "op/reduce.h"

static double step(double acc, double x)
{
    return acc + fabs(x);
}

static double df(double x, double y, int64_t n)
{
    return (x > 0) - (x < 0);
}

EW_REDUCE_FORWARD(.step = step)
EW_REDUCE_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_REDUCE_CASES(EW_FILL_AWAY),
    EW_REDUCE_CASE_INT,
};

const struct ew_op ew_op_reduce_l1 = {
    .name = "reduce_l1",
    .help = "sum of |x| over axes",
    .saves = EW_SAVE_IN0,
    EW_REDUCE_OP("ReduceL1", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
