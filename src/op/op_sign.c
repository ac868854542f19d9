/* SPDX-License-Identifier: Apache-2.0 */
/* Sign: -1, 0 or 1. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return isnan(x) ? x : (x > 0) - (x < 0);
}

static int64_t fi(int64_t x, const void *attr)
{
    return (x > 0) - (x < 0);
}

/* Large uint64 are negative as int64. */
static int64_t fu(int64_t x, const void *attr)
{
    return x != 0;
}

static ew_err forward(const struct ew_call *c)
{
    if (ew_dtype_is_float(c->in[0]->dtype))
        return ew_unary_forward(c, f);
    return ew_unary_forward_int(c, EW_TYPES_UNSIGNED >> c->in[0]->dtype & 1 ? fu : fi);
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5", EW_F32, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "long", .in = {{"300", EW_F32, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "300"},
    {.name = "half", .in = {{"7", EW_F16, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "7"},
    {.name = "int",
     .in = {{"4", EW_S32, EW_FILL_VALUES, .values = "-7,0,1,9"}},
     .n_in = 1,
     .out_shape = "4"},
    {.name = "unsigned",
     .in = {{"2", EW_U64, EW_FILL_VALUES, .values = "0,9"}},
     .n_in = 1,
     .out_shape = "2"},
};

const struct ew_op ew_op_sign = {
    .name = "sign",
    .help = "-1, 0 or 1",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_number,
    .forward = forward,
    .backward = ew_backward_none,
    .onnx = {.type = "Sign", .since = 9},
    EW_OP_CASES(cases),
};
