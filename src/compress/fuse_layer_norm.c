/* SPDX-License-Identifier: Apache-2.0 */
/* Finds layer norms that exporters write as single steps (PyTorch before opset 17), and squares:
 *
 *   d = x - mean(x),  d / sqrt(mean(d ^ 2) + eps) [* scale] [+ bias]
 *
 * with means over the last dimensions, without the batch, which may change.  It runs in the layout
 * of the device, so that norms over the channels of an image are among them. */
#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/axis.h"
#include "op/math_attr.h"
#include "op/norm.h"

/* A constant with one element. */
static bool is_number(const struct ew_graph *g, int value, double *out)
{
    if (!ew_pass_is_constant(g, value) || ew_tensor_count(&g->values[value].t) != 1)
        return false;
    *out = ew_tensor_get(&g->values[value].t, 0);
    return true;
}

/* ---- Squares ---- */

/* x ^ 2 is x * x, which has fast kernels. */
static ew_err multiply_square(struct ew_graph *g, struct ew_readers *r, int node)
{
    struct ew_node *n = &g->nodes[node];
    double exponent;
    if (n->in[0] < 0 || g->values[n->in[0]].t.dtype != EW_F32 ||
        !is_number(g, n->in[1], &exponent) || !(exponent >= 2 && exponent <= 2) ||
        g->values[n->in[1]].t.shape.rank > g->values[n->in[0]].t.shape.rank)
        return EW_OK;
    n->op = &ew_op_mul;
    n->attr = NULL;
    return ew_readers_set(r, node, 1, n->in[0]);
}

/* ---- Layer norms ---- */

struct norm {
    int x, scale, bias; /* values; -1: none */
    int axis;           /* the first that is normalised */
    double eps;
};

static const struct ew_node *producer(const struct ew_graph *g, int value, const struct ew_op *op)
{
    const int k = ew_graph_producer(g, value, op);
    return k >= 0 ? &g->nodes[k] : NULL;
}

/* The input of a mean over the last dimensions, which it keeps as 1; -1: another node. */
static int mean_of(const struct ew_graph *g, int value, int *axis)
{
    const struct ew_node *n = producer(g, value, &ew_op_reduce_mean);
    struct ew_ints axes;
    if (!n || n->n_in < 2 || !((const struct ew_reduce_attr *)n->attr)->keepdims ||
        !ew_pass_is_constant(g, n->in[1]))
        return -1;
    const int rank = g->values[n->in[0]].t.shape.rank;
    if (ew_axes_read(&g->values[n->in[1]].t, rank, 0, &axes) != EW_OK || axes.n < 1)
        return -1;
    unsigned mask = 0;
    for (int i = 0; i < axes.n; i++)
        mask |= 1u << axes.v[i];
    *axis = rank - axes.n;
    return mask == (1u << rank) - (1u << *axis) ? n->in[0] : -1;
}

/* x if the value is x - mean(x), else -1. */
static int centred(const struct ew_graph *g, int value, int *axis)
{
    const struct ew_node *n = producer(g, value, &ew_op_sub);
    return n && mean_of(g, n->in[1], axis) == n->in[0] ? n->in[0] : -1;
}

/* The other operand of a sum or product with a number; -1: none. */
static int without_number(const struct ew_graph *g, int value, const struct ew_op *op,
                          double *number)
{
    const struct ew_node *n = producer(g, value, op);
    for (int i = 0; n && i < 2; i++)
        if (is_number(g, n->in[1 - i], number))
            return n->in[i];
    return -1;
}

