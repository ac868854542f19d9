/* SPDX-License-Identifier: Apache-2.0 */
/* AveragePool: the mean of each window. */
#include "op/pooling.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_pool_attr, win),
    {.name = "ceil_mode", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_pool_attr, ceil_mode),
     .help = "round the output size up"},
    {.name = "count_include_pad", .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_pool_attr, count_include_pad),
     .help = "padding counts as zeros; else it is left out"},
    EW_FIELD_END};
/* clang-format on */

static ew_err forward(const struct ew_call *c)
{
    const struct ew_pool_attr *a = c->attr;
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    return ew_avg_pool_forward(c, &w, a->count_include_pad);
}

static ew_err backward(const struct ew_call *c)
{
    const struct ew_pool_attr *a = c->attr;
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    return ew_avg_pool_backward(c, &w, a->count_include_pad);
}

/* Dilation needs opset 19. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    return ew_pool_export(g, node, n, 19);
}

static const char *const renames[] = {EW_WINDOW_RENAMES, NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2x2", .attrs = "kernel=2x2 stride=2x2",
     .in = {{"2x6x4x3"}}, .n_in = 1, .out_shape = "2x3x2x3"},
    {.name = "3x3, padding left out", .attrs = "kernel=3x3 stride=2x2 pad=1x1x1x1",
     .in = {{"1x7x6x5"}}, .n_in = 1, .out_shape = "1x4x3x5"},
    {.name = "3x3, padding counted", .attrs = "kernel=3x3 pad=1x1x1x1 count_include_pad=true",
     .in = {{"1x4x5x2"}}, .n_in = 1, .out_shape = "1x4x5x2"},
    {.name = "asymmetric", .attrs = "kernel=3x2 pad=0x1x2x0 count_include_pad=true",
     .in = {{"3x5x5x2"}}, .n_in = 1, .out_shape = "3x5x5x2"},
    {.name = "ceil, padding counted", .attrs = "kernel=3x3 stride=2x2 pad=1x1x1x1 ceil_mode=true count_include_pad=true",
     .in = {{"1x6x6x2"}}, .n_in = 1, .out_shape = "1x4x4x2"},
    {.name = "ceil", .attrs = "kernel=3x3 stride=2x2 ceil_mode=true",
     .in = {{"1x6x7x2"}}, .n_in = 1, .out_shape = "1x3x3x2"},
    {.name = "dilation", .attrs = "kernel=2x2 dilation=2x2",
     .in = {{"1x4x5x2"}}, .n_in = 1, .out_shape = "1x2x3x2"},
    {.name = "same lower", .attrs = "kernel=2x2 auto_pad=SAME_LOWER",
     .in = {{"1x3x4x2"}}, .n_in = 1, .out_shape = "1x3x4x2"},
    {.name = "1-D", .attrs = "kernel=3 stride=2",
     .in = {{"2x9x3"}}, .n_in = 1, .out_shape = "2x4x3"},
    {.name = "3-D", .attrs = "kernel=2x2x2",
     .in = {{"1x2x3x3x2"}}, .n_in = 1, .out_shape = "1x1x2x2x2"},
};
/* clang-format on */

const struct ew_op ew_op_average_pool = {
    .name = "average_pool",
    .help = "mean of each window",
    .flags = EW_OP_SPATIAL,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_pool_attr),
    .attrs = attrs,
    .infer = ew_pool_infer_float,
    .cost = ew_pool_cost_sliding,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "AveragePool", .since = 7, .rename = renames, .export = export_node},
    EW_OP_CASES(cases),
};
