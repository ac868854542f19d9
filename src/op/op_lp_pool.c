/* SPDX-License-Identifier: Apache-2.0 */
/* LpPool: the p-norm of each window. */
#include "graph/onnx.h"
#include "op/pooling.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_pool_attr, win),
    {.name = "ceil_mode", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_pool_attr, ceil_mode),
     .help = "round the output size up"},
    {.name = "p", .type = EW_FIELD_INT, .offset = offsetof(struct ew_pool_attr, p), .def = "2",
     .min = 1, .max = 64, .help = "the norm"},
    EW_FIELD_END};
/* clang-format on */

static ew_err forward(const struct ew_call *c)
{
    const struct ew_pool_attr *a = c->attr;
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    return ew_lp_pool_forward(c, &w, a->p);
}

static ew_err backward(const struct ew_call *c)
{
    const struct ew_pool_attr *a = c->attr;
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    return ew_lp_pool_backward(c, &w, a->p);
}

/* Dilation and ceil_mode need opset 18. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_pool_attr *a = g->nodes[node].attr;
    EW_TRY(ew_pool_export(g, node, n, 18));
    if (a->ceil_mode && n->opset < 18)
        n->opset = 18;
    if (n->opset < 18)
        ew_onnx_drop(n, "ceil_mode");
    return EW_OK;
}

static const char *const renames[] = {EW_WINDOW_RENAMES, NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2x2", .attrs = "kernel=2x2 stride=2x2",
     .in = {{"2x4x4x3", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = "2x2x2x3"},
    {.name = "p 3, padded", .attrs = "kernel=3x3 pad=1x1x1x1 p=3",
     .in = {{"1x4x5x2", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = "1x4x5x2"},
    {.name = "p 1", .attrs = "kernel=2 p=1",
     .in = {{"1x5x2", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = "1x4x2"},
    {.name = "3-D", .attrs = "kernel=2x2x2",
     .in = {{"1x3x2x3x2", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = "1x2x1x2x2"},
};
/* clang-format on */

const struct ew_op ew_op_lp_pool = {
    .name = "lp_pool",
    .help = "p-norm of each window",
    .flags = EW_OP_SPATIAL,
    .saves = EW_SAVE_IN0 | EW_SAVE_OUT,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_pool_attr),
    .attrs = attrs,
    .infer = ew_pool_infer_float,
    .cost = ew_pool_cost_sliding,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "LpPool", .rename = renames, .export = export_node},
    EW_OP_CASES(cases),
};
