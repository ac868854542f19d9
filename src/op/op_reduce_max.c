/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceMax: the largest element over axes. */
#include "op/reduce.h"

static double step(double acc, double x)
{
    return acc > x || isnan(acc) ? acc : x;
}

static int64_t step_int(int64_t acc, int64_t x)
{
    return acc > x ? acc : x;
}

static uint64_t step_u64(uint64_t acc, uint64_t x)
{
    return acc > x ? acc : x;
}

EW_REDUCE_FORWARD(.start = -INFINITY, .step = step, .start_int = INT64_MIN, .step_int = step_int,
                  .step_u64 = step_u64)

static const struct ew_op_case cases[] = {
    EW_REDUCE_CASES(EW_FILL_DISTINCT),
    EW_REDUCE_CASE_INT,
    {.name = "uint64",
     .in = {{"4", EW_U64, EW_FILL_VALUES, .values = "3,9,1,9"}},
     .n_in = 1,
     .out_shape = "1"},
    {.name = "bool", .in = {{"5", EW_BOOL}}, .n_in = 1, .out_shape = "1"},
};

const struct ew_op ew_op_reduce_max = {
    .name = "reduce_max",
    .help = "largest element over axes",
    .saves = EW_SAVE_IN0 | EW_SAVE_OUT,
    EW_REDUCE_OP("ReduceMax", ew_reduce_infer_order),
    .forward = forward,
    .backward = ew_reduce_backward_extreme,
    EW_OP_CASES(cases),
};
