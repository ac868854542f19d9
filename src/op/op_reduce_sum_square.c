/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceSumSquare: the sum of squares over axes. */
#include "op/reduce.h"

static double step(double acc, double x)
{
    return acc + x * x;
}

static int64_t step_int(int64_t acc, int64_t x)
{
    return (int64_t)((uint64_t)acc + (uint64_t)x * (uint64_t)x);
}

static double df(double x, double y, int64_t n)
{
    return 2 * x;
}

EW_REDUCE_FORWARD(.step = step, .step_int = step_int)
EW_REDUCE_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_REDUCE_CASES(EW_FILL_NORMAL),
    EW_REDUCE_CASE_INT,
};

const struct ew_op ew_op_reduce_sum_square = {
    .name = "reduce_sum_square",
    .help = "sum of x^2 over axes",
    .saves = EW_SAVE_IN0,
    EW_REDUCE_OP("ReduceSumSquare", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
