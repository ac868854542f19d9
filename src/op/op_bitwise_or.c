/* SPDX-License-Identifier: Apache-2.0 */
/* BitwiseOr: a
 * b with broadcasting. */
#include "op/pointwise.h"

static int64_t fi(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a | (uint64_t)b);
}

EW_BINARY_FORWARD(NULL, fi)

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3", EW_S32}, {"2x3", EW_S32}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "both", .in = {{"2x1x4", EW_U8}, {"3x1", EW_U8}}, .n_in = 2, .out_shape = "2x3x4"},
};

const struct ew_op ew_op_bitwise_or = {
    .name = "bitwise_or",
    .help = "the bits that one of them has, or both, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 2,
    .max_in = 2,
    .infer = ew_broadcast_infer_int,
    .forward = forward,
    .onnx = {.type = "BitwiseOr", .since = 18},
    EW_OP_CASES(cases),
};
