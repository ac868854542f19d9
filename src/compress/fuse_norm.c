/* SPDX-License-Identifier: Apache-2.0 */
/* Fusing the activation behind a batch norm into it, for training: one pass over the tensor less
 * forward and three less backward, and the values between the two need not be kept.  Nodes and
 * values keep their numbers (gradients are asked for by the one, dropout draws by the other): the
 * activation's node stays, and makes what nobody reads. */
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "op/norm.h"

/* The batch norm whose only reader the node is, and that can take an activation; NULL: none. */
static struct ew_node *norm_before(struct ew_graph *g, const struct ew_use *uses, int node)
{
    const struct ew_node *n = &g->nodes[node];
    const int from = n->in[0] >= 0 ? g->values[n->in[0]].producer : -1;
    if (from < 0 || uses[n->in[0]].count != 1 || strcmp(g->nodes[from].op->name, "batch_norm") != 0)
        return NULL;
    const struct ew_batch_norm_attr *a = g->nodes[from].attr;
    const bool plain = a->end.act == EW_ACT_NONE && !a->training_mode && g->nodes[from].n_out == 1;
    return plain ? &g->nodes[from] : NULL;
}

/* The batch norm makes what the activation made, and the other way round. */
static ew_err take_over(struct ew_graph *g, struct ew_node *norm, struct ew_node *act,
                        const struct ew_epilogue_attr *end)
{
    const int from = norm->out[0], to = act->out[0];
    struct ew_batch_norm_attr *a = ew_arena_alloc(&g->arena, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "%s: no memory to fuse it", norm->name);
    memcpy(a, norm->attr, sizeof(*a));
    a->end = *end;
    norm->attr = a;
    norm->out[0] = to;
    act->in[0] = to;
    act->out[0] = from;
    g->values[to].producer = (int)(norm - g->nodes);
    g->values[from].producer = (int)(act - g->nodes);
    return EW_OK;
}

ew_err ew_pass_fuse_norm(struct ew_graph *g)
{
    struct ew_use *found;
    EW_TRY(ew_pass_uses(g, &found));
    EW_CLEANUP(ew_free_ptr) struct ew_use *uses = found;
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_epilogue_attr end = {0};
        if (g->nodes[k].n_in == 0 || g->nodes[k].n_out != 1 || !ew_act_of_node(g, k, &end))
            continue;
        struct ew_node *norm = norm_before(g, uses, k);
        if (norm)
            EW_TRY(take_over(g, norm, &g->nodes[k], &end));
    }
    return EW_OK;
}
