/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern matching of channel shuffles as exporters write them:
 *
 *   [N, C, d...] -Reshape-> [N, g, C/g, ...] -Transpose(0, 2, 1, ...)-> -Reshape-> [N, C, d...]
 *
 * The operator is op_channel_shuffle.c. */
#include "graph/shuffle.h"

#include "graph/layout.h"
#include "graph/ops.h"

static bool swaps_one_and_two(const struct ew_node *n, int rank)
{
    const struct ew_transpose_attr *a = n->attr;
    if (a->perm.n != rank || rank < 3)
        return false;
    for (int i = 0; i < rank; i++)
        if (a->perm.v[i] != (i == 1 ? 2 : i == 2 ? 1 : i))
            return false;
    return true;
}

/* True if x is [N, C, d...] and mid [N, g, C/g, e...] with the same number of elements in d and e.
 */
static bool splits_channels(const struct ew_shape *x, const struct ew_shape *mid)
{
    if (x->rank < 3 || mid->rank < 3 || mid->dim[0] != x->dim[0])
        return false;
    /* A middle dimension of 0 would make every product below fit. */
    return ew_shape_count(x) > 0 && ew_shape_span(mid, 1, 3) == x->dim[1] &&
           ew_shape_span(mid, 3, mid->rank) == ew_shape_span(x, 2, x->rank);
}

/* True if the Reshape `last` ends a shuffle of *x in *groups groups. */
static bool is_shuffle(const struct ew_graph *g, int last, int *x, int64_t *groups)
{
    const int turn = ew_graph_producer(g, g->nodes[last].in[0], &ew_op_transpose);
    if (turn < 0)
        return false;
    const int first = ew_graph_producer(g, g->nodes[turn].in[0], &ew_op_reshape);
    if (first < 0)
        return false;
    *x = g->nodes[first].in[0];
    const struct ew_shape *in = &g->values[*x].t.shape;
    const struct ew_shape *mid = &g->values[g->nodes[turn].in[0]].t.shape;
    *groups = mid->rank > 1 ? mid->dim[1] : 0;
    return swaps_one_and_two(&g->nodes[turn], mid->rank) && splits_channels(in, mid) &&
           ew_shape_equal(in, &g->values[g->nodes[last].out[0]].t.shape);
}

ew_err ew_graph_find_shuffles(struct ew_graph *g)
{
    bool any = false;
    if (!g->inferred)
        EW_TRY(ew_graph_infer(g));
    const int n_nodes = g->n_nodes;
    EW_TRY(ew_graph_rewrite_begin(g));
    for (int k = 0; k < n_nodes; k++) {
        int x, out;
        struct ew_channel_shuffle_attr attr;
        if (g->nodes[k].op != &ew_op_reshape || !is_shuffle(g, k, &x, &attr.groups))
            continue;
        const int first = g->n_nodes;
        const struct ew_node n = {.op = &ew_op_channel_shuffle,
                                  .name = g->nodes[k].name,
                                  .attr = &attr,
                                  .n_in = 1,
                                  .n_out = 1,
                                  .in = &x,
                                  .channels_first = true};
        EW_TRY(ew_graph_add_node(g, &n, &out));
        EW_TRY(ew_graph_splice(g, k, first, &out));
        any = true;
    }
    EW_TRY(ew_graph_rewrite_end(g));
    return any ? ew_graph_sweep(g) : EW_OK;
}
