/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAveragePool of ONNX Runtime: the mean of each window of a quantised tensor. */
#include "graph/onnx.h"
#include "op/qlinear.h"

extern const struct ew_op ew_op_qlinear_average_pool;

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

static ew_err infer(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    return ew_qpool_infer(c, &w);
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_window w;
    if (ew_pool_resolve(c, &w) == EW_OK)
        ew_pool_cost(c, &w, out);
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_pool_attr *a = c->attr;
    struct ew_window w;
    EW_TRY(ew_pool_resolve(c, &w));
    return ew_qpool_forward(c, &w, a->count_include_pad);
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"channels_last", NULL};
    struct ew_pool_attr attr;
    EW_CHECK(ew_onnx_int(n, "channels_last", 0) == 0, EW_ERR_UNSUPPORTED, "channels_last is set");
    EW_TRY(ew_onnx_fill(&ew_op_qlinear_average_pool, n, ignore, &attr));
    return ew_onnx_import_default(g, &ew_op_qlinear_average_pool, n, &attr, out);
}

static const char *const renames[] = {EW_WINDOW_RENAMES, NULL};

/* clang-format off */
#define SCALE {"", .fill = EW_FILL_POSITIVE, .constant = true}
#define BYTE(value, type) {"", type, EW_FILL_VALUES, .values = value, .constant = true}
#define BYTES(shape, type) {shape, type, EW_FILL_BYTES}

static const struct ew_op_case cases[] = {
    {.name = "2x2", .attrs = "kernel=2x2 stride=2x2",
     .in = {BYTES("2x6x4x35", EW_U8), SCALE, BYTE("100", EW_U8), SCALE, BYTE("90", EW_U8)},
     .n_in = 5, .out_shape = "2x3x2x35"},
    {.name = "3x3, padding left out, int8", .attrs = "kernel=3x3 stride=2x2 pad=1x1x1x1",
     .in = {BYTES("1x7x6x5", EW_S8), SCALE, BYTE("-100", EW_S8), SCALE, BYTE("-9", EW_S8)},
     .n_in = 5, .out_shape = "1x4x3x5"},
    {.name = "3x3, padding counted", .attrs = "kernel=3x3 pad=1x1x1x1 count_include_pad=true",
     .in = {BYTES("1x4x5x2", EW_U8), SCALE, BYTE("100", EW_U8), SCALE, BYTE("90", EW_U8)},
     .n_in = 5, .out_shape = "1x4x5x2"},
};
/* clang-format on */

const struct ew_op ew_op_qlinear_average_pool = {
    .name = "qlinear_average_pool",
    .help = "mean of each window of a quantised tensor, quantised again",
    .flags = EW_OP_SPATIAL,
    .min_in = EW_QPOOL_INPUTS,
    .max_in = EW_QPOOL_INPUTS,
    .attr_size = sizeof(struct ew_pool_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .onnx = {.type = "QLinearAveragePool",
             .domain = "com.microsoft",
             .rename = renames,
             .import = import},
    EW_OP_CASES(cases),
};
