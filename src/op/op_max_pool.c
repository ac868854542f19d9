/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool: the largest element of each window, and optionally its index. */
#include "op/pooling.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_pool_attr, win),
    {.name = "ceil_mode", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_pool_attr, ceil_mode),
     .help = "round the output size up"},
    {.name = "storage_order", .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_pool_attr, storage_order), .min = 0, .max = 1,
     .help = "1: Indices count along columns"},
    EW_FIELD_END};
/* clang-format on */

static ew_err infer(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    ew_pool_shape(c, &w);
    if (c->n_out > 1 && c->out[1])
        c->out[1]->dtype = EW_S64;
    return EW_OK;
}

static size_t aux(const struct ew_call *c)
{
    struct ew_window w;
    return ew_pool_resolve(c, &w) == EW_OK ? ew_max_pool_aux(&w) : 0;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_pool_attr *a = c->attr;
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    return ew_max_pool_forward(c, &w, a->storage_order == 1);
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    return ew_max_pool_backward(c, &w);
}

static const char *const renames[] = {EW_WINDOW_RENAMES, NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "2x2", .attrs = "kernel=2x2 stride=2x2",
     .in = {{"2x6x4x3", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "2x3x2x3"},
    {.name = "3x3, stride 2, padded", .attrs = "kernel=3x3 stride=2x2 pad=1x1x1x1",
     .in = {{"1x7x6x5", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x4x3x5"},
    {.name = "asymmetric", .attrs = "kernel=3x2 stride=1x2 pad=0x1x2x0",
     .in = {{"3x5x5x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "3x5x3x2"},
    {.name = "dilation", .attrs = "kernel=2x2 dilation=2x3",
     .in = {{"1x5x6x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x3x3x2"},
    {.name = "ceil", .attrs = "kernel=3x3 stride=2x2 ceil_mode=true",
     .in = {{"1x6x7x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x3x3x2"},
    {.name = "ceil, last window in the padding", .attrs = "kernel=1x1 stride=2x2 ceil_mode=true",
     .in = {{"1x2x3x1", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x1x2x1"},
    {.name = "same upper", .attrs = "kernel=2x2 auto_pad=SAME_UPPER",
     .in = {{"1x3x4x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x3x4x2"},
    {.name = "same lower", .attrs = "kernel=3x3 stride=2x2 auto_pad=SAME_LOWER",
     .in = {{"1x4x4x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x2x2x2"},
    {.name = "1-D", .attrs = "kernel=3 stride=2",
     .in = {{"2x9x3", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "2x4x3"},
    {.name = "3-D", .attrs = "kernel=2x3x2 stride=2x1x2",
     .in = {{"1x4x3x5x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x2x1x2x2"},
    {.name = "indices", .attrs = "kernel=2x2 stride=2x2",
     .in = {{"2x4x4x3", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .n_out = 2, .out_shape = "2x2x2x3"},
    {.name = "indices by columns", .attrs = "kernel=2x2 storage_order=1",
     .in = {{"1x3x4x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .n_out = 2, .out_shape = "1x2x3x2"},
    {.name = "bytes", .attrs = "kernel=3x3 stride=2x2 pad=1x1x1x1",
     .in = {{"2x7x6x70", EW_U8, EW_FILL_BYTES}}, .n_in = 1, .out_shape = "2x4x3x70"},
    {.name = "signed bytes", .attrs = "kernel=2x2 dilation=2x1 ceil_mode=true stride=2x2",
     .in = {{"1x7x6x5", EW_S8, EW_FILL_BYTES}}, .n_in = 1, .out_shape = "1x3x3x5"},
    {.name = "whole", .attrs = "kernel=17x17",
     .in = {{"1x17x17x2", .fill = EW_FILL_DISTINCT}}, .n_in = 1, .out_shape = "1x1x1x2"},
};
/* clang-format on */

const struct ew_op ew_op_max_pool = {
    .name = "max_pool",
    .help = "largest element of each window",
    .flags = EW_OP_SPATIAL | EW_OP_ZEROS_PASS,
    .saves = EW_SAVE_AUX,
    .min_in = 1,
    .max_in = 1,
    .max_out = 2,
    .attr_size = sizeof(struct ew_pool_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = ew_pool_cost_sliding,
    .aux = aux,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "MaxPool", .rename = renames},
    EW_OP_CASES(cases),
};
