/* SPDX-License-Identifier: Apache-2.0 */
/* SpaceToDepth: square blocks of pixels to channels. */
#include "op/blocks.h"
#include "op/move.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "size", .type = EW_FIELD_INT, .offset = offsetof(struct ew_blocks_attr, size),
     .def = "2", .min = 1, .max = 1 << 10, .help = "side of a block"},
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    struct ew_blocks b;
    EW_TRY(ew_blocks_resolve(c, false, &b));
    c->out[0]->shape = (struct ew_shape){4, {b.n, b.h, b.w, b.c * b.size * b.size}};
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_blocks b;
    EW_TRY(ew_blocks_resolve(c, false, &b));
    ew_blocks_move(&b, c->in[0], c->out[0], false, false);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_blocks b;
    EW_TRY(ew_blocks_resolve(c, false, &b));
    if (c->din[0] && c->dout[0])
        ew_blocks_move(&b, c->dout[0], c->din[0], true, true);
    return EW_OK;
}

static const char *const renames[] = {"size", "blocksize", NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2x2", .in = {{"2x4x6x2"}}, .n_in = 1, .out_shape = "2x2x3x8"},
    {.name = "3x3", .attrs = "size=3", .in = {{"1x6x3x2"}}, .n_in = 1, .out_shape = "1x2x1x18"},
    {.name = "one channel", .in = {{"2x4x6x1"}}, .n_in = 1, .out_shape = "2x2x3x4"},
    {.name = "bytes", .in = {{"1x2x4x1", EW_U8}}, .n_in = 1, .out_shape = "1x1x2x4"},
};
/* clang-format on */

const struct ew_op ew_op_space_to_depth = {
    .name = "space_to_depth",
    .help = "square blocks of pixels become groups of channels",
    .flags = EW_OP_SPATIAL,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_blocks_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "SpaceToDepth", .rename = renames},
    EW_OP_CASES(cases),
};
