/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul: the batched matrix product with broadcasting, as in NumPy. */
#include <string.h>

#include "graph/layout.h"
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/attention.h"
#include "op/product.h"
#include "op/quant.h"

#define TYPES (EW_TYPES_FLOAT | 1 << EW_S32 | 1 << EW_U32 | 1 << EW_S64 | 1 << EW_U64)

static ew_err infer(const struct ew_call *c)
{
    struct ew_stacks s;
    EW_TRY(ew_types_check(c, 0, TYPES));
    EW_TRY(ew_types_same(c, 1));
    EW_TRY(ew_stacks_of(c->in[0], c->in[1], &s));
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = s.out;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_stacks s;
    if (ew_stacks_of(c->in[0], c->in[1], &s) == EW_OK)
        ew_stacks_cost(&s, out);
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_stacks s;
    EW_TRY(ew_stacks_of(c->in[0], c->in[1], &s));
    memset(c->out[0]->data, 0, ew_tensor_bytes(c->out[0]));
    for (int64_t i = 0; i < ew_shape_count(&s.batch); i++) {
        int64_t a, b;
        ew_stacks_locate(&s, i, &a, &b);
        ew_product_add(&(struct ew_product){.m = s.m,
                                            .n = s.n,
                                            .k = s.k,
                                            .a = {c->in[0], a * s.m * s.k, s.k, 1},
                                            .b = {c->in[1], b * s.k * s.n, s.n, 1},
                                            .out = c->out[0],
                                            .out_start = i * s.m * s.n,
                                            .alpha = 1});
    }
    return EW_OK;
}

/* dA = dY B', dB = A' dY, matrix by matrix; gradients of broadcast matrices accumulate. */
static ew_err backward(const struct ew_call *c)
{
    struct ew_stacks s;
    if (!c->dout[0])
        return EW_OK;
    EW_TRY(ew_stacks_of(c->in[0], c->in[1], &s));
    for (int64_t i = 0; i < ew_shape_count(&s.batch); i++) {
        int64_t a, b;
        ew_stacks_locate(&s, i, &a, &b);
        const int64_t at_a = a * s.m * s.k, at_b = b * s.k * s.n;
        const struct ew_matrix g = {c->dout[0], i * s.m * s.n, s.n, 1};
        const struct ew_matrix bt = {c->in[1], at_b, 1, s.n}, at = {c->in[0], at_a, 1, s.k};
        if (c->din[0])
            ew_product_add(&(struct ew_product){s.m, s.k, s.n, g, bt, c->din[0], at_a, 1});
        if (c->din[1])
            ew_product_add(&(struct ew_product){s.k, s.n, s.m, at, g, c->din[1], at_b, 1});
    }
    return EW_OK;
}

/* Transposes the last two axes. */
static ew_err add_transpose(struct ew_graph *g, int value, int *out)
{
    struct ew_transpose_attr attr = {.perm.n = g->values[value].t.shape.rank};
    const int rank = attr.perm.n;
    for (int i = 0; i < rank; i++)
        attr.perm.v[i] = rank > 1 && i >= rank - 2 ? 2 * rank - 3 - i : i;
    return ew_graph_add(g, &ew_op_transpose, NULL, &attr, EW_INPUTS(value), out);
}

/* With one scale, or one per column. */
static ew_err dequantize(struct ew_graph *g, int value, int scale, int zero, int *out)
{
    const struct ew_quant_attr last = {.axis = -1};
    const int in[] = {value, scale, zero};
    return ew_graph_add(g, &ew_op_dequantize_linear, NULL, &last, ew_inputs(in, zero < 0 ? 2 : 3),
                        out);
}

/* ONNX Runtime's products of dynamically quantised networks: MatMulIntegerToFloat(a, b, a's scale,
 * b's, zero points, bias), and DynamicQuantizeMatMul, whose a is float: (a, b, b's scale, zero
 * point, bias). */
static ew_err import_quantized(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    const bool dynamic = strcmp(n->type, "DynamicQuantizeMatMul") == 0;
    const int first = dynamic ? 2 : 3; /* b's scale */
    int in[7], a[3];
    EW_CHECK(n->n_in > first, EW_ERR_FORMAT, "has %d inputs, needs %d", n->n_in, first + 1);
    for (int i = 0; i < 7; i++)
        in[i] = i < n->n_in ? n->in[i] : -1;
    if (dynamic) {
        const struct ew_node q = {
            .op = &ew_op_dynamic_quantize_linear, .in = in, .n_in = 1, .n_out = 3};
        EW_TRY(ew_graph_add_node(g, &q, a));
    } else {
        a[0] = in[0];
        a[1] = in[2];
        a[2] = in[4];
    }
    const int zero = dynamic ? in[3] : in[5], bias = dynamic ? in[4] : in[6];
    int parts[2];
    EW_TRY(dequantize(g, a[0], a[1], a[2], &parts[0]));
    EW_TRY(dequantize(g, in[1], in[first], zero, &parts[1]));
    EW_TRY(ew_graph_add(g, &ew_op_matmul, n->name, NULL, ew_inputs(parts, 2), out));
    if (bias < 0)
        return EW_OK;
    const int product = *out;
    return ew_graph_add(g, &ew_op_add, NULL, NULL, EW_INPUTS(product, bias), out);
}

