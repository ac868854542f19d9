/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceMean: the mean over axes. */
#include "op/reduce.h"

static double step(double acc, double x)
{
    return acc + x;
}

static double end(double acc, int64_t n)
{
    return acc / (double)n;
}

static double df(double x, double y, int64_t n)
{
    return 1 / (double)n;
}

EW_REDUCE_FORWARD(.step = step, .end = end)
EW_REDUCE_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_REDUCE_CASES(EW_FILL_NORMAL),
    {.name = "rows",
     .attrs = "keepdims=false",
     .in = {{"66x2x19"}, {"1", EW_S64, EW_FILL_VALUES, .values = "0", .constant = true}},
     .n_in = 2,
     .out_shape = "2x19"},
    {.name = "longer",
     .in = {{"3x1100"}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "3x1"},
    EW_REDUCE_CASE_INT,
};

const struct ew_op ew_op_reduce_mean = {
    .name = "reduce_mean",
    .help = "mean over axes",
    EW_REDUCE_OP("ReduceMean", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
