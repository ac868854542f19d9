/* SPDX-License-Identifier: Apache-2.0 */
/* How channels propagate through each operator.  Updating nodes after removal is in
 * channel_resize.c. */
#include <string.h>

#include "compress/channels.h"
#include "graph/layout.h"
#include "graph/ops.h"
#include "graph/shuffle.h"
#include "op/axis.h"
#include "op/conv.h"
#include "op/epilogue.h"
#include "op/math_attr.h"
#include "op/norm.h"
#include "op/shape_attr.h"
#include "op/types.h"

typedef ew_err rule(struct ew_channel_search *s, int node);

static const struct ew_shape *shape_of(const struct ew_channel_search *s, int value)
{
    return &s->g->values[value].t.shape;
}

/* Sets channel axis and units of a value; units NULL: nothing can be removed. */
static ew_err set_channels(struct ew_channel_search *s, int value, int axis, int *units)
{
    if (value < 0 || !units)
        return EW_OK;
    s->axis[value] = axis;
    return ew_unit_set(s, value, axis, units);
}

static bool is_last(const struct ew_channel_search *s, int value)
{
    return s->axis[value] == shape_of(s, value)->rank - 1;
}

/* New fixed units. */
static ew_err fixed_units(struct ew_channel_search *s, int64_t n, int node, int **out)
{
    EW_TRY(ew_unit_fresh(s, n, out));
    for (int64_t i = 0; i < n; i++)
        s->keeper[(*out)[i]] = node;
    return EW_OK;
}

/* An axis of a weight that reads channels without units: another layer with the same weight must
 * not lose any either. */
static ew_err fix_shared(struct ew_channel_search *s, int node, int weight, int axis)
{
    int *fixed;
    if (s->uses[weight] < 2)
        return EW_OK;
    EW_TRY(fixed_units(s, shape_of(s, weight)->dim[axis], node, &fixed));
    return ew_unit_set(s, weight, axis, fixed);
}

/* Unknown operator: fixes the channels of all inputs that it reads as data. */
static ew_err fix_inputs(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    for (int i = 0; i < n->n_in && !(n->op->flags & EW_OP_SHAPE_ONLY); i++) {
        if (n->in[i] < 0)
            continue;
        ew_unit_fix(s, n->in[i], node);
        const int rank =
            ew_value_is_weight(&s->g->values[n->in[i]]) ? shape_of(s, n->in[i])->rank : 0;
        for (int a = 0; a < rank; a++)
            EW_TRY(fix_shared(s, node, n->in[i], a));
    }
    return EW_OK;
}

static bool has_more_outputs(const struct ew_node *n)
{
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i] >= 0)
            return true;
    return false;
}

/* ---- Layers with weights ---- */

/* Records a layer that produces channels. */
static void add_maker(struct ew_channel_search *s, int node, int weight, int axis)
{
    const struct ew_node *n = &s->g->nodes[node];
    struct ew_channel_producer m = {
        .node = node, .weight = weight, .axis = axis, .bias = -1, .norm = -1};
    if (n->n_in > 2)
        m.bias = n->in[2];
    s->c->producers[s->c->n_producers++] = m;
}

/* Couples x's channels with an axis of the weights. */
static ew_err read_channels(struct ew_channel_search *s, int node, int axis)
{
    const struct ew_node *n = &s->g->nodes[node];
    int *x = is_last(s, n->in[0]) ? ew_unit_of(s, n->in[0]) : NULL;
    if (x)
        return ew_unit_set(s, n->in[1], axis, x);
    ew_unit_fix(s, n->in[0], node);
    return fix_shared(s, node, n->in[1], axis);
}

