/* SPDX-License-Identifier: Apache-2.0 */
/* HardSwish: x times x / 6 + 1/2 clipped to [0, 1]. */
#include "graph/graph.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return x * fmax(0, fmin(1, x / 6 + 0.5));
}

static double df(double x, double y, const void *attr)
{
    if (x <= -3)
        return 0;
    return x < 3 ? x / 3 + 0.5 : 1;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += 5 * ew_tensor_count(c->out[0]);
}

/* x HardSigmoid(x), since opset 13 lacks HardSwish; the import of Mul recognises it. */
static ew_err expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    const struct ew_scale_attr sixth = {.alpha = 1.0 / 6, .beta = 0.5};
    int in[2] = {n.in[0]};
    EW_TRY(ew_graph_add(g, &ew_op_hard_sigmoid, NULL, &sixth, ew_inputs(in, 1), &in[1]));
    return ew_graph_add(g, &ew_op_mul, n.name, NULL, ew_inputs(in, 2), out);
}

static const struct ew_op_case cases[] = {
    {.name = "plain", .in = {{"2x3x5"}}, .n_in = 1, .out_shape = "2x3x5"},
    {.name = "wide",
     .in = {{"6", EW_F32, EW_FILL_VALUES, .values = "-8,-3.1,-2.9,0,2.9,4"}},
     .n_in = 1,
     .out_shape = "6"},
};

const struct ew_op ew_op_hard_swish = {
    .name = "hard_swish",
    .help = "x clip(x / 6 + 1/2, 0, 1)",
    .saves = EW_SAVE_IN0,
    .cost = cost,
    EW_UNARY_OP(.type = "HardSwish", .since = 14, .expand = expand),
    EW_OP_CASES(cases),
};
