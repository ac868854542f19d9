/* SPDX-License-Identifier: Apache-2.0 */
/* Size: the number of elements as an int64 scalar. */
#include "op/move.h"

static ew_err infer(const struct ew_call *c)
{
    *c->out[0] = (struct ew_tensor){.dtype = EW_S64};
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const int64_t count = ew_tensor_count(c->in[0]);
    ew_tensor_store_int(c->out[0], 0, 1, &count);
    return EW_OK;
}

/* The order of the axes does not matter. */
static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    return EW_OK;
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x4"}}, .n_in = 1, .out_shape = ""},
    {.name = "empty", .in = {{"2x0", EW_U8}}, .n_in = 1, .out_shape = ""},
};

const struct ew_op ew_op_size = {
    .name = "size",
    .help = "the number of elements",
    .flags = EW_OP_SHAPE_ONLY | EW_OP_NO_CDL,
    .min_in = 1,
    .max_in = 1,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .permute = permute,
    .onnx = {.type = "Size"},
    EW_OP_CASES(cases),
};