/* Couples the same positions of all groups, so that groups keep equal sizes. */
static ew_err grouped(struct ew_channel_search *s, int node, int64_t groups)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_shape *w = shape_of(s, n->in[1]);
    const int last = w->rank - 1;
    const int64_t out = w->dim[0] / groups, in = w->dim[last];
    int *made, *x = is_last(s, n->in[0]) ? ew_unit_of(s, n->in[0]) : NULL;
    EW_TRY(ew_unit_fresh(s, out, &made));
    int *all = ew_arena_array(&s->c->arena, (size_t)w->dim[0], sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for channels");
    for (int64_t i = 0; i < w->dim[0]; i++)
        all[i] = made[i % out];
    for (int64_t i = 0; x && i < groups * in; i++)
        ew_unit_join(s, x[i % in], x[i]);
    EW_TRY(read_channels(s, node, last));
    EW_TRY(ew_unit_set(s, n->in[1], 0, all));
    if (n->n_in > 2 && n->in[2] >= 0)
        EW_TRY(ew_unit_set(s, n->in[2], 0, all));
    add_maker(s, node, n->in[1], 0);
    return set_channels(s, n->out[0], shape_of(s, n->out[0])->rank - 1, all);
}

/* Couples filters with the channel that they read. */
static ew_err depthwise(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const int64_t filters = shape_of(s, n->in[1])->dim[0];
    const int64_t channels = shape_of(s, n->in[0])->dim[shape_of(s, n->in[0])->rank - 1];
    const int *x = is_last(s, n->in[0]) ? ew_unit_of(s, n->in[0]) : NULL;
    if (!x)
        return fix_inputs(s, node);
    int *all = ew_arena_array(&s->c->arena, (size_t)filters, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for channels");
    for (int64_t i = 0; i < filters; i++)
        all[i] = x[i / (filters / channels)];
    EW_TRY(ew_unit_set(s, n->in[1], 0, all));
    if (n->n_in > 2 && n->in[2] >= 0)
        EW_TRY(ew_unit_set(s, n->in[2], 0, all));
    return set_channels(s, n->out[0], shape_of(s, n->out[0])->rank - 1, all);
}

static ew_err conv(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_conv_attr *a = n->attr;
    if (n->n_in > 3 || !ew_value_is_weight(&s->g->values[n->in[1]]) || n->channels_first)
        return fix_inputs(s, node);
    const struct ew_shape *w = shape_of(s, n->in[1]);
    if (a->groups > 1 && w->dim[w->rank - 1] == 1)
        return depthwise(s, node);
    return grouped(s, node, a->groups > 1 ? a->groups : 1);
}

/* Couples x's channels with `in_axis` of the weights; the other axis produces new ones. */
static ew_err dense(struct ew_channel_search *s, int node, int in_axis, int bias)
{
    const struct ew_node *n = &s->g->nodes[node];
    int *made;
    EW_TRY(ew_unit_fresh(s, shape_of(s, n->in[1])->dim[!in_axis], &made));
    EW_TRY(read_channels(s, node, in_axis));
    EW_TRY(ew_unit_set(s, n->in[1], !in_axis, made));
    if (bias >= 0 && shape_of(s, bias)->rank > 0) {
        const struct ew_shape *b = shape_of(s, bias);
        if (b->dim[b->rank - 1] > 1 || shape_of(s, n->in[1])->dim[!in_axis] == 1)
            EW_TRY(ew_unit_set(s, bias, b->rank - 1, made));
    }
    add_maker(s, node, n->in[1], !in_axis);
    return set_channels(s, n->out[0], shape_of(s, n->out[0])->rank - 1, made);
}

static ew_err gemm(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_gemm_attr *a = n->attr;
    const int bias = n->n_in > 2 ? n->in[2] : -1;
    if (a->trans_a || !ew_value_is_weight(&s->g->values[n->in[1]]) ||
        (bias >= 0 && !ew_value_is_weight(&s->g->values[bias])) || n->n_in > 3)
        return fix_inputs(s, node);
    return dense(s, node, a->trans_b ? 1 : 0, bias);
}

static ew_err matmul(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    if (n->n_in != 2 || !ew_value_is_weight(&s->g->values[n->in[1]]) ||
        shape_of(s, n->in[1])->rank != 2)
        return fix_inputs(s, node);
    return dense(s, node, 0, -1);
}

static ew_err conv_transpose(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_conv_transpose_attr *a = n->attr;
    int *made;
    if (a->groups > 1 || n->n_in > 3 || !ew_value_is_weight(&s->g->values[n->in[1]]) ||
        n->channels_first)
        return fix_inputs(s, node);
    const int last = shape_of(s, n->in[1])->rank - 1;
    EW_TRY(ew_unit_fresh(s, shape_of(s, n->in[1])->dim[last], &made));
    EW_TRY(read_channels(s, node, 0));
    EW_TRY(ew_unit_set(s, n->in[1], last, made));
    if (n->n_in > 2 && n->in[2] >= 0)
        EW_TRY(ew_unit_set(s, n->in[2], 0, made));
    add_maker(s, node, n->in[1], last);
    return set_channels(s, n->out[0], shape_of(s, n->out[0])->rank - 1, made);
}

/* Couples scale, shift and statistics with the channels. */
static ew_err batch_norm(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    int *x = is_last(s, n->in[0]) ? ew_unit_of(s, n->in[0]) : NULL;
    if (!x || has_more_outputs(n) || n->channels_first)
        return fix_inputs(s, node);
    for (int i = 1; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        if (!ew_value_is_weight(&s->g->values[n->in[i]]))
            return fix_inputs(s, node);
        EW_TRY(ew_unit_set(s, n->in[i], 0, x));
    }
    for (int m = s->c->n_producers - 1; m >= 0; m--)
        if (s->g->nodes[s->c->producers[m].node].out[0] == n->in[0])
            s->c->producers[m].norm = node;
    return set_channels(s, n->out[0], s->axis[n->in[0]], x);
}

/* With one channel per group it is per-channel, like batch norm. */
static ew_err group_norm(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_group_norm_attr *a = n->attr;
    const struct ew_shape *x = shape_of(s, n->in[0]);
    return a->groups == x->dim[x->rank - 1] ? batch_norm(s, node) : fix_inputs(s, node);
}

/* ---- Element-wise ---- */

/* The dimension of `in` that broadcasts to axis `axis` of an output of `rank` (1 if missing), and
 * its axis in *own. */
static int64_t dim_at(const struct ew_shape *in, int axis, int rank, int *own)
{
    *own = axis - (rank - in->rank);
    return *own >= 0 ? in->dim[*own] : 1;
}

/* Couples one operand with the channels of another. */
static ew_err couple_operand(struct ew_channel_search *s, int node, int v, int axis, int *units)
{
    const struct ew_shape *out = shape_of(s, s->g->nodes[node].out[0]);
    int own;
    const int64_t d = dim_at(shape_of(s, v), axis, out->rank, &own);
    if (own < 0 || d != out->dim[axis])
        ew_unit_fix(s, v, node); /* broadcast: cannot be removed */
    else if (ew_value_is_weight(&s->g->values[v]))
        return ew_unit_set(s, v, own, units);
    else if (ew_unit_of(s, v) && s->axis[v] == own)
        return ew_unit_set(s, v, own, units);
    else {
        ew_unit_fix(s, v, node);
        for (int64_t i = 0; i < d; i++) {
            int *keeper = &s->keeper[ew_unit_root(s, units[i])];
            *keeper = *keeper == EW_UNIT_FREE ? node : *keeper;
        }
    }
    return EW_OK;
}

static ew_err elementwise(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_shape *out = shape_of(s, n->out[0]);
    int *units = NULL, axis = -1;
    for (int i = 0; i < n->n_in && !units; i++) {
        int own;
        if (n->in[i] < 0 || !ew_unit_of(s, n->in[i]))
            continue;
        axis = s->axis[n->in[i]] + out->rank - shape_of(s, n->in[i])->rank;
        if (dim_at(shape_of(s, n->in[i]), axis, out->rank, &own) == out->dim[axis])
            units = ew_unit_of(s, n->in[i]);
    }
    if (!units)
        return fix_inputs(s, node);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0)
            EW_TRY(couple_operand(s, node, n->in[i], axis, units));
    for (int i = 0; i < n->n_out; i++)
        EW_TRY(set_channels(s, n->out[i], axis, units));
    return EW_OK;
}

