/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive average pool: the mean over windows that divide the input evenly. */
#include "op/pooling.h"
#include "op/types.h"

static ew_err infer(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_TRY(ew_adaptive_resolve(c, &w));
    ew_pool_shape(c, &w);
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_window w;
    if (ew_adaptive_resolve(c, &w) == EW_OK)
        ew_adaptive_cost(c, &w, out);
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_adaptive_resolve(c, &w));
    return ew_avg_pool_forward(c, &w, false);
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_adaptive_resolve(c, &w));
    return ew_avg_pool_backward(c, &w, false);
}

static ew_err export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    return ew_adaptive_export(g, node, n, "GlobalAveragePool", "AveragePool");
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "to one", .attrs = "size=1x1",
     .in = {{"3x4x5x6"}}, .n_in = 1, .out_shape = "3x1x1x6"},
    {.name = "even", .attrs = "size=2x3",
     .in = {{"1x6x6x2"}}, .n_in = 1, .out_shape = "1x2x3x2"},
    {.name = "uneven", .attrs = "size=3x4",
     .in = {{"2x7x6x3"}}, .n_in = 1, .out_shape = "2x3x4x3"},
    {.name = "larger than the input", .attrs = "size=5x7",
     .in = {{"1x3x7x2"}}, .n_in = 1, .out_shape = "1x5x7x2"},
    {.name = "1-D", .attrs = "size=3",
     .in = {{"2x8x2"}}, .n_in = 1, .out_shape = "2x3x2"},
    {.name = "3-D", .attrs = "size=1x2x2",
     .in = {{"1x2x3x4x2"}}, .n_in = 1, .out_shape = "1x1x2x2x2"},
};
/* clang-format on */

const struct ew_op ew_op_adaptive_avg_pool = {
    .name = "adaptive_avg_pool",
    .help = "mean of windows for a given output size",
    .flags = EW_OP_SPATIAL | EW_OP_MEAN,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_adaptive_attr),
    .attrs = ew_adaptive_fields,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.export = export},
    EW_OP_CASES(cases),
};
