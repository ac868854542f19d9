/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of argmax and argmin. */
#include "op/arg.h"

#include "op/axis.h"
#include "op/lanes.h"
#include "op/reduce.h"

const struct ew_field ew_arg_attrs[] = {
    {.name = "axis",
     .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_arg_attr, axis),
     .help = "the axis that is searched"},
    {.name = "keepdims",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_arg_attr, keepdims),
     .def = "true",
     .help = "the axis stays, with size 1"},
    {.name = "select_last_index",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct ew_arg_attr, select_last_index),
     .help = "of equal elements the last"},
    EW_FIELD_END,
};

const struct ew_op_case ew_arg_cases[EW_ARG_CASES] = {
    {.name = "default", .in = {{"3x4"}}, .n_in = 1, .out_shape = "1x4"},
    {.name = "drop axis",
     .attrs = "axis=-1 keepdims=false",
     .in = {{"2x3x5"}},
     .n_in = 1,
     .out_shape = "2x3"},
    {.name = "last of equals",
     .attrs = "axis=0 select_last_index=true",
     .in = {{"5", EW_S32, EW_FILL_VALUES, .values = "1,7,1,7,3"}},
     .n_in = 1,
     .out_shape = "1"},
};

ew_err ew_arg_infer(const struct ew_call *c)
{
    const struct ew_arg_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    struct ew_shape *out = &c->out[0]->shape;
    int axis;
    EW_TRY(ew_types_check(c, 0, EW_TYPES_NUMBER));
    EW_TRY(ew_shape_axis(a->axis, s->rank, &axis));
    EW_CHECK(s->dim[axis] > 0, EW_ERR_SHAPE, "axis %d is empty", axis);
    out->rank = 0;
    for (int i = 0; i < s->rank; i++)
        if (i != axis || a->keepdims)
            out->dim[out->rank++] = i == axis ? 1 : s->dim[i];
    c->out[0]->dtype = EW_S64;
    return EW_OK;
}

static struct ew_lanes lanes_of(const struct ew_call *c)
{
    const struct ew_arg_attr *a = c->attr;
    const struct ew_shape *s = &c->in[0]->shape;
    return ew_lanes_of(s, ew_axis_of(a->axis, s->rank));
}

void ew_arg_cost(const struct ew_call *c, struct ew_cost *out)
{
    out->flops += ew_tensor_count(c->in[0]);
}

size_t ew_arg_scratch(const struct ew_call *c)
{
    return (size_t)lanes_of(c).n * EW_LANE_ORDER_BYTES;
}

ew_err ew_arg_forward(const struct ew_call *c, bool largest)
{
    const struct ew_arg_attr *a = c->attr;
    const struct ew_lanes l = lanes_of(c);
    for (int64_t lane = 0; lane < ew_lanes_count(&l); lane++) {
        const struct ew_lane_order o = ew_lane_order_load(c->in[0], &l, lane, largest, c->scratch);
        int64_t best = 0;
        for (int64_t k = 1; k < l.n; k++)
            if (ew_lane_better(&o, k, best) ||
                (a->select_last_index && !ew_lane_better(&o, best, k)))
                best = k;
        ew_tensor_store_int(c->out[0], lane, 1, &best);
    }
    return EW_OK;
}

ew_err ew_arg_permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_arg_attr *a = n->attr;
    const int rank = g->values[n->in[0]].t.shape.rank;
    int axis;
    EW_TRY(ew_shape_axis(a->axis, rank, &axis));
    if (!a->keepdims)
        ew_reduce_out_perm(1u << axis, rank, perm, out_perm);
    return ew_axis_permute(g, node, perm, out_perm);
}
