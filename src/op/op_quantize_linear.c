/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear: round(x / scale) + zero point, saturated. */
#include "graph/onnx.h"
#include "op/dtype_attr.h"
#include "op/quant.h"

extern const struct ew_op ew_op_quantize_linear;

enum { X, SCALE, ZERO };

static const struct ew_field attrs[] = {
    EW_QUANT_FIELDS,
    {.name = "dtype",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct ew_quant_attr, dtype),
     .def = "uint8",
     .choices = ew_dtype_choices,
     .help = "type of the output, where no zero point tells it"},
    EW_FIELD_END};

static ew_err infer(const struct ew_call *c)
{
    const struct ew_quant_attr *a = c->attr;
    const struct ew_tensor *zero = ew_call_in(c, ZERO);
    struct ew_quant_grid grid;
    EW_TRY(ew_types_check(c, X, EW_TYPES_FLOAT | 1 << EW_S32));
    EW_TRY(ew_types_check(c, SCALE, EW_TYPES_FLOAT));
    EW_TRY(ew_quant_resolve(a, c->in[X], c->in[SCALE], zero, &grid));
    const enum ew_dtype to = zero ? zero->dtype : (enum ew_dtype)a->dtype;
    EW_CHECK(EW_TYPES_QUANT >> to & 1, EW_ERR_TYPE, "cannot quantise to %s", ew_dtype_name(to));
    c->out[0]->dtype = to;
    c->out[0]->shape = c->in[X]->shape;
    return EW_OK;
}

/* float32 is divided in float32, as in other runtimes, so that ties round alike. */
static double ratio(const struct ew_tensor *x, int64_t i, const struct ew_tensor *scale, int64_t at)
{
    const double v = ew_tensor_get(x, i), s = ew_tensor_get(scale, at);
    return x->dtype == EW_F64 ? v / s : (double)((float)v / (float)s);
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_tensor *zero = ew_call_in(c, ZERO);
    struct ew_quant_grid grid;
    EW_TRY(ew_quant_resolve(c->attr, c->in[X], c->in[SCALE], zero, &grid));
    for (int64_t i = 0; i < ew_tensor_count(c->in[X]); i++) {
        const int64_t at = ew_quant_at(&grid, i), z = zero ? ew_tensor_get_int(zero, at) : 0;
        const int64_t q = ew_quant_round(ratio(c->in[X], i, c->in[SCALE], at), z, c->out[0]->dtype);
        ew_tensor_store_int(c->out[0], i, 1, &q);
    }
    return EW_OK;
}

/* `saturate` concerns the 8-bit floats only, which are not supported. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    static const char *const ignore[] = {"saturate", "output_dtype", "precision", NULL};
    struct ew_quant_attr attr;
    EW_TRY(ew_onnx_fill(&ew_op_quantize_linear, n, ignore, &attr));
    const int64_t precision = ew_onnx_int(n, "precision", 0);
    EW_CHECK(precision == 0 || precision == ew_dtype_onnx(EW_F32), EW_ERR_UNSUPPORTED,
             "precision is element type %lld, only float32 is supported", (long long)precision);
    if (ew_onnx_int(n, "output_dtype", 0) != 0) {
        enum ew_dtype dtype;
        EW_TRY(ew_dtype_attr(n, "output_dtype", EW_U8, &dtype));
        attr.dtype = (int)dtype;
    }
    return ew_onnx_import_default(g, &ew_op_quantize_linear, n, &attr, out);
}

/* Before opset 21 the zero point determines the type. */
static ew_err export_node(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_node *from = &g->nodes[node];
    const struct ew_quant_attr *a = from->attr;
    if ((from->n_in <= ZERO || from->in[ZERO] < 0) && a->dtype != EW_U8) {
        struct ew_tensor zero = {.dtype = (enum ew_dtype)a->dtype,
                                 .shape = g->values[from->in[SCALE]].t.shape};
        zero.data = ew_arena_alloc(n->arena, ew_tensor_bytes(&zero)); /* zeroed */
        EW_CHECK(zero.data, EW_ERR_MEMORY, "%s: no memory", n->name);
        EW_TRY(ew_onnx_set_input(n, ZERO, &zero));
    }
    return ew_quant_export(g, node, n);
}

static const char *const also[] = {"com.microsoft:QuantizeLinear", NULL};
static const char *const rename[] = {"dtype", NULL, NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "one scale", .in = {{"2x3x4"}, {"", .fill = EW_FILL_POSITIVE}, {"", EW_U8}},
     .n_in = 3, .out_shape = "2x3x4"},
    {.name = "no zero point", .attrs = "dtype=int8",
     .in = {{"7"}, {"", EW_F32, EW_FILL_VALUES, .values = "0.01"}}, .n_in = 2, .out_shape = "7"},
    {.name = "by channel",
     .in = {{"2x3x4"}, {"3", .fill = EW_FILL_POSITIVE}, {"3", EW_S8}}, .n_in = 3,
     .out_shape = "2x3x4"},
    {.name = "by last axis, 16 bits", .attrs = "axis=-1",
     .in = {{"2x3x4"}, {"4", .fill = EW_FILL_POSITIVE}, {"4", EW_S16}}, .n_in = 3,
     .out_shape = "2x3x4"},
    {.name = "blocks", .attrs = "axis=1 block_size=2",
     .in = {{"2x5x3"}, {"2x3x3", .fill = EW_FILL_POSITIVE}, {"2x3x3", EW_U8}}, .n_in = 3,
     .out_shape = "2x5x3"},
};
/* clang-format on */

const struct ew_op ew_op_quantize_linear = {
    .name = "quantize_linear",
    .help = "floating numbers to integers with a scale and a zero point",
    .min_in = 2,
    .max_in = 3,
    .attr_size = sizeof(struct ew_quant_attr),
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .permute = ew_quant_permute,
    .onnx = {.type = "QuantizeLinear",
             .since = 10,
             .rename = rename,
             .also = also,
             .import = import,
             .export = export_node},
    EW_OP_CASES(cases),
};
