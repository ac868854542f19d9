/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of nodes without weights: add, mul, average pools, concat, unary functions. */
#include <stdlib.h>

#include "compress/lower_quant.h"
#include "graph/ops.h"
#include "op/qlinear.h"

/* ---- Two values ---- */

ew_err ew_lower_binary(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const int from = ew_qview_sole(g, l->value), first = g->n_nodes;
    const bool add = ew_qview_is(g, from, &ew_op_add);
    struct ew_qview a, b;
    if ((!add && !ew_qview_is(g, from, &ew_op_mul)) || !ew_qview_of(g, g->nodes[from].in[0], &a) ||
        !ew_qview_of(g, g->nodes[from].in[1], &b))
        return EW_OK;
    const int in[] = {a.q, a.scale, a.zero, b.q, b.scale, b.zero, l->to.scale, l->to.zero};
    const struct ew_qbinary_attr attr = {.clamp = l->clamp};
    const char *name = g->nodes[from].name;
    int out;
    EW_TRY(ew_graph_add(g, add ? &ew_op_qlinear_add : &ew_op_qlinear_mul, name, &attr,
                        ew_inputs(in, (int)EW_COUNT(in)), &out));
    return ew_lower_place(l, first, out, done);
}

/* ---- Averages ---- */

bool ew_lower_window(const struct ew_graph *g, int node, struct ew_pool_attr *attr, bool *global)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_shape *x = &g->values[n->in[0]].t.shape;
    *global = ew_qview_is(g, node, &ew_op_global_average_pool) || ew_pass_is_spatial_mean(g, node);
    *attr = (struct ew_pool_attr){0};
    if (ew_qview_is(g, node, &ew_op_average_pool)) {
        *attr = *(const struct ew_pool_attr *)n->attr;
        return true;
    }
    if (!ew_qview_is(g, node, &ew_op_adaptive_avg_pool))
        return *global;
    const struct ew_adaptive_attr *a = n->attr;
    attr->win.kernel.n = attr->win.stride.n = a->size.n;
    *global = true;
    for (int i = 0; i < a->size.n; i++) {
        if (x->dim[1 + i] % a->size.v[i])
            return false;
        attr->win.kernel.v[i] = attr->win.stride.v[i] = x->dim[1 + i] / a->size.v[i];
        *global = *global && a->size.v[i] == 1;
    }
    return true;
}

ew_err ew_lower_reshape(struct ew_graph *g, int value, const int64_t *dims, int n, int *out)
{
    int in[2] = {value};
    EW_TRY(ew_graph_const_ints(g, "shape", dims, n, &in[1]));
    return ew_graph_add(g, &ew_op_reshape, NULL, NULL, ew_inputs(in, 2), out);
}

ew_err ew_lower_drop_axes(struct ew_graph *g, int node, int *value)
{
    const struct ew_shape *y = &g->values[g->nodes[node].out[0]].t.shape;
    if (y->rank == g->values[*value].t.shape.rank)
        return EW_OK;
    return ew_lower_reshape(g, *value, (const int64_t[]){-1, y->dim[1]}, 2, value);
}

ew_err ew_lower_average(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const int from = ew_qview_sole(g, l->value), first = g->n_nodes;
    struct ew_pool_attr attr;
    struct ew_qview x;
    bool global;
    if (from < 0 || !ew_quant_clamps_nothing(&l->clamp) ||
        !ew_lower_window(g, from, &attr, &global) || !ew_qview_of(g, g->nodes[from].in[0], &x))
        return EW_OK;
    const int in[] = {x.q, x.scale, x.zero, l->to.scale, l->to.zero};
    const struct ew_op *op =
        global ? &ew_op_qlinear_global_average_pool : &ew_op_qlinear_average_pool;
    int out;
    EW_TRY(ew_graph_add(g, op, g->nodes[from].name, global ? NULL : &attr,
                        ew_inputs(in, (int)EW_COUNT(in)), &out));
    EW_TRY(ew_lower_drop_axes(g, from, &out));
    return ew_lower_place(l, first, out, done);
}

/* ---- Unary functions, by table ---- */

/* Makes the table from integers quantised as `from`, through `act`, to integers quantised as `to`.
 */
static ew_err make_table(struct ew_graph *g, const struct ew_qview *from, const struct ew_qview *to,
                         const struct ew_epilogue_attr *act, int *out)
{
    const struct ew_shape shape = {1, {256}};
    const enum ew_dtype in = ew_qview_dtype(g, from);
    const float scale = (float)ew_qview_scale(g, from);
    EW_TRY(ew_qview_const(g, "table", ew_qview_dtype(g, to), &shape, out));
    uint8_t *table = g->values[*out].t.data;
    for (int i = 0; i < 256; i++) {
        const int q = in == EW_S8 ? (int8_t)i : i;
        const float x = (float)(q - ew_qview_zero(g, from)) * scale;
        table[i] = (uint8_t)ew_qview_round(g, to, ew_act_apply(act, (double)x));
    }
    return EW_OK;
}

static ew_err add_lookup(struct ew_graph *g, const struct ew_qview *from, const struct ew_qview *to,
                         const struct ew_epilogue_attr *act, int *out)
{
    int in[EW_LOOKUP_INPUTS] = {from->q};
    EW_TRY(make_table(g, from, to, act, &in[EW_LOOKUP_TABLE]));
    return ew_graph_add(g, &ew_op_lookup, NULL, NULL, ew_inputs(in, EW_LOOKUP_INPUTS), out);
}

static const struct ew_epilogue_attr no_act = {.act = EW_ACT_NONE};

/* Matches from the quantiser's input, since relu and clip alone are functions too. */
ew_err ew_lower_function(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const int value = g->nodes[l->node].in[0], first = g->n_nodes;
    struct ew_epilogue_attr act = no_act;
    struct ew_qview x;
    int out;
    if (ew_qview_of(g, value, &x)) {
        if (ew_qview_same(g, &x, &l->to))
            return ew_lower_place(l, first, x.q, done); /* requantisation to the same parameters */
    } else {
        const int from = ew_qview_sole(g, value);
        if (from < 0 || !ew_act_of_node(g, from, &act) || !ew_qview_of(g, g->nodes[from].in[0], &x))
            return EW_OK;
    }
    EW_TRY(add_lookup(g, &x, &l->to, &act, &out));
    return ew_lower_place(l, first, out, done);
}

/* ---- Concat: inputs with other scales are requantised by table ---- */

ew_err ew_lower_concat(const struct ew_lowering *l, bool *done)
{
    struct ew_graph *g = l->g;
    const int from = ew_qview_sole(g, l->value), first = g->n_nodes;
    if (!ew_qview_is(g, from, &ew_op_concat) || !ew_quant_clamps_nothing(&l->clamp))
        return EW_OK;
    const struct ew_node n = g->nodes[from];
    struct ew_qview x;
    for (int i = 0; i < n.n_in; i++)
        if (!ew_qview_of(g, n.in[i], &x))
            return EW_OK;
    EW_CLEANUP(ew_free_ptr) int *in = calloc((size_t)n.n_in + 1, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "%s: no memory to lower it", n.name);
    for (int i = 0; i < n.n_in; i++) {
        ew_qview_of(g, n.in[i], &x);
        in[i] = x.q;
        if (!ew_qview_same(g, &x, &l->to))
            EW_TRY(add_lookup(g, &x, &l->to, &no_act, &in[i]));
    }
    int out;
    EW_TRY(ew_graph_add(g, n.op, n.name, n.attr, ew_inputs(in, n.n_in), &out));
    return ew_lower_place(l, first, out, done);
}
