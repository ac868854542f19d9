/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern matching of group norms as exporters write them:
 *
 *   x [N, C, d...] -Reshape-> [N, g, ...] -InstanceNormalization-> -Reshape-> [N, C, d...]
 *
 * is a group norm of x with a scale and a bias for each group. */
#include <math.h>

#include "format/onnx_import.h"
#include "graph/ops.h"
#include "op/norm.h"

/* True if x is [N, C, d...] and mid [N, g, e...], where each of the g rows has C / g channels. */
static bool groups_channels(const struct ew_shape *x, const struct ew_shape *mid)
{
    if (x->rank < 3 || mid->rank < 3 || mid->dim[0] != x->dim[0] || ew_shape_count(x) == 0)
        return false;
    return x->dim[1] % mid->dim[1] == 0 && ew_shape_count(mid) == ew_shape_count(x);
}

/* False if the reshape names a batch of 1 though there can be others, whose images it would join.
 */
static bool keeps_images(const struct ew_graph *g, const struct ew_node *reshape)
{
    const struct ew_value *to = &g->values[reshape->in[1]];
    if (!ew_value_is_weight(to) || ew_tensor_get_int(&to->t, 0) < 1)
        return true;
    for (int i = 0; i < g->n_inputs; i++)
        if (g->values[g->inputs[i]].dynamic & 1)
            return false;
    return true;
}

/* True if node `last` ends a group norm; then *first is its first reshape, *norm the node between
 * them. */
static bool is_group_norm(const struct ew_graph *g, int last, int *first, int *norm)
{
    *norm = ew_graph_producer(g, g->nodes[last].in[0], &ew_op_instance_norm);
    if (*norm < 0)
        return false;
    *first = ew_graph_producer(g, g->nodes[*norm].in[0], &ew_op_reshape);
    if (*first < 0)
        return false;
    const struct ew_shape *x = &g->values[g->nodes[*first].in[0]].t.shape;
    return groups_channels(x, &g->values[g->nodes[*norm].in[0]].t.shape) &&
           keeps_images(g, &g->nodes[*first]) &&
           ew_shape_equal(x, &g->values[g->nodes[last].out[0]].t.shape);
}

/* The ones and zeros between the reshapes are no weights: those follow, for each channel. */
static void keep_identity(struct ew_graph *g, int value, double identity)
{
    struct ew_value *v = &g->values[value];
    const int64_t n = v->kind == EW_VALUE_PARAM && v->t.data ? ew_tensor_count(&v->t) : 0;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(ew_tensor_get(&v->t, i) - identity) <= 0))
            return;
    if (n)
        v->kind = EW_VALUE_CONST;
}

static ew_err replace(struct ew_graph *g, int last, int reshape, int norm)
{
    const struct ew_node *from = &g->nodes[norm];
    const int first = g->n_nodes;
    int in[] = {g->nodes[reshape].in[0], from->in[1], from->in[2]};
    struct ew_group_norm_attr attr = *(const struct ew_group_norm_attr *)from->attr;
    attr.groups = g->values[from->in[1]].t.shape.dim[0];
    const struct ew_node n = {.op = &ew_op_group_norm,
                              .name = from->name,
                              .attr = &attr,
                              .n_in = 3,
                              .n_out = 1,
                              .in = in,
                              .channels_first = true};
    int out;
    EW_TRY(ew_graph_add_node(g, &n, &out));
    return ew_graph_splice(g, last, first, &out);
}

ew_err ew_onnx_find_group_norms(struct ew_graph *g)
{
    bool any = false;
    if (!g->inferred)
        EW_TRY(ew_graph_infer(g));
    const int n_nodes = g->n_nodes;
    EW_TRY(ew_graph_rewrite_begin(g));
    for (int k = 0; k < n_nodes; k++) {
        int first, norm;
        if (g->nodes[k].op != &ew_op_reshape || !is_group_norm(g, k, &first, &norm))
            continue;
        keep_identity(g, g->nodes[norm].in[1], 1);
        keep_identity(g, g->nodes[norm].in[2], 0);
        EW_TRY(replace(g, k, first, norm));
        any = true;
    }
    EW_TRY(ew_graph_rewrite_end(g));
    return any ? ew_graph_sweep(g) : EW_OK;
}
