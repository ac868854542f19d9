/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup: replaces each byte by its entry of a table, for any unary function of a quantised tensor.
 * ONNX Runtime's quantised functions are imported as float nodes between quantisers, which the
 * lowering pass turns into lookups. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/qlinear.h"
#include "op/shape_attr.h"

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_types_check(c, EW_LOOKUP_X, EW_TYPES_QUANT8));
    EW_TRY(ew_types_check(c, EW_LOOKUP_TABLE, EW_TYPES_QUANT8));
    EW_CHECK(ew_tensor_count(c->in[EW_LOOKUP_TABLE]) == 256, EW_ERR_SHAPE,
             "the table has %lld entries, not 256",
             (long long)ew_tensor_count(c->in[EW_LOOKUP_TABLE]));
    c->out[0]->dtype = c->in[EW_LOOKUP_TABLE]->dtype;
    c->out[0]->shape = c->in[EW_LOOKUP_X]->shape;
    return EW_OK;
}

static ew_err forward(const struct ew_call *c)
{
    const uint8_t *x = c->in[EW_LOOKUP_X]->data, *table = c->in[EW_LOOKUP_TABLE]->data;
    uint8_t *y = c->out[0]->data;
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++)
        y[i] = table[x[i]];
    return EW_OK;
}

static ew_err permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    return EW_OK; /* no axis to update */
}

/* As Gather, whose negative indices count from the end, as int8 does in the table. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    const struct ew_cast_attr to = {.to = EW_S32};
    int in[2] = {n.in[EW_LOOKUP_TABLE], n.in[EW_LOOKUP_X]};
    EW_TRY(ew_graph_add(g, &ew_op_cast, NULL, &to, EW_INPUTS(in[1]), &in[1]));
    return ew_graph_add(g, &ew_op_gather, n.name, NULL, ew_inputs(in, 2), out);
}

static ew_err dequantize(struct ew_graph *g, const int *in, int *out)
{
    return ew_graph_add(g, &ew_op_dequantize_linear, NULL, NULL, ew_inputs(in, 3), out);
}

static ew_err quantize(struct ew_graph *g, const char *name, int value, const int *to, int *out)
{
    return ew_graph_add(g, &ew_op_quantize_linear, name, NULL, EW_INPUTS(value, to[0], to[1]), out);
}

/* y_scale, y_zero_point, then x, scale and zero point of each part. */
static ew_err import_concat(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    const struct ew_concat_attr attr = {.axis = ew_onnx_int(n, "axis", 1)};
    const int parts = (n->n_in - 2) / 3;
    EW_CHECK(parts >= 1 && n->n_in == 2 + 3 * parts, EW_ERR_FORMAT, "%d inputs", n->n_in);
    EW_CLEANUP(ew_free_ptr) int *in = calloc((size_t)parts, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "no memory for %d inputs", parts);
    for (int i = 0; i < parts; i++)
        EW_TRY(dequantize(g, n->in + 2 + 3 * i, &in[i]));
    int value;
    EW_TRY(ew_graph_add(g, &ew_op_concat, n->name, &attr, ew_inputs(in, parts), &value));
    return quantize(g, NULL, value, n->in, out);
}

/* As Softmax of the opset that the node names. */
static ew_err softmax(struct ew_graph *g, const struct ew_onnx_node *n, int *value)
{
    const int from = *value;
    struct ew_onnx_node plain = ew_onnx_with_inputs(n, &from, 1);
    plain.type = "Softmax";
    plain.domain = "";
    plain.opset = (int)ew_onnx_int(n, "opset", 13);
    plain.n_attrs = 0;
    EW_TRY(ew_onnx_set_int(&plain, "axis", ew_onnx_int(n, "axis", plain.opset < 13 ? 1 : -1)));
    return ew_onnx_import(g, &ew_op_softmax, &plain, value);
}

/* x, its scale and zero point, y's scale and zero point. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    if (strcmp(n->type, "QLinearConcat") == 0)
        return import_concat(g, n, out);
    const bool leaky = strcmp(n->type, "QLinearLeakyRelu") == 0;
    const struct ew_scale_attr attr = {.alpha = ew_onnx_float(n, "alpha", 0.01)};
    EW_CHECK(n->n_in == 5, EW_ERR_FORMAT, "%d inputs, needs 5", n->n_in);
    int value;
    EW_TRY(dequantize(g, n->in, &value));
    if (strcmp(n->type, "QLinearSoftmax") == 0)
        EW_TRY(softmax(g, n, &value));
    else
        EW_TRY(ew_graph_add(g, leaky ? &ew_op_leaky_relu : &ew_op_sigmoid, n->name,
                            leaky ? &attr : NULL, EW_INPUTS(value), &value));
    return quantize(g, NULL, value, n->in + 3, out);
}

static const char *const also[] = {"QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat",
                                   "QLinearSoftmax", NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "uint8", .in = {{"2x5x7x11", EW_U8, EW_FILL_BYTES}, {"256", EW_U8, EW_FILL_BYTES, .constant = true}},
     .n_in = 2, .out_shape = "2x5x7x11"},
    {.name = "int8 to uint8", .in = {{"300", EW_S8, EW_FILL_BYTES}, {"256", EW_U8, EW_FILL_BYTES, .constant = true}},
     .n_in = 2, .out_shape = "300"},
};
/* clang-format on */

const struct ew_op ew_op_lookup = {
    .name = "lookup",
    .help = "each byte replaced by its entry of a table of 256",
    .flags = EW_OP_INPLACE,
    .min_in = EW_LOOKUP_INPUTS,
    .max_in = EW_LOOKUP_INPUTS,
    .infer = infer,
    .forward = forward,
    .permute = permute,
    .onnx = {.domain = "com.microsoft", .also = also, .import = import, .expand = expand},
    EW_OP_CASES(cases),
};