/* Attention (op/attention.h), or ONNX Runtime's FusedMatMul: alpha times the product of matrices
 * that may be stored transposed. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    const double alpha = ew_onnx_float(n, "alpha", 1);
    if (strstr(n->type, "Attention"))
        return ew_attention_import(g, n, out);
    if (!*n->domain)
        return ew_onnx_import_default(g, &ew_op_matmul, n, NULL, out);
    if (strstr(n->type, "Quantize") || strstr(n->type, "Integer"))
        return import_quantized(g, n, out);
    EW_CHECK(n->n_in == 2 && n->in[0] >= 0 && n->in[1] >= 0, EW_ERR_FORMAT, "needs two inputs");
    EW_CHECK(!ew_onnx_int(n, "transBatchA", 0) && !ew_onnx_int(n, "transBatchB", 0),
             EW_ERR_UNSUPPORTED, "transposed batches are not supported");
    int in[2] = {n->in[0], n->in[1]};
    if (ew_onnx_int(n, "transA", 0))
        EW_TRY(add_transpose(g, in[0], &in[0]));
    if (ew_onnx_int(n, "transB", 0))
        EW_TRY(add_transpose(g, in[1], &in[1]));
    EW_TRY(ew_graph_add(g, &ew_op_matmul, n->name, NULL, ew_inputs(in, 2), out));
    if (!(alpha < 1) && !(alpha > 1))
        return EW_OK;
    int scaled[2] = {out[0]};
    EW_TRY(ew_onnx_scalar(g, g->values[out[0]].t.dtype, alpha, &scaled[1]));
    return ew_graph_add(g, &ew_op_mul, NULL, NULL, ew_inputs(scaled, 2), out);
}

static const char *const also[] = {"com.microsoft:FusedMatMul",
                                   "com.microsoft:TransposeMatMul",
                                   "com.microsoft:Attention",
                                   "com.microsoft:MultiHeadAttention",
                                   "com.microsoft:MatMulIntegerToFloat",
                                   "com.microsoft:DynamicQuantizeMatMul",
                                   "Attention",
                                   NULL};

static const struct ew_op_case cases[] = {
    {.name = "matrices", .in = {{"3x5"}, {"5x4"}}, .n_in = 2, .out_shape = "3x4"},
    {.name = "stack", .in = {{"2x3x5"}, {"2x5x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "shared right", .in = {{"2x3x5"}, {"5x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "both broadcast", .in = {{"2x1x3x2"}, {"3x2x2"}}, .n_in = 2, .out_shape = "2x3x3x2"},
    {.name = "several blocks", .in = {{"15x300"}, {"300x37"}}, .n_in = 2, .out_shape = "15x37"},
    {.name = "heads", .in = {{"2x2x17x9"}, {"2x2x9x18"}}, .n_in = 2, .out_shape = "2x2x17x18"},
    {.name = "shared left", .in = {{"9x7"}, {"3x7x5"}}, .n_in = 2, .out_shape = "3x9x5"},
    {.name = "vector left", .in = {{"5"}, {"2x5x4"}}, .n_in = 2, .out_shape = "2x4"},
    {.name = "vector right", .in = {{"2x3x5"}, {"5"}}, .n_in = 2, .out_shape = "2x3"},
    {.name = "dot", .in = {{"6"}, {"6"}}, .n_in = 2, .out_shape = ""},
    {.name = "int", .in = {{"2x3", EW_S64}, {"3x2", EW_S64}}, .n_in = 2, .out_shape = "2x2"},
    {.name = "bfloat", .in = {{"2x3", EW_BF16}, {"3x2", EW_BF16}}, .n_in = 2, .out_shape = "2x2"},
    {.name = "nothing", .in = {{"0x3"}, {"3x2"}}, .n_in = 2, .out_shape = "0x2"},
};

const struct ew_op ew_op_matmul = {
    .name = "matmul",
    .help = "product of matrices, or of stacks of them with broadcasting",
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .layer = EW_LAYER_MATMUL,
    .min_in = 2,
    .max_in = 2,
    .param_in = 1 << 1,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "MatMul", .also = also, .import = import},
    EW_OP_CASES(cases),
};
