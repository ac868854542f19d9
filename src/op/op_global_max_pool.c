/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalMaxPool: the largest element of each channel of an image. */
#include "op/pooling.h"

static ew_err infer(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    ew_pool_shape(c, &w);
    return EW_OK;
}

static size_t aux(const struct ew_call *c)
{
    struct ew_window w;
    return ew_global_resolve(c, &w) == EW_OK ? ew_max_pool_aux(&w) : 0;
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    return ew_max_pool_forward(c, &w, false);
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    return ew_max_pool_backward(c, &w);
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2-D",
     .in = {{"3x4x5x6", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "3x1x1x6"},
    {.name = "1-D",
     .in = {{"1x7x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x1x2"},
    {.name = "3-D",
     .in = {{"2x2x3x2x3", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "2x1x1x1x3"},
    {.name = "large",
     .in = {{"1x17x16x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x1x1x2"},
};
/* clang-format on */

const struct ew_op ew_op_global_max_pool = {
    .name = "global_max_pool",
    .help = "largest element of each channel",
    .flags = EW_OP_SPATIAL,
    .saves = EW_SAVE_AUX,
    .min_in = 1,
    .max_in = 1,
    .infer = infer,
    .cost = ew_pool_cost_global,
    .aux = aux,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "GlobalMaxPool"},
    EW_OP_CASES(cases),
};
