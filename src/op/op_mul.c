/* SPDX-License-Identifier: Apache-2.0 */
/* Mul: a b with broadcasting. */
#include "graph/onnx.h"
#include "graph/ops.h"
#include "op/math_attr.h"
#include "op/pointwise.h"

static double f(double a, double b)
{
    return a * b;
}

static int64_t fi(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static void df(double a, double b, double *ga, double *gb)
{
    *ga = b;
    *gb = a;
}

EW_BINARY_FORWARD(f, fi)
EW_BINARY_BACKWARD(df)

/* The node that makes a value, where it is of this operator. */
static const struct ew_node *made_by(const struct ew_graph *g, int value, const struct ew_op *op)
{
    const int k = value < 0 ? -1 : g->values[value].producer;
    return k >= 0 && g->nodes[k].op == op ? &g->nodes[k] : NULL;
}

/* Files say "x times a gate of x" where we have one operator: NULL where it is something else. */
static const struct ew_op *find_gated(const struct ew_graph *g, int x, int gate)
{
    const struct ew_node *n = made_by(g, gate, &ew_op_sigmoid);
    if (n && n->in[0] == x)
        return &ew_op_silu;
    n = made_by(g, gate, &ew_op_hard_sigmoid);
    if (n && n->in[0] == x) {
        const struct ew_scale_attr *a = n->attr;
        const bool sixth = fabs(a->alpha * 6 - 1) < 1e-6 && fabs(a->beta - 0.5) < 1e-6;
        return sixth ? &ew_op_hard_swish : NULL;
    }
    n = made_by(g, gate, &ew_op_tanh);
    n = n ? made_by(g, n->in[0], &ew_op_softplus) : NULL;
    return n && n->in[0] == x ? &ew_op_mish : NULL;
}

/* The gate's own nodes stay until a sweep finds that nobody else uses them. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    for (int x = 0; n->n_in == 2 && x < 2; x++) {
        const struct ew_op *op = find_gated(g, n->in[x], n->in[1 - x]);
        if (op)
            return ew_graph_add(g, op, n->name, NULL, &n->in[x], 1, out, 1);
    }
    return ew_onnx_import_default(g, &ew_op_mul, n, NULL, out);
}

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3x4"}, {"2x3x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "gate", .in = {{"2x5x5x3"}, {"2x1x1x3"}}, .n_in = 2, .out_shape = "2x5x5x3"},
    {.name = "wide gate", .in = {{"2x3x2x21"}, {"2x1x1x21"}}, .n_in = 2, .out_shape = "2x3x2x21"},
    {.name = "left gate", .in = {{"1x1x5"}, {"2x3x5"}}, .n_in = 2, .out_shape = "2x3x5"},
    {.name = "left", .in = {{"3"}, {"2x3x1"}}, .n_in = 2, .out_shape = "2x3x3"},
    {.name = "int", .in = {{"4", EW_S8}, {"", EW_S8}}, .n_in = 2, .out_shape = "4"},
};

const struct ew_op ew_op_mul = {
    .name = "mul",
    .help = "a b, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE | EW_OP_PRODUCT,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .param_in = 1 << 1,
    .infer = ew_broadcast_infer_number,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Mul", .since = 7, .import = import},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
