/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalAveragePool: the mean of each channel of an image. */
#include "op/pooling.h"

static ew_err forward(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    return ew_avg_pool_forward(c, &w, false);
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    return ew_avg_pool_backward(c, &w, false);
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2-D",
     .in = {{"3x4x5x6"}}, .n_in = 1, .out_shape = "3x1x1x6"},
    {.name = "1-D",
     .in = {{"1x7x2"}}, .n_in = 1, .out_shape = "1x1x2"},
    {.name = "3-D",
     .in = {{"2x2x3x2x3"}}, .n_in = 1, .out_shape = "2x1x1x1x3"},
    {.name = "many channels",
     .in = {{"1x2x2x300"}}, .n_in = 1, .out_shape = "1x1x1x300"},
};
/* clang-format on */

const struct ew_op ew_op_global_average_pool = {
    .name = "global_average_pool",
    .help = "mean of each channel",
    .flags = EW_OP_SPATIAL | EW_OP_MEAN,
    .min_in = 1,
    .max_in = 1,
    .infer = ew_global_infer_float,
    /* thop counts pooling modules, not function calls: networks that pool by a call use this
     * operator, the others adaptive_avg_pool. */
    .cost = ew_pool_cost_global,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "GlobalAveragePool"},
    EW_OP_CASES(cases),
};
