/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceLogSum: the logarithm of the sum over axes. */
#include "op/reduce.h"

static double step(double acc, double x)
{
    return acc + x;
}

static double end(double acc, int64_t n)
{
    return log(acc);
}

static double df(double x, double y, int64_t n)
{
    return exp(-y);
}

EW_REDUCE_FORWARD(.step = step, .end = end)
EW_REDUCE_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_REDUCE_CASES(EW_FILL_POSITIVE),
};

const struct ew_op ew_op_reduce_log_sum = {
    .name = "reduce_log_sum",
    .help = "log of the sum over axes",
    .saves = EW_SAVE_OUT,
    EW_REDUCE_OP("ReduceLogSum", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
