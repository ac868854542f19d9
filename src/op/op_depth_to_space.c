/* SPDX-License-Identifier: Apache-2.0 */
/* DepthToSpace: channels to square blocks of pixels. */
#include "op/blocks.h"
#include "op/move.h"

static const char *const modes[] = {"DCR", "CRD", NULL};

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "size", .type = EW_FIELD_INT, .offset = offsetof(struct ew_blocks_attr, size),
     .def = "2", .min = 1, .max = 1 << 10, .help = "side of a block"},
    {.name = "mode", .type = EW_FIELD_ENUM, .offset = offsetof(struct ew_blocks_attr, mode),
     .choices = modes, .help = "DCR: the position in the block varies slowest; CRD: fastest"},
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    struct ew_blocks b;
    EW_TRY(ew_blocks_resolve(c, true, &b));
    c->out[0]->shape = (struct ew_shape){4, {b.n, b.h * b.size, b.w * b.size, b.c}};
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_blocks b;
    EW_TRY(ew_blocks_resolve(c, true, &b));
    ew_blocks_move(&b, c->in[0], c->out[0], true, false);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_blocks b;
    EW_TRY(ew_blocks_resolve(c, true, &b));
    if (c->din[0] && c->dout[0])
        ew_blocks_move(&b, c->dout[0], c->din[0], false, true);
    return EW_OK;
}

static const char *const renames[] = {"size", "blocksize", NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "DCR", .in = {{"2x2x3x8"}}, .n_in = 1, .out_shape = "2x4x6x2"},
    {.name = "CRD", .attrs = "size=3 mode=CRD", .in = {{"1x2x1x18"}}, .n_in = 1,
     .out_shape = "1x6x3x2"},
    {.name = "one channel", .attrs = "mode=CRD", .in = {{"2x3x2x4"}}, .n_in = 1,
     .out_shape = "2x6x4x1"},
    {.name = "one pixel", .attrs = "size=4", .in = {{"1x1x1x48"}}, .n_in = 1,
     .out_shape = "1x4x4x3"},
    {.name = "bytes", .in = {{"1x1x2x4", EW_U8}}, .n_in = 1, .out_shape = "1x2x4x1"},
};
/* clang-format on */

const struct ew_op ew_op_depth_to_space = {
    .name = "depth_to_space",
    .help = "groups of channels become square blocks of pixels",
    .flags = EW_OP_SPATIAL,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_blocks_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_move_cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "DepthToSpace", .rename = renames},
    EW_OP_CASES(cases),
};