/* ---- Channel-wise ---- */

/* Operators that treat each channel independently: pooling, padding. */
static ew_err channelwise(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_shape *in = shape_of(s, n->in[0]), *out = shape_of(s, n->out[0]);
    if (!ew_unit_of(s, n->in[0]) || !is_last(s, n->in[0]) || has_more_outputs(n) ||
        n->channels_first || out->rank != in->rank ||
        out->dim[out->rank - 1] != in->dim[in->rank - 1])
        return fix_inputs(s, node);
    return set_channels(s, n->out[0], s->axis[n->in[0]], ew_unit_of(s, n->in[0]));
}

static ew_err reduce(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_reduce_attr *a = n->attr;
    const int x = n->in[0], rank = shape_of(s, x)->rank;
    struct ew_ints axes = {0};
    int before = 0;
    if (!ew_unit_of(s, x))
        return EW_OK;
    if (n->n_in < 2 || n->in[1] < 0 || !s->g->values[n->in[1]].t.data)
        return fix_inputs(s, node);
    EW_TRY(ew_tensor_ints(&s->g->values[n->in[1]].t, "axes", &axes));
    for (int i = 0; i < axes.n; i++) {
        const int64_t at = axes.v[i] < 0 ? axes.v[i] + rank : axes.v[i];
        if (at == s->axis[x])
            return fix_inputs(s, node);
        before += at < s->axis[x];
    }
    if (axes.n == 0)
        return fix_inputs(s, node);
    return set_channels(s, n->out[0], s->axis[x] - (a->keepdims ? 0 : before), ew_unit_of(s, x));
}

