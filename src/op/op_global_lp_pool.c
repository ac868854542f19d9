/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalLpPool: the p-norm of each channel of an image. */
#include "op/pooling.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    {.name = "p", .type = EW_FIELD_INT, .offset = offsetof(struct ew_pool_attr, p), .def = "2",
     .min = 1, .max = 64, .help = "the norm"},
    EW_FIELD_END};
/* clang-format on */

static ew_err forward(const struct ew_call *c)
{
    const struct ew_pool_attr *a = c->attr;
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    return ew_lp_pool_forward(c, &w, a->p);
}

static ew_err backward(const struct ew_call *c)
{
    const struct ew_pool_attr *a = c->attr;
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    return ew_lp_pool_backward(c, &w, a->p);
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2-D",
     .in = {{"3x2x3x4", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = "3x1x1x4"},
    {.name = "p 3", .attrs = "p=3",
     .in = {{"1x5x2", .fill = EW_FILL_AWAY}}, .n_in = 1, .out_shape = "1x1x2"},
};
/* clang-format on */

const struct ew_op ew_op_global_lp_pool = {
    .name = "global_lp_pool",
    .help = "p-norm of each channel",
    .flags = EW_OP_SPATIAL,
    .saves = EW_SAVE_IN0 | EW_SAVE_OUT,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_pool_attr),
    .attrs = attrs,
    .infer = ew_global_infer_float,
    .cost = ew_pool_cost_global,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "GlobalLpPool"},
    EW_OP_CASES(cases),
};
