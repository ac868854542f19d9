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
    {.name = "all", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = "1x1x1"},
    {.name = "middle",
     .attrs = "keepdims=false",
     .in = {{"2x5x3"}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "two axes",
     .in = {{"2x3x4x3"}, {"2", EW_S64, EW_FILL_VALUES, .values = "-1,1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x1x4x1"},
    {.name = "long",
     .attrs = "keepdims=false",
     .in = {{"2x300"}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2"},
    {.name = "rows",
     .attrs = "keepdims=false",
     .in = {{"66x2x19"}, {"1", EW_S64, EW_FILL_VALUES, .values = "0", .constant = true}},
     .n_in = 2,
     .out_shape = "2x19"},
    {.name = "longer",
     .in = {{"3x1100"}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "3x1"},
    {.name = "int",
     .in = {{"2x3", EW_S32}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x1"},
};

const struct ew_op ew_op_reduce_mean = {
    .name = "reduce_mean",
    .help = "mean over axes",
    EW_REDUCE_OP("ReduceMean", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
