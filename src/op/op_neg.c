/* SPDX-License-Identifier: Apache-2.0 */
/* Neg: -x. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return -x;
}

static int64_t fi(int64_t x, const void *attr)
{
    return (int64_t)(0 - (uint64_t)x);
}

static double df(double x, double y, const void *attr)
{
    return -1;
}

static ew_err forward(const struct ew_call *c)
{
    return ew_dtype_is_float(c->in[0]->dtype) ? ew_unary_forward(c, f)
                                              : ew_unary_forward_int(c, fi);
}
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    EW_UNARY_CASES(EW_FILL_NORMAL),
    {.name = "int", .in = {{"5", EW_S64}}, .n_in = 1, .out_shape = "5"},
    {.name = "bytes",
     .in = {{"3", EW_S8, EW_FILL_VALUES, .values = "-128,127,1"}},
     .n_in = 1,
     .out_shape = "3"},
};

const struct ew_op ew_op_neg = {
    .name = "neg",
    .help = "-x",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_signed,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Neg"},
    EW_OP_CASES(cases),
};
