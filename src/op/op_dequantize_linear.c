/* SPDX-License-Identifier: Apache-2.0 */
/* DequantizeLinear: (x - zero point) * scale. */
#include "op/dtype_attr.h"
#include "op/quant.h"

extern const struct ew_op ew_op_dequantize_linear;

enum { X, SCALE, ZERO };

static const struct ew_field attrs[] = {EW_QUANT_FIELDS, EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    struct ew_quant_grid grid;
    EW_TRY(ew_types_check(c, X, EW_TYPES_QUANT | 1 << EW_S32));
    EW_TRY(ew_types_check(c, SCALE, EW_TYPES_FLOAT));
    EW_TRY(ew_types_same(c, ZERO));
    EW_TRY(ew_quant_resolve(c->attr, c->in[X], c->in[SCALE], ew_call_in(c, ZERO), &grid));
    c->out[0]->dtype = c->in[SCALE]->dtype;
    c->out[0]->shape = c->in[X]->shape;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_tensor *zero = ew_call_in(c, ZERO);
    struct ew_quant_grid grid;
    EW_TRY(ew_quant_resolve(c->attr, c->in[X], c->in[SCALE], zero, &grid));
    for (int64_t i = 0; i < ew_tensor_count(c->in[X]); i++) {
        const int64_t at = ew_quant_at(&grid, i), z = zero ? ew_tensor_get_int(zero, at) : 0;
        const double v = (double)(ew_tensor_get_int(c->in[X], i) - z);
        const double y = v * ew_tensor_get(c->in[SCALE], at); /* one rounding: when it is stored */
        ew_tensor_store(c->out[0], i, 1, &y);
    }
    return EW_OK;
}

/* Since opset 23 the output type may differ from the scale's. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"output_dtype", NULL};
    struct ew_quant_attr attr;
    EW_TRY(ew_onnx_fill(&ew_op_dequantize_linear, n, ignore, &attr));
    EW_CHECK(n->n_in >= 2 && n->in[SCALE] >= 0, EW_ERR_FORMAT, "has no scale");
    const enum ew_dtype scale = g->values[n->in[SCALE]].t.dtype;
    enum ew_dtype to = scale;
    if (ew_onnx_int(n, "output_dtype", 0) != 0)
        EW_TRY(ew_dtype_attr(n, "output_dtype", scale, &to));
    EW_CHECK(to == scale, EW_ERR_UNSUPPORTED, "output_dtype is %s, the scale's is %s",
             ew_dtype_name(to), ew_dtype_name(scale));
    return ew_onnx_import_default(g, &ew_op_dequantize_linear, n, &attr, out);
}

static const char *const also[] = {"com.microsoft:DequantizeLinear", NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "one scale", .in = {{"2x3x4", EW_U8}, {"", .fill = EW_FILL_POSITIVE}, {"", EW_U8}},
     .n_in = 3, .out_shape = "2x3x4"},
    {.name = "no zero point", .in = {{"7", EW_S32}, {"", .fill = EW_FILL_POSITIVE}}, .n_in = 2,
     .out_shape = "7"},
    {.name = "by channel",
     .in = {{"2x3x4", EW_S8}, {"3", .fill = EW_FILL_POSITIVE}, {"3", EW_S8}}, .n_in = 3,
     .out_shape = "2x3x4"},
    {.name = "blocks", .attrs = "axis=-1 block_size=3",
     .in = {{"2x7", EW_S16}, {"2x3", .fill = EW_FILL_POSITIVE}, {"2x3", EW_S16}}, .n_in = 3,
     .out_shape = "2x7"},
};
/* clang-format on */

const struct ew_op ew_op_dequantize_linear = {
    .name = "dequantize_linear",
    .help = "integers with a scale and a zero point to floating numbers",
    .flags = EW_OP_NO_FOLD,
    .min_in = 2,
    .max_in = 3,
    .attr_size = sizeof(struct ew_quant_attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .permute = ew_quant_permute,
    .onnx = {.type = "DequantizeLinear",
             .since = 10,
             .also = also,
             .import = import,
             .export = ew_quant_export},
    EW_OP_CASES(cases),
};
