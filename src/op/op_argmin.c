/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMin: where the smallest element along an axis is. */
#include "op/arg.h"

static bool better(double x, double best)
{
    return x < best;
}

static ew_err forward(const struct ew_call *c)
{
    return ew_arg_forward(c, better);
}

static const struct ew_op_case cases[] = {
    {.name = "default", .in = {{"3x4"}}, .n_in = 1, .out_shape = "1x4"},
    {.name = "drop axis",
     .attrs = "axis=-1 keepdims=false",
     .in = {{"2x3x5"}},
     .n_in = 1,
     .out_shape = "2x3"},
    {.name = "last of equals",
     .attrs = "axis=0 select_last_index=true",
     .in = {{"5", EW_S32, EW_FILL_VALUES, .values = "1,7,1,7,3"}},
     .n_in = 1,
     .out_shape = "1"},
};

const struct ew_op ew_op_argmin = {
    .name = "argmin",
    .help = "index of the smallest element along an axis",
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_arg_attr),
    .attrs = ew_arg_attrs,
    .infer = ew_arg_infer,
    .cost = ew_arg_cost,
    .scratch = ew_arg_scratch,
    .forward = forward,
    .permute = ew_arg_permute,
    .onnx = {.type = "ArgMin"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
