/* SPDX-License-Identifier: Apache-2.0 */
/* Add: a + b with broadcasting. */
#include <string.h>

#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/pointwise.h"

extern const struct ew_op ew_op_add;

static double f(double a, double b)
{
    return a + b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void df(double a, double b, double *ga, double *gb)
{
    *ga = 1;
    *gb = 1;
}

EW_BINARY_FORWARD(f, fi)
EW_BINARY_BACKWARD(df)

/* Legacy ImageScaler: x * scale + bias per channel of [N, C, H, W]. */
static ew_err import_scaler(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    const struct ew_onnx_attr *bias = ew_onnx_attr(n, "bias");
    EW_CHECK(n->n_in == 1 && n->in[0] >= 0, EW_ERR_FORMAT, "needs one input");
    EW_CHECK(bias && bias->type == EW_ONNX_FLOATS, EW_ERR_FORMAT, "has no bias");
    struct ew_tensor t = {.dtype = EW_F32, .shape = {4, {1, bias->n, 1, 1}}};
    t.data = ew_arena_alloc(&g->arena, ew_tensor_bytes(&t));
    EW_CHECK(t.data, EW_ERR_MEMORY, "no memory for its bias");
    if (bias->n)
        memcpy(t.data, bias->floats, ew_tensor_bytes(&t));
    int in[2] = {n->in[0]};
    EW_TRY(ew_onnx_scalar(g, EW_F32, ew_onnx_float(n, "scale", 1), &in[1]));
    EW_TRY(ew_graph_add(g, &ew_op_mul, NULL, NULL, ew_inputs(in, 2), &in[0]));
    EW_TRY(ew_graph_const(g, NULL, EW_VALUE_CONST, &t, false, &in[1]));
    return ew_graph_add(g, &ew_op_add, n->name, NULL, ew_inputs(in, 2), out);
}

/* Legacy Affine: alpha x + beta. */
static ew_err import_affine(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    EW_CHECK(n->n_in == 1 && n->in[0] >= 0, EW_ERR_FORMAT, "needs one input");
    int in[2] = {n->in[0]};
    const enum ew_dtype dtype = g->values[in[0]].t.dtype;
    EW_TRY(ew_onnx_scalar(g, dtype, ew_onnx_float(n, "alpha", 1), &in[1]));
    EW_TRY(ew_graph_add(g, &ew_op_mul, NULL, NULL, ew_inputs(in, 2), &in[0]));
    EW_TRY(ew_onnx_scalar(g, dtype, ew_onnx_float(n, "beta", 0), &in[1]));
    return ew_graph_add(g, &ew_op_add, n->name, NULL, ew_inputs(in, 2), out);
}

static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    if (strcmp(n->type, "ImageScaler") == 0)
        return import_scaler(g, n, out);
    if (strcmp(n->type, "Affine") == 0)
        return import_affine(g, n, out);
    return ew_onnx_import_default(g, &ew_op_add, n, NULL, out);
}

static const char *const also[] = {"ImageScaler", "Affine", NULL};

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3x4"}, {"2x3x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "bias", .in = {{"2x3x4"}, {"4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "both", .in = {{"2x1x4"}, {"3x1"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "int", .in = {{"4", EW_S64}, {"", EW_S64}}, .n_in = 2, .out_shape = "4"},
    {.name = "nothing", .in = {{"0x3"}, {"3"}}, .n_in = 2, .out_shape = "0x3"},
};

const struct ew_op ew_op_add = {
    .name = "add",
    .help = "a + b, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    EW_ARITHMETIC_OP(.type = "Add", .also = also, .import = import),
    EW_OP_CASES(cases),
};