/* ---- Data movement ---- */

static int channel_axis(const struct ew_channel_search *s, const struct ew_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && ew_unit_of(s, n->in[i]))
            return s->axis[n->in[i]];
    return -1;
}

static ew_err concat(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_shape *out = shape_of(s, n->out[0]);
    const struct ew_concat_attr *a = n->attr;
    const int axis = channel_axis(s, n);
    if (axis < 0)
        return EW_OK;
    if (ew_axis_of(a->axis, out->rank) != axis)
        return elementwise(s, node); /* concatenated along another axis: channels coincide */
    int *all = ew_arena_array(&s->c->arena, (size_t)out->dim[axis] + 1, sizeof(*all)), *at = all;
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for channels");
    for (int i = 0; i < n->n_in; i++) {
        const int64_t d = shape_of(s, n->in[i])->dim[axis];
        int *part = s->axis[n->in[i]] == axis ? ew_unit_of(s, n->in[i]) : NULL;
        if (!part) {
            ew_unit_fix(s, n->in[i], node);
            EW_TRY(fixed_units(s, d, node, &part));
        }
        memcpy(at, part, (size_t)d * sizeof(*at));
        at += d;
    }
    return set_channels(s, n->out[0], axis, all);
}

static ew_err split(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_split_attr *a = n->attr;
    int *units = ew_unit_of(s, n->in[0]);
    const int axis = units ? s->axis[n->in[0]] : -1;
    if (!units)
        return EW_OK;
    if (n->n_in > 1 && n->in[1] >= 0 && !ew_value_is_weight(&s->g->values[n->in[1]]))
        return fix_inputs(s, node);
    const bool cuts = ew_axis_of(a->axis, shape_of(s, n->in[0])->rank) == axis;
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0)
            return fix_inputs(s, node);
        EW_TRY(set_channels(s, n->out[i], axis, units));
        if (cuts)
            units += shape_of(s, n->out[i])->dim[axis];
    }
    return EW_OK;
}

static ew_err slice(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    int *units = ew_unit_of(s, n->in[0]);
    if (!units)
        return EW_OK;
    const int axis = s->axis[n->in[0]];
    const int entry = ew_channel_slice_entry(s->g, n, axis, shape_of(s, n->in[0])->rank);
    if (entry == -2)
        return fix_inputs(s, node);
    if (entry >= 0)
        units += ew_channel_slice_first(s->g, n, entry, shape_of(s, n->in[0])->dim[axis]);
    return set_channels(s, n->out[0], axis, units);
}

