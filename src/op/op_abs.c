/* SPDX-License-Identifier: Apache-2.0 */
/* Abs: the magnitude. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return fabs(x);
}

static int64_t fi(int64_t x, const void *attr)
{
    return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}

/* Large uint64 are negative as int64. */
static int64_t fu(int64_t x, const void *attr)
{
    return x;
}

static double df(double x, double y, const void *attr)
{
    return (x > 0) - (x < 0);
}

static ew_err forward(const struct ew_call *c)
{
    if (ew_dtype_is_float(c->in[0]->dtype))
        return ew_unary_forward(c, f);
    return ew_unary_forward_int(c, EW_TYPES_UNSIGNED >> c->in[0]->dtype & 1 ? fu : fi);
}

EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_UNARY_CASES(EW_FILL_AWAY),
    {.name = "int", .in = {{"5", EW_S32}}, .n_in = 1, .out_shape = "5"},
    {.name = "unsigned",
     .in = {{"3", EW_U64, EW_FILL_VALUES, .values = "0,1,9"}},
     .n_in = 1,
     .out_shape = "3"},
};

const struct ew_op ew_op_abs = {
    .name = "abs",
    .help = "|x|",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_number,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Abs"},
    EW_OP_CASES(cases),
};
