/* SPDX-License-Identifier: Apache-2.0 */
/* Max pools before the activation in front of them, for training: the maximum of clamped values is
 * the clamped maximum, and so are the gradients.  The activation then passes over a quarter of the
 * elements, and what was pooled need not be kept.  Nodes and values keep their numbers, as in
 * fuse_norm.c; the value between the two has the pooled shape. */
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "op/epilogue.h"

/* True where the node is an activation that keeps the order, and whose gradient is zero wherever it
 * makes different numbers equal: else the first of equal ones could be another one. */
static bool clamps(const struct ew_graph *g, int node)
{
    struct ew_epilogue_attr end = {0};
    return node >= 0 && g->nodes[node].n_out == 1 && ew_act_of_node(g, node, &end) &&
           (end.act == EW_ACT_RELU || end.act == EW_ACT_CLIP);
}

/* The two nodes trade places between the values before and behind them. */
static void trade(struct ew_graph *g, int act, int pool)
{
    struct ew_node *a = &g->nodes[act], *p = &g->nodes[pool];
    const int from = a->in[0], between = a->out[0];
    const struct ew_node old = *a;
    int *const made = p->out;
    *a = *p;
    a->out = old.out;
    a->in[0] = from;
    *p = old;
    p->out = made;
    p->in[0] = between;
    g->values[between].t.shape = g->values[made[0]].t.shape;
}

ew_err ew_pass_late_act(struct ew_graph *g)
{
    struct ew_use *found;
    EW_TRY(ew_pass_uses(g, &found));
    EW_CLEANUP(ew_free_ptr) struct ew_use *uses = found;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (strcmp(n->op->name, "max_pool") != 0 || n->n_out != 1)
            continue;
        const int before = g->values[n->in[0]].producer;
        if (uses[n->in[0]].count == 1 && clamps(g, before))
            trade(g, before, k);
    }
    return EW_OK;
}
