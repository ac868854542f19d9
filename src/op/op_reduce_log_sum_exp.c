/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceLogSumExp: the logarithm of the sum of exponentials over axes. */
#include "op/reduce.h"

/* log(exp(a) + exp(x)) without overflow. */
static double step(double acc, double x)
{
    if (isnan(acc) || isnan(x))
        return NAN; /* fmax would drop it */
    const double most = fmax(acc, x), least = fmin(acc, x);
    return isinf(most) ? most : most + log1p(exp(least - most));
}

static double df(double x, double y, int64_t n)
{
    return exp(x - y);
}

EW_REDUCE_FORWARD(.start = -INFINITY, .step = step)
EW_REDUCE_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_REDUCE_CASES(EW_FILL_NORMAL),
    {.name = "large",
     .in = {{"3", EW_F32, EW_FILL_VALUES, .values = "1000,1001,-1000"}},
     .n_in = 1,
     .out_shape = "1"},
};

const struct ew_op ew_op_reduce_log_sum_exp = {
    .name = "reduce_log_sum_exp",
    .help = "log of the sum of exp(x) over axes",
    .saves = EW_SAVE_IN0 | EW_SAVE_OUT,
    EW_REDUCE_OP("ReduceLogSumExp", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
