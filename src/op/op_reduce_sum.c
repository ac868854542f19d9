/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceSum: the sum over axes. */
#include "op/reduce.h"

static double step(double acc, double x)
{
    return acc + x;
}

static int64_t step_int(int64_t acc, int64_t x)
{
    return (int64_t)((uint64_t)acc + (uint64_t)x);
}

static double df(double x, double y, int64_t n)
{
    return 1;
}

EW_REDUCE_FORWARD(.step = step, .step_int = step_int)
EW_REDUCE_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_REDUCE_CASES(EW_FILL_NORMAL),
    EW_REDUCE_CASE_INT,
    {.name = "noop",
     .attrs = "noop_with_empty_axes=true",
     .in = {{"2x3"}, {"0", EW_S64, EW_FILL_NORMAL, .constant = true}},
     .n_in = 2,
     .out_shape = "2x3"},
    {.name = "nothing", .in = {{"0x3"}}, .n_in = 1, .out_shape = "1x1"},
};

const struct ew_op ew_op_reduce_sum = {
    .name = "reduce_sum",
    .help = "sum over axes",
    EW_REDUCE_OP("ReduceSum", ew_reduce_infer),
    .forward = forward,
    .backward = backward,
    EW_OP_CASES(cases),
};
