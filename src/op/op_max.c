/* SPDX-License-Identifier: Apache-2.0 */
/* Max: the largest of any number of inputs, with broadcasting. */
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint64_t fu(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static ew_err forward(const struct ew_call *c)
{
    static const struct ew_binary fn = {f, fi, fu};
    return ew_variadic_forward(c, &fn, 1);
}

static const struct ew_op_case cases[] = {
    {.name = "one", .in = {{"2x3"}}, .n_in = 1, .out_shape = "2x3"},
    {.name = "three", .in = {{"2x1x4"}, {"3x1"}, {"4"}}, .n_in = 3, .out_shape = "2x3x4"},
    {.name = "two", .in = {{"3x100"}, {"3x100"}}, .n_in = 2, .out_shape = "3x100"},
    {.name = "int", .in = {{"2x3", EW_S64}, {"3", EW_S64}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "uint64",
     .in = {{"3", EW_U64, EW_FILL_VALUES, .values = "1,2,3"},
            {"3", EW_U64, EW_FILL_VALUES, .values = "3,2,1"}},
     .n_in = 2,
     .out_shape = "3"},
};

const struct ew_op ew_op_max = {
    .name = "max",
    .help = "largest of the inputs, broadcasting",
    .flags = EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_INS | EW_SAVE_OUT,
    .min_in = 1,
    .max_in = -1,
    .infer = ew_broadcast_infer_number,
    .forward = forward,
    .backward = ew_variadic_backward_extreme,
    .onnx = {.type = "Max"},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
