/* SPDX-License-Identifier: Apache-2.0 */
/* What softmax, log_softmax and hardmax share. */
#include "op/softmax.h"

#include "graph/ops.h"
#include "op/axis.h"
#include "op/shape_attr.h"

const struct ew_field ew_softmax_attrs[] = {
    {.name = "axis",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_softmax_attr, axis),
     .def = "-1",
     .help = "the axis that sums to one"},
    {.name = "flatten",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_softmax_attr, flatten),
     .help = "all axes from `axis` on together"},
    EW_FIELD_END,
};

const char *const ew_softmax_rename[] = {"flatten", NULL, NULL};

ew_err ew_softmax_lanes(const struct ew_call *c, const struct ew_shape *s, struct ew_lanes *out)
{
    const struct ew_softmax_attr *a = c->attr;
    int axis;
    EW_TRY(ew_shape_axis(a->axis, s->rank, &axis));
    *out = a->flatten ? (struct ew_lanes){.outer = ew_shape_span(s, 0, axis),
                                          .n = ew_shape_span(s, axis, s->rank),
                                          .inner = 1}
                      : ew_lanes_of(s, axis);
    return EW_OK;
}

ew_err ew_softmax_infer(const struct ew_call *c)
{
    struct ew_lanes lanes;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_FLOAT));
    EW_TRY(ew_softmax_lanes(c, &c->in[0]->shape, &lanes));
    c->out[0]->dtype = c->in[0]->dtype;
    c->out[0]->shape = c->in[0]->shape;
    return EW_OK;
}

size_t ew_softmax_scratch(const struct ew_call *c)
{
    struct ew_lanes lanes;
    if (ew_softmax_lanes(c, &c->in[0]->shape, &lanes) != EW_OK)
        return 0;
    return 2 * (size_t)lanes.n * sizeof(double);
}

ew_err ew_softmax_permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_softmax_attr *a = g->nodes[node].attr;
    if (a->flatten)
        return EW_ERR_UNSUPPORTED; /* a block of axes that need not stay together */
    return ew_axis_permute(g, node, perm, out_perm);
}

ew_err ew_softmax_import(struct ew_graph *g, const struct ew_onnx_node *n, int *out)
{
    const struct ew_op *op = ew_op_find_onnx(n->type, n->domain);
    if (n->opset >= 13 || n->n_in < 1 || n->in[0] < 0)
        return ew_onnx_import_default(g, op, n, NULL, out);
    const struct ew_shape *s = &g->values[n->in[0]].t.shape;
    struct ew_softmax_attr a = {.axis = ew_onnx_int(n, "axis", 1)};
    int axis;
    EW_TRY(ew_shape_axis(a.axis, s->rank, &axis));
    /* With nothing but ones after the axis both meanings are the same. */
    for (int i = axis + 1; i < s->rank; i++)
        a.flatten |= s->dim[i] != 1;
    return ew_onnx_import_default(g, op, n, &a, out);
}

/* Flatten, softmax, reshape back: the batch may change, the other dimensions are as they are. */
ew_err ew_softmax_expand(struct ew_graph *g, int node, int *out)
{
    const struct ew_node n = g->nodes[node];
    const struct ew_softmax_attr *a = n.attr;
    if (!a->flatten)
        return EW_OK;
    const struct ew_flatten_attr flat = {.axis = a->axis};
    const struct ew_softmax_attr last = {.axis = -1};
    struct ew_shape s = g->values[n.in[0]].t.shape;
    int v, in[2];
    s.dim[0] = -1;
    EW_TRY(ew_graph_add(g, &ew_op_flatten, NULL, &flat, ew_inputs(n.in, 1), &v));
    EW_TRY(ew_graph_add(g, n.op, NULL, &last, EW_INPUTS(v), &in[0]));
    EW_TRY(ew_graph_const_ints(g, NULL, s.dim, s.rank, &in[1]));
    return ew_graph_add(g, &ew_op_reshape, n.name, NULL, ew_inputs(in, 2), out);
}
