/* SPDX-License-Identifier: Apache-2.0 */
/* Mish: x times the hyperbolic tangent of softplus(x). */
#include "graph/graph.h"
#include "graph/ops.h"
#include "op/pointwise.h"

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static double f(double x, const void *attr)
{
    return x * tanh(softplus(x));
}

static double df(double x, double y, const void *attr)
{
    const double t = tanh(softplus(x)), s = 1 / (1 + exp(-x));
    return t + x * s * (1 - t * t);
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 6 * ew_tensor_count(c->out[0]);
}

/* x Tanh(Softplus(x)), since opset 13 lacks Mish; the import of Mul recognises it. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    int in[2] = {n.in[0]}, v;
    EW_TRY(ew_graph_add(g, &ew_op_softplus, NULL, NULL, ew_inputs(in, 1), &v));
    EW_TRY(ew_graph_add(g, &ew_op_tanh, NULL, NULL, EW_INPUTS(v), &in[1]));
    return ew_graph_add(g, &ew_op_mul, n.name, NULL, ew_inputs(in, 2), out);
}

static const struct ew_op_case cases[] = {
    EW_UNARY_CASES(EW_FILL_NORMAL),
};

const struct ew_op ew_op_mish = {
    .name = "mish",
    .help = "x tanh(log(1 + exp(x)))",
    .saves = EW_SAVE_IN0,
    .cost = cost,
    EW_UNARY_OP(.type = "Mish", .since = 18, .expand = expand),
    EW_OP_CASES(cases),
};
