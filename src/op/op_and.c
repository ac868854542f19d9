/* SPDX-License-Identifier: Apache-2.0 */
/* And: a && b with broadcasting. */
#include "op/pointwise.h"

static int64_t fi(int64_t a, int64_t b)
{
    return a && b;
}

EW_BINARY_FORWARD(NULL, fi)

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3", EW_BOOL}, {"2x3", EW_BOOL}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "both", .in = {{"2x1x4", EW_BOOL}, {"3x1", EW_BOOL}}, .n_in = 2, .out_shape = "2x3x4"},
};

const struct ew_op ew_op_and = {
    .name = "and",
    .help = "both are true, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .min_in = 2,
    .max_in = 2,
    .infer = ew_broadcast_infer_logic,
    .forward = forward,
    .onnx = {.type = "And", .since = 7},
    EW_OP_CASES(cases),
};
