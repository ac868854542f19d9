/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearGlobalAveragePool of ONNX Runtime: the mean over all pixels of a quantised tensor. */
#include "graph/onnx.h"
#include "op/qlinear.h"

extern const struct ew_op ew_op_qlinear_global_average_pool;

static ew_err infer(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    return ew_qpool_infer(c, &w);
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_window w;
    if (ew_global_resolve(c, &w) == EW_OK)
        ew_pool_cost(c, &w, out);
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_global_resolve(c, &w));
    return ew_qpool_forward(c, &w, false);
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"channels_last", NULL};
    EW_CHECK(ew_onnx_int(n, "channels_last", 0) == 0, EW_ERR_UNSUPPORTED, "channels_last is set");
    EW_TRY(ew_onnx_fill(&ew_op_qlinear_global_average_pool, n, ignore, NULL));
    struct ew_onnx_node plain = *n;
    plain.n_attrs = 0;
    return ew_onnx_import_default(g, &ew_op_qlinear_global_average_pool, &plain, NULL, out);
}

/* clang-format off */
#define SCALE {"", .fill = EW_FILL_POSITIVE, .constant = true}
#define BYTE(value, type) {"", type, EW_FILL_VALUES, .values = value, .constant = true}
#define BYTES(shape, type) {shape, type, EW_FILL_BYTES}

static const struct ew_op_case cases[] = {
    {.name = "2-D", .in = {BYTES("2x7x7x70", EW_U8), SCALE, BYTE("100", EW_U8), SCALE,
                           BYTE("90", EW_U8)},
     .n_in = 5, .out_shape = "2x1x1x70"},
    {.name = "1-D, int8", .in = {BYTES("2x5x3", EW_S8), SCALE, BYTE("10", EW_S8), SCALE,
                                 BYTE("-9", EW_S8)},
     .n_in = 5, .out_shape = "2x1x3"},
};
/* clang-format on */

const struct ew_op ew_op_qlinear_global_average_pool = {
    .name = "qlinear_global_average_pool",
    .help = "mean over all pixels of a quantised tensor, quantised again",
    .flags = EW_OP_SPATIAL,
    .min_in = EW_QPOOL_INPUTS,
    .max_in = EW_QPOOL_INPUTS,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .onnx = {.type = "QLinearGlobalAveragePool", .domain = "com.microsoft", .import = import},
    EW_OP_CASES(cases),
};