/* d / sqrt(mean(d d) + eps). */
static bool is_norm(const struct ew_graph *g, const struct ew_node *div, struct norm *out)
{
    int axis, again, over;
    *out = (struct norm){.scale = -1, .bias = -1};
    out->x = centred(g, div->in[0], &out->axis);
    const struct ew_node *root = producer(g, div->in[1], &ew_op_sqrt);
    if (out->x < 0 || !root)
        return false;
    const int variance = without_number(g, root->in[0], &ew_op_add, &out->eps);
    const int square = variance < 0 ? -1 : mean_of(g, variance, &axis);
    const struct ew_node *mul = square < 0 ? NULL : producer(g, square, &ew_op_mul);
    over = mul && mul->in[0] == mul->in[1] ? mul->in[0] : -1;
    return over >= 0 && centred(g, over, &again) == out->x && axis == out->axis && again == axis &&
           out->axis > 0 && out->eps > 0 && g->values[out->x].t.dtype == EW_F32 &&
           ew_shape_equal(&g->values[out->x].t.shape, &g->values[div->out[0]].t.shape);
}

/* A float constant for each normalised element, in the shape of the last dimensions of x. */
static bool is_for_each(const struct ew_graph *g, const struct norm *n, int value)
{
    const struct ew_shape *x = &g->values[n->x].t.shape;
    if (!ew_pass_is_floats(g, value))
        return false;
    const struct ew_shape *s = &g->values[value].t.shape;
    const int run = x->rank - n->axis;
    for (int i = 1; i <= s->rank; i++)
        if (s->dim[s->rank - i] != (i <= run ? x->dim[x->rank - i] : 1))
            return false;
    return s->rank >= run && s->rank <= x->rank;
}

/* If the only reader of node k is this operator with such a constant: *k becomes that reader. */
static int take_constant(const struct ew_graph *g, const struct ew_readers *r, const struct norm *n,
                         const struct ew_op *op, int *k)
{
    const int y = g->nodes[*k].out[0], next = ew_readers_only(r, y);
    if (next < 0 || g->nodes[next].op != op)
        return -1;
    for (int i = 0; i < 2; i++)
        if (g->nodes[next].in[i] == y && is_for_each(g, n, g->nodes[next].in[1 - i])) {
            *k = next;
            return g->nodes[next].in[1 - i];
        }
    return -1;
}

/* A scale of 1 for each element, for a norm without one. */
static ew_err add_ones(struct ew_graph *g, struct norm *n, const char *name)
{
    const struct ew_shape *x = &g->values[n->x].t.shape;
    const struct ew_shape s = {1, {ew_shape_span(x, n->axis, x->rank)}};
    EW_TRY(ew_pass_new_param(g, name, &s, &n->scale));
    for (int64_t i = 0; i < s.dim[0]; i++)
        ((float *)g->values[n->scale].t.data)[i] = 1;
    return EW_OK;
}

/* Makes the norm that ends at node k of its last node. */
static ew_err fuse(struct ew_graph *g, struct ew_readers *r, int k, struct norm *n)
{
    n->scale = take_constant(g, r, n, &ew_op_mul, &k);
    n->bias = take_constant(g, r, n, &ew_op_add, &k);
    if (n->scale < 0)
        EW_TRY(add_ones(g, n, g->nodes[k].name));
    struct ew_layer_norm_attr *a = ew_arena_alloc(&g->arena, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "node %s: no memory to fuse it", g->nodes[k].name);
    *a = (struct ew_layer_norm_attr){.axis = n->axis, .eps = n->eps, .stash_type = 1};
    const int in[] = {n->x, n->scale, n->bias};
    EW_TRY(ew_readers_set_all(r, k, in, n->bias < 0 ? 2 : 3));
    g->nodes[k].op = &ew_op_layer_norm;
    g->nodes[k].attr = a;
    return EW_OK;
}

static ew_err rewrite(struct ew_graph *g, struct ew_readers *r, int node, void *ctx)
{
    struct norm n;
    if (g->nodes[node].op == &ew_op_pow)
        return multiply_square(g, r, node);
    const bool fuses = g->nodes[node].op == &ew_op_div && is_norm(g, &g->nodes[node], &n);
    return fuses ? fuse(g, r, node, &n) : EW_OK;
}

ew_err ew_pass_fuse_layer_norm(struct ew_graph *g)
{
    return ew_pass_each_node(g, rewrite, NULL);
}