/* Couples the same positions of all groups, so that it stays a shuffle. */
static ew_err shuffle(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_channel_shuffle_attr *a = n->attr;
    const struct ew_shape *in = shape_of(s, n->in[0]);
    const int64_t d = in->dim[in->rank - 1], k = d / a->groups;
    const int *x = ew_unit_of(s, n->in[0]);
    if (!x || !is_last(s, n->in[0]) || n->channels_first)
        return fix_inputs(s, node);
    int *all = ew_arena_array(&s->c->arena, (size_t)d, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for channels");
    for (int64_t i = 0; i < d; i++) {
        all[i % k * a->groups + i / k] = x[i];
        ew_unit_join(s, x[i % k], x[i]);
    }
    return set_channels(s, n->out[0], in->rank - 1, all);
}

static ew_err transpose(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_transpose_attr *a = n->attr;
    const int rank = shape_of(s, n->in[0])->rank, axis = s->axis[n->in[0]];
    for (int i = 0; axis >= 0 && i < rank; i++)
        if ((a->perm.n ? (int)a->perm.v[i] : rank - 1 - i) == axis)
            return set_channels(s, n->out[0], i, ew_unit_of(s, n->in[0]));
    return EW_OK;
}

/* The axis of a view's output that contains axis `axis` of `in`, possibly merged with others: index
 * f of it is channel f / *inner % d.  -1: none. */
static int view_axis(const struct ew_shape *in, const struct ew_shape *out, int axis,
                     int64_t *inner)
{
    for (int to = 0; to < out->rank; to++) {
        int p = axis, q = axis + 1;
        while (p >= 0 && ew_shape_span(in, 0, p) != ew_shape_span(out, 0, to))
            p--;
        while (q <= in->rank &&
               ew_shape_span(in, q, in->rank) != ew_shape_span(out, to + 1, out->rank))
            q++;
        if (p < 0 || q > in->rank || ew_shape_span(in, p, q) != out->dim[to])
            continue;
        *inner = ew_shape_span(in, axis + 1, q);
        return to;
    }
    return -1;
}

static ew_err view(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    const struct ew_shape *in = shape_of(s, n->in[0]), *out = shape_of(s, n->out[0]);
    const int *x = ew_unit_of(s, n->in[0]);
    int64_t inner;
    if (!x)
        return EW_OK;
    const int64_t d = in->dim[s->axis[n->in[0]]];
    const int to = d > 1 ? view_axis(in, out, s->axis[n->in[0]], &inner) : -1;
    if (to < 0)
        return fix_inputs(s, node);
    int *all = ew_arena_array(&s->c->arena, (size_t)out->dim[to] + 1, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for channels");
    for (int64_t f = 0; f < out->dim[to]; f++)
        all[f] = x[f / inner % d];
    return set_channels(s, n->out[0], to, all);
}

/* ---- Table ---- */

static const struct {
    const struct ew_op *op;
    rule *apply;
} rules[] = {
    {&ew_op_conv, conv},
    {&ew_op_conv_transpose, conv_transpose},
    {&ew_op_gemm, gemm},
    {&ew_op_matmul, matmul},
    {&ew_op_batch_norm, batch_norm},
    {&ew_op_instance_norm, batch_norm},
    {&ew_op_group_norm, group_norm},
    {&ew_op_max_pool, channelwise},
    {&ew_op_average_pool, channelwise},
    {&ew_op_lp_pool, channelwise},
    {&ew_op_global_average_pool, channelwise},
    {&ew_op_global_max_pool, channelwise},
    {&ew_op_adaptive_avg_pool, channelwise},
    {&ew_op_pad, channelwise},
    {&ew_op_reduce_mean, reduce},
    {&ew_op_reduce_max, reduce},
    {&ew_op_reduce_sum, reduce},
    {&ew_op_concat, concat},
    {&ew_op_split, split},
    {&ew_op_slice, slice},
    {&ew_op_channel_shuffle, shuffle},
    {&ew_op_transpose, transpose},
};

ew_err ew_channel_rule(struct ew_channel_search *s, int node)
{
    const struct ew_node *n = &s->g->nodes[node];
    if (n->n_in < 1 || n->out[0] < 0 || n->in[0] < 0 || n->channels_first)
        return fix_inputs(s, node);
    for (size_t i = 0; i < EW_COUNT(rules); i++)
        if (rules[i].op == n->op)
            return rules[i].apply(s, node);
    if (n->op->flags & EW_OP_ELEMENTWISE)
        return elementwise(s, node);
    return n->op->flags & EW_OP_VIEW ? view(s, node) : fix_inputs(s, node);
}
