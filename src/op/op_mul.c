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

/* The producer of a value, if it is of this operator, else NULL. */
static const struct ew_node *made_by(const struct ew_graph *g, int value, const struct ew_op *op)
{
    const int node = ew_graph_producer(g, value, op);
    return node >= 0 ? &g->nodes[node] : NULL;
}

/* Factors of a gelu: constants, at most one x and at most one 1 + erf(z). */
struct factors {
    double scale;
    int x, z; /* -1: none */
    bool fits;
};

/* A scalar constant that does not broadcast x. */
static bool is_number(const struct ew_graph *g, int value, double *out)
{
    const struct ew_value *v = value < 0 ? NULL : &g->values[value];
    if (!v || v->kind == EW_VALUE_INPUT || !v->t.data || ew_tensor_count(&v->t) != 1 ||
        v->t.shape.rank > 1)
        return false;
    *out = ew_tensor_get(&v->t, 0);
    return true;
}

/* z if the value is 1 + erf(z), else -1. */
static int find_erf(const struct ew_graph *g, int value)
{
    const struct ew_node *sum = made_by(g, value, &ew_op_add);
    double one;
    for (int i = 0; sum && i < 2; i++) {
        const struct ew_node *erf = made_by(g, sum->in[i], &ew_op_erf);
        if (erf && is_number(g, sum->in[1 - i], &one) && fabs(one - 1) < 1e-6)
            return erf->in[0];
    }
    return -1;
}

static void take_factor(const struct ew_graph *g, int value, int depth, struct factors *f)
{
    const struct ew_node *mul = depth ? made_by(g, value, &ew_op_mul) : NULL;
    const struct ew_node *div = depth ? made_by(g, value, &ew_op_div) : NULL;
    const int z = find_erf(g, value);
    double number;
    if (is_number(g, value, &number)) {
        f->scale *= number;
    } else if (mul) {
        take_factor(g, mul->in[0], depth - 1, f);
        take_factor(g, mul->in[1], depth - 1, f);
    } else if (div && is_number(g, div->in[1], &number)) {
        f->scale /= number;
        take_factor(g, div->in[0], depth - 1, f);
    } else if (z >= 0) {
        f->fits &= f->z < 0;
        f->z = z;
    } else {
        f->fits &= f->x < 0;
        f->x = value;
    }
}

/* x if a b is x / 2 (1 + erf(x / sqrt 2)), in any order of factors, else -1. */
static int find_gelu(const struct ew_graph *g, int a, int b)
{
    struct factors f = {1, -1, -1, true}, root = f;
    take_factor(g, a, 1, &f);
    take_factor(g, b, 1, &f);
    if (!f.fits || f.x < 0 || f.z < 0 || fabs(f.scale - 0.5) > 1e-6)
        return -1;
    take_factor(g, f.z, 1, &root);
    const bool same = root.fits && root.z < 0 && root.x == f.x;
    return same && fabs(root.scale - M_SQRT1_2) < 1e-6 ? f.x : -1;
}

/* The operator (silu, mish, ...) for x times gate(x); NULL: none. */
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

/* The gate's nodes are left to the sweep, in case they have other uses. */
static ew_err import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    for (int x = 0; n->n_in == 2 && x < 2; x++) {
        const struct ew_op *op = find_gated(g, n->in[x], n->in[1 - x]);
        if (op)
            return ew_graph_add(g, op, n->name, NULL, EW_INPUTS(n->in[x]), out);
    }
    const int x = n->n_in == 2 ? find_gelu(g, n->in[0], n->in[1]) : -1;
    if (x >= 0)
        return ew_graph_add(g, &ew_op_gelu, n->name, NULL, EW_INPUTS(x), out);
    return ew_onnx_import_default(g, &ew_op_mul, n, NULL, out);
}

static const struct ew_op_case cases[] = {
    {.name = "same", .in = {{"2x3x4"}, {"2x3x4"}}, .n_in = 2, .out_shape = "2x3x4"},
    {.name = "gate", .in = {{"2x5x5x3"}, {"2x1x1x3"}}, .n_in = 2, .out_shape = "2x5x5x3"},
    {.name = "wide gate", .in = {{"2x3x2x21"}, {"2x1x1x21"}}, .n_in = 2, .out_shape = "2x3x2x21"},
    {.name = "left gate", .in = {{"1x1x5"}, {"2x3x5"}}, .n_in = 2, .out_shape = "2x3x5"},
    {.name = "channels first", .in = {{"2x3x5x7"}, {"3x1x1"}}, .n_in = 2, .out_shape = "2x3x5x7"},
    {.name = "pixels", .in = {{"2x3x2x5"}, {"2x3x2x1"}}, .n_in = 2, .out_shape = "2x3x2x5"},
    {.name = "left", .in = {{"3"}, {"2x3x1"}}, .n_in = 2, .out_shape = "2x3x3"},
    {.name = "int", .in = {{"4", EW_S8}, {"", EW_S8}}, .n_in = 2, .out_shape = "4"},
};

const struct ew_op ew_op_mul = {
    .name = "mul",
    .help = "a b, broadcasting",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE | EW_OP_PRODUCT,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    EW_ARITHMETIC_OP(.type = "Mul", .import = import),
    EW_OP_CASES(cases),
};
