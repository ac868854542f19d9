/* SPDX-License-Identifier: Apache-2.0 */
/* Axis attributes under permuted inputs. */
#include "op/axis.h"

int ew_axis_moved(int axis, const int *perm, int rank)
{
    for (int i = 0; i < rank; i++)
        if (perm[i] == axis)
            return i;
    return axis;
}

static int64_t *int_attr(const struct ew_node *n, const char *name)
{
    const struct ew_field *f = ew_field_find(n->op->attrs, name);
    EW_ASSERT(f && f->type == EW_FIELD_INT);
    return (int64_t *)(void *)((char *)n->attr + f->offset);
}

ew_err ew_axis_permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    const int rank = g->values[n->in[0]].t.shape.rank;
    int64_t *axis = int_attr(n, "axis");
    int old;
    EW_TRY(ew_shape_axis(*axis, rank, &old));
    *axis = ew_axis_moved(old, perm, rank);
    return EW_OK;
}

ew_err ew_axes_read(const struct ew_tensor *t, int rank, int n, struct ew_ints *out)
{
    if (!t) {
        EW_CHECK(n <= rank, EW_ERR_SHAPE, "%d axes asked of a rank of %d", n, rank);
        *out = (struct ew_ints){.n = n};
        for (int i = 0; i < n; i++)
            out->v[i] = i;
        return EW_OK;
    }
    unsigned seen = 0;
    EW_TRY(ew_tensor_ints(t, "axes", out));
    for (int i = 0; i < out->n; i++) {
        int axis;
        EW_TRY(ew_shape_axis(out->v[i], rank, &axis));
        EW_CHECK(!(seen >> axis & 1), EW_ERR_SHAPE, "axis %d is listed twice", axis);
        seen |= 1u << axis;
        out->v[i] = axis;
    }
    return EW_OK;
}

/* The lists of a Slice have one type, int32 or int64; other axes are int64. */
static ew_err const_axes(struct ew_graph *g, const struct ew_node *n, int slot,
                         const struct ew_ints *axes, int *out)
{
    int32_t narrow[EW_MAX_RANK];
    for (int i = 0; i < axes->n; i++)
        narrow[i] = (int32_t)axes->v[i];
    const struct ew_tensor t = {EW_S32, {1, {axes->n}}, narrow};
    return slot > 1 && g->values[n->in[1]].t.dtype == EW_S32
               ? ew_graph_const(g, "axes", EW_VALUE_CONST, &t, true, out)
               : ew_graph_const_ints(g, "axes", axes->v, axes->n, out);
}

ew_err ew_axes_input_permute(struct ew_graph *g, int node, int slot, int n, const int *perm)
{
    struct ew_node *nd = &g->nodes[node];
    const int rank = g->values[nd->in[0]].t.shape.rank;
    const struct ew_value *v =
        slot < nd->n_in && nd->in[slot] >= 0 ? &g->values[nd->in[slot]] : NULL;
    EW_CHECK(!v || v->kind == EW_VALUE_CONST, EW_ERR_UNSUPPORTED, "axes %s is not a constant",
             v->name);
    struct ew_ints axes;
    EW_TRY(ew_axes_read(v ? &v->t : NULL, rank, n < 0 ? rank : n, &axes));
    bool plain = true;
    for (int i = 0; i < axes.n; i++) {
        axes.v[i] = ew_axis_moved((int)axes.v[i], perm, rank);
        plain &= axes.v[i] == i;
    }
    int id = -1;
    if (!plain || (v && n < 0 && axes.n != rank))
        EW_TRY(const_axes(g, nd, slot, &axes, &id));
    nd = &g->nodes[node];
    if (slot < nd->n_in) {
        nd->in[slot] = id;
        return EW_OK;
    }
    if (id < 0)
        return EW_OK;
    int *in = ew_arena_array(&g->arena, (size_t)slot + 1, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "%s: no memory", nd->name);
    for (int i = 0; i < slot; i++)
        in[i] = i < nd->n_in ? nd->in[i] : -1;
    in[slot] = id;
    nd->in = in;
    nd->n_in = slot + 1;
    return EW_OK;
}

ew_err ew_list_permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_value *v = &g->values[n->in[1]];
    const int rank = g->values[n->in[0]].t.shape.rank;
    struct ew_ints list, moved;
    EW_CHECK(v->kind == EW_VALUE_CONST && ew_tensor_count(&v->t) == rank, EW_ERR_UNSUPPORTED,
             "%s: %s is not a constant with one entry for each axis", n->name, v->name);
    EW_TRY(ew_tensor_ints(&v->t, v->name, &list));
    for (int i = 0; i < rank; i++)
        moved.v[i] = list.v[perm[i]];
    return ew_graph_const_ints(g, v->name, moved.v, rank, &g->nodes[node].in[1]);
}

/* True if perm preserves the order of bytes as long as some axes have size 1; *unit gets these (bit
 * i: old axis i).  Axis 0, the batch, may change and is never among them. */
static bool keeps_order(const struct ew_shape *s, const int *perm, unsigned *unit)
{
    *unit = 0;
    for (int i = 0; i < s->rank; i++) {
        for (int j = i + 1; j < s->rank; j++) {
            const int a = perm[i], b = perm[j];
            if (a < b)
                continue;
            const bool one_a = a > 0 && s->dim[a] == 1, one_b = b > 0 && s->dim[b] == 1;
            if (!one_a && !one_b)
                return false;
            *unit |= (one_a ? 1u << a : 0) | (one_b ? 1u << b : 0);
        }
    }
    return true;
}

ew_err ew_axis_check_unit(const struct ew_shape *s, int64_t unit)
{
    for (int i = 0; i < s->rank; i++)
        EW_CHECK(!(unit >> i & 1) || s->dim[i] == 1, EW_ERR_UNSUPPORTED,
                 "dimension %d was 1 when the layout was chosen and is %lld now", i,
                 (long long)s->dim[i]);
    return EW_OK;
}

ew_err ew_view_permute(struct ew_graph *g, int node, const int *perm, int *out_perm)
{
    const struct ew_node *n = &g->nodes[node];
    const struct ew_shape *s = &g->values[n->in[0]].t.shape;
    int64_t *attr = int_attr(n, "unit");
    unsigned unit, moved = 0;
    EW_CHECK(keeps_order(s, perm, &unit), EW_ERR_UNSUPPORTED,
             "%s: the permuted bytes are in another order", n->name);
    unit |= (unsigned)*attr;
    for (int i = 0; i < s->rank; i++)
        moved |= (unit >> perm[i] & 1) << i;
    *attr = moved;
    for (int i = 0; i < EW_MAX_RANK; i++)
        out_perm[i] = i;
    return EW_OK;
}
