/* SPDX-License-Identifier: Apache-2.0 */
/* BitwiseNot: ~x. */
#include "op/pointwise.h"

static int64_t fi(int64_t x, const void *attr)
{
    return ~x;
}

static ew_err forward(const struct ew_call *c)
{
    return ew_unary_forward_int(c, fi);
}

static const struct ew_op_case cases[] = {
    {.name = "signed", .in = {{"2x3", EW_S16}}, .n_in = 1, .out_shape = "2x3"},
    {.name = "unsigned", .in = {{"4", EW_U64}}, .n_in = 1, .out_shape = "4"},
};

const struct ew_op ew_op_bitwise_not = {
    .name = "bitwise_not",
    .help = "the bits that x does not have",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_unary_infer_int,
    .forward = forward,
    .onnx = {.type = "BitwiseNot", .since = 18},
    EW_OP_CASES(cases),
};
