/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the layout of images through a graph that has been converted to channels-last, or was
 * built so: spatial operators have it, transposes begin and end it, operators that the conversion
 * (graph/layout.c) moves transposes through keep it. */
#include "measure/file_layout.h"

#include "graph/layout.h"
#include "graph/ops.h"

/* True for a transpose of [N, C, ...] to [N, ..., C]. */
static bool turns_last(const struct ew_node *n, int rank)
{
    const struct ew_transpose_attr *a = n->attr;
    bool last = a->perm.n == rank;
    for (int i = 0; last && i < rank; i++)
        last = a->perm.v[i] == (i == 0 ? 0 : i == rank - 1 ? 1 : i + 1);
    return last;
}

/* True if an input of this rank has the channels last. */
static bool reads_last(const struct ew_graph *g, const struct ew_node *n, int rank,
                       const bool *last)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && last[n->in[i]] && g->values[n->in[i]].t.shape.rank == rank)
            return true;
    return false;
}

static bool is_last(const struct ew_graph *g, const struct ew_node *n, int out, const bool *last)
{
    const int rank = g->values[out].t.shape.rank;
    if (rank < 3 || n->n_in < 1 || n->in[0] < 0)
        return false;
    if (n->op == &ew_op_transpose)
        return !last[n->in[0]] && turns_last(n, rank);
    if (n->op->flags & EW_OP_SPATIAL)
        return g->values[n->in[0]].t.shape.rank == rank;
    const bool keeps =
        (n->op->flags & EW_OP_ELEMENTWISE) || (n->op->permute && !(n->op->flags & EW_OP_VIEW));
    return keeps && reads_last(g, n, rank, last);
}

void ew_file_layout(const struct ew_graph *g, bool *last)
{
    for (int v = 0; v < g->n_values; v++)
        last[v] = g->values[v].kind == EW_VALUE_INPUT && g->values[v].channels_last;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0)
                last[n->out[i]] = is_last(g, n, n->out[i], last);
    }
}
