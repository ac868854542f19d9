/* SPDX-License-Identifier: Apache-2.0 */
/* Not: !x. */
#include "op/pointwise.h"

static int64_t fi(int64_t x, const void *attr)
{
    return !x;
}

static ew_err forward(const struct ew_call *c)
{
    return ew_unary_forward_int(c, fi);
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3", EW_BOOL}}, .n_in = 1, .out_shape = "2x3"},
};

const struct ew_op ew_op_not = {
    .name = "not",
    .help = "true where x is false",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_bool,
    .forward = forward,
    .onnx = {.type = "Not"},
    EW_OP_CASES(cases),
};
