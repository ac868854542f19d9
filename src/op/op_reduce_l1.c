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
    {.name = "all", .in = {{"2x3x4", EW_F32, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "1x1x1"},
    {.name = "middle",
     .attrs = "keepdims=false",
     .in = {{"2x5x3", EW_F32, EW_FILL_AWAY},
            {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "two axes",
     .in = {{"2x3x4x3", EW_F32, EW_FILL_AWAY},
            {"2", EW_S64, EW_FILL_VALUES, .values = "-1,1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x1x4x1"},
    {.name = "long",
     .attrs = "keepdims=false",
     .in = {{"2x300", EW_F32, EW_FILL_AWAY},
            {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2"},
    {.name = "int",
     .in = {{"2x3", EW_S32}, {"1", EW_S64, EW_FILL_VALUES, .values = "1", .constant = true}},
     .n_in = 2,
     .out_shape = "2x1"},
};

const struct ew_op ew_op_reduce_l1 = {
    .name = "reduce_l1",
    .help = "sum of |x| over axes",
    .saves = EW_SAVE_IN0,
    EW_REDUCE_OP("ReduceL1", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
