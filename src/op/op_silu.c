/* SPDX-License-Identifier: Apache-2.0 */
/* SiLU (swish): x times the sigmoid of x. */
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return x / (1 + exp(-x));
}

static double df(double x, double y, const void *attr)
{
    const double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 4 * ew_tensor_count(c->out[0]);
}

/* x Sigmoid(x), which the import of Mul recognises. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    int in[2] = {n.in[0]};
    EW_TRY(ew_graph_add(g, &ew_op_sigmoid, NULL, NULL, ew_inputs(in, 1), &in[1]));
    return ew_graph_add(g, &ew_op_mul, n.name, NULL, ew_inputs(in, 2), out);
}

/* x Sigmoid(alpha x): ONNX Runtime's QuickGelu, and Swish since opset 24. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    const double alpha = ew_onnx_float(n, "alpha", *n->domain ? (double)1.702f : 1);
    EW_CHECK(n->n_in == 1 && n->in[0] >= 0, EW_ERR_FORMAT, "needs one input");
    int in[2] = {n->in[0]}, scaled[2] = {n->in[0]};
    if (!(alpha < 1) && !(alpha > 1))
        return ew_graph_add(g, &ew_op_silu, n->name, NULL, ew_inputs(in, 1), out);
    EW_TRY(ew_onnx_scalar(g, g->values[in[0]].t.dtype, alpha, &scaled[1]));
    EW_TRY(ew_graph_add(g, &ew_op_mul, NULL, NULL, ew_inputs(scaled, 2), &in[1]));
    EW_TRY(ew_graph_add(g, &ew_op_sigmoid, NULL, NULL, EW_INPUTS(in[1]), &in[1]));
    return ew_graph_add(g, &ew_op_mul, n->name, NULL, ew_inputs(in, 2), out);
}

static const char *const also[] = {"Swish", "com.microsoft:QuickGelu", NULL};

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "wide",
     .in = {{"5", EW_F32, EW_FILL_VALUES, .values = "-60,-3,0,3,60"}},
     .n_in = 1,
     .out_shape = "5"},
};

const struct ew_op ew_op_silu = {
    .name = "silu",
    .help = "x / (1 + exp(-x))",
    .saves = EW_SAVE_IN0,
    .cost = cost,
    EW_UNARY_OP(.also = also, .import = import, .expand = expand),
    EW_OP_CASES(cases),
};
