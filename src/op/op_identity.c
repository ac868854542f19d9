/* SPDX-License-Identifier: Apache-2.0 */
/* Identity: a copy. */
#include "op/move.h"

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "bool", .in = {{"3", EW_BOOL}}, .n_in = 1, .out_shape = "3"},
};

const struct ew_op ew_op_identity = {
    .name = "identity",
    .help = "x",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE | EW_OP_VIEW | EW_OP_NO_CDL | EW_OP_IDENTITY,
    .min_in = 1,
    .max_in = 1,
    .cost = ew_move_cost,
    .forward = ew_view_forward,
    .backward = ew_view_backward,
    .onnx = {.type = "Identity"},
    EW_OP_CASES(cases),
};
