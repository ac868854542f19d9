/* SPDX-License-Identifier: Apache-2.0 */
/* Updating nodes after channels were removed: groups, split sizes, slice bounds, shapes. */
#include <string.h>

#include "compress/channels.h"
#include "graph/ops.h"
#include "op/conv.h"
#include "op/norm.h"
#include "op/shape_attr.h"
#include "op/types.h"

/* ---- Slices ---- */

enum { SLICE_STARTS = 1, SLICE_ENDS, SLICE_AXES, SLICE_STEPS };

int ew_channel_slice_entry(const struct ew_graph *g, const struct ew_node *n, int axis, int rank)
{
    struct ew_ints axes = {0}, steps = {0};
    for (int i = SLICE_STARTS; i < n->n_in; i++)
        if (n->in[i] >= 0 && !ew_value_is_weight(&g->values[n->in[i]]))
            return -2;
    if (n->n_in <= SLICE_AXES || n->in[SLICE_AXES] < 0 ||
        ew_tensor_ints(&g->values[n->in[SLICE_AXES]].t, "axes", &axes) != EW_OK)
        return -2;
    if (n->n_in > SLICE_STEPS && n->in[SLICE_STEPS] >= 0 &&
        ew_tensor_ints(&g->values[n->in[SLICE_STEPS]].t, "steps", &steps) != EW_OK)
        return -2;
    for (int i = 0; i < axes.n; i++)
        if ((axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i]) == axis)
            return steps.n == 0 || steps.v[i] == 1 ? i : -2;
    return -1;
}

int64_t ew_channel_slice_first(const struct ew_graph *g, const struct ew_node *n, int entry,
                               int64_t d)
{
    const int64_t at = ew_tensor_get_int(&g->values[n->in[SLICE_STARTS]].t, entry);
    return ew_max_i64(0, ew_min_i64(at < 0 ? at + d : at, d));
}

/* ---- Nodes ---- */

static int64_t kept(const struct ew_channels *c, int value, int axis, int64_t d, const bool *gone)
{
    int64_t n = 0;
    for (int64_t i = 0; i < d; i++)
        n += !c->of[value][axis] || !gone[c->of[value][axis][i]];
    return n;
}

/* Axis of the value that has units; -1: none. */
static int known_axis(const struct ew_graph *g, const struct ew_channels *c, int value)
{
    for (int a = 0; value >= 0 && a < g->values[value].t.shape.rank; a++)
        if (c->of[value][a])
            return a;
    return -1;
}

/* Replaces input `slot` by a new constant list. */
static ew_err set_list(struct ew_graph *g, int node, int slot, const struct ew_ints *list)
{
    struct ew_node *n = &g->nodes[node];
    int value;
    EW_TRY(ew_graph_const_ints(g, NULL, list->v, list->n, &value));
    n = &g->nodes[node];
    if (slot < n->n_in) {
        n->in[slot] = value;
        return EW_OK;
    }
    int *in = ew_arena_array(&g->arena, (size_t)slot + 1, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "no memory");
    memcpy(in, n->in, (size_t)n->n_in * sizeof(*in));
    in[slot] = value;
    n->in = in;
    n->n_in = slot + 1;
    return EW_OK;
}

static ew_err resize_split(struct ew_graph *g, const struct ew_channels *c, int node,
                           const bool *gone)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_split_attr *a = n->attr;
    struct ew_ints sizes = {.n = n->n_out};
    const int axis = known_axis(g, c, n->in[0]);
    if (axis < 0 || ew_axis_of(a->axis, g->values[n->in[0]].t.shape.rank) != axis)
        return EW_OK;
    EW_CHECK(n->n_out <= EW_MAX_INTS, EW_ERR_LIMIT, "%s: has %d parts", n->name, n->n_out);
    for (int i = 0; i < n->n_out; i++) {
        const int64_t d = g->values[n->out[i]].t.shape.dim[axis];
        sizes.v[i] = kept(c, n->out[i], axis, d, gone);
        EW_CHECK(sizes.v[i] > 0, EW_ERR_ARG, "%s: nothing would be left of part %d", n->name, i);
    }
    return set_list(g, node, 1, &sizes);
}

static ew_err resize_slice(struct ew_graph *g, const struct ew_channels *c, int node,
                           const bool *gone)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_shape in = g->values[n->in[0]].t.shape;
    const int axis = known_axis(g, c, n->in[0]);
    const int entry = axis < 0 ? -1 : ew_channel_slice_entry(g, n, axis, in.rank);
    struct ew_ints starts, ends;
    if (entry < 0)
        return EW_OK;
    const int64_t first = ew_channel_slice_first(g, n, entry, in.dim[axis]);
    const int64_t d = g->values[n->out[0]].t.shape.dim[axis];
    EW_TRY(ew_tensor_ints(&g->values[n->in[SLICE_STARTS]].t, "starts", &starts));
    EW_TRY(ew_tensor_ints(&g->values[n->in[SLICE_ENDS]].t, "ends", &ends));
    starts.v[entry] = kept(c, n->in[0], axis, first, gone);
    ends.v[entry] = starts.v[entry] + kept(c, n->out[0], axis, d, gone);
    EW_TRY(set_list(g, node, SLICE_STARTS, &starts));
    return set_list(g, node, SLICE_ENDS, &ends);
}

static ew_err resize_reshape(struct ew_graph *g, const struct ew_channels *c, int node,
                             const bool *gone)
{
    const struct ew_node *n = &g->nodes[node];
    const int axis = known_axis(g, c, n->out[0]);
    struct ew_ints shape;
    if (axis < 0 || n->in[1] < 0 || !ew_value_is_weight(&g->values[n->in[1]]))
        return EW_OK;
    EW_TRY(ew_tensor_ints(&g->values[n->in[1]].t, "shape", &shape));
    if (shape.v[axis] <= 0)
        return EW_OK;
    shape.v[axis] = kept(c, n->out[0], axis, g->values[n->out[0]].t.shape.dim[axis], gone);
    return set_list(g, node, 1, &shape);
}

static void resize_conv(struct ew_graph *g, const struct ew_channels *c, int node, const bool *gone)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_conv_attr *a = n->attr;
    const struct ew_shape *x = &g->values[n->in[0]].t.shape, *w = &g->values[n->in[1]].t.shape;
    const int last = x->rank - 1;
    if (a->groups > 1 && w->dim[w->rank - 1] == 1 && c->of[n->in[0]][last] && c->of[n->in[1]][0])
        a->groups = kept(c, n->in[0], last, x->dim[last], gone);
}

static void resize_norm(struct ew_graph *g, const struct ew_channels *c, int node, const bool *gone)
{
    const struct ew_node *n = &g->nodes[node];
    struct ew_group_norm_attr *a = n->attr;
    const struct ew_shape *x = &g->values[n->in[0]].t.shape;
    const int last = x->rank - 1;
    if (a->groups == x->dim[last] && c->of[n->in[0]][last])
        a->groups = kept(c, n->in[0], last, x->dim[last], gone);
}

ew_err ew_channel_resize(struct ew_graph *g, const struct ew_channels *c, int node,
                         const bool *gone)
{
    const struct ew_op *op = g->nodes[node].op;
    if (op == &ew_op_split)
        return resize_split(g, c, node, gone);
    if (op == &ew_op_slice)
        return resize_slice(g, c, node, gone);
    if (op == &ew_op_reshape)
        return resize_reshape(g, c, node, gone);
    if (op == &ew_op_group_norm)
        resize_norm(g, c, node, gone);
    if (op == &ew_op_conv)
        resize_conv(g, c, node, gone);
    return EW_OK;
}
