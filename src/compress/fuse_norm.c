/* SPDX-License-Identifier: Apache-2.0 */
/* Fusing the activation behind a batch norm into it, for training: one pass over the tensor less
 * forward and three less backward, and the values between the two need not be kept.  Values keep
 * their numbers; the activation's node goes. */
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

/* The batch norm makes what the activation made. */
static ew_err take_over(struct ew_graph *g, struct ew_node *norm, const struct ew_node *act,
                        const struct ew_epilogue_attr *end)
{
    struct ew_batch_norm_attr *a = ew_arena_alloc(&g->arena, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "%s: no memory to fuse it", norm->name);
    memcpy(a, norm->attr, sizeof(*a));
    a->end = *end;
    norm->attr = a;
    g->values[norm->out[0]].producer = -1;
    norm->out[0] = act->out[0];
    g->values[act->out[0]].producer = (int)(norm - g->nodes);
    return EW_OK;
}

static void remove_node(struct ew_graph *g, int node)
{
    g->n_nodes--;
    memmove(&g->nodes[node], &g->nodes[node + 1], (size_t)(g->n_nodes - node) * sizeof(*g->nodes));
    for (int k = node; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_out; i++)
            if (g->nodes[k].out[i] >= 0)
                g->values[g->nodes[k].out[i]].producer = k;
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
        if (!norm)
            continue;
        EW_TRY(take_over(g, norm, &g->nodes[k], &end));
        remove_node(g, k--);
    }
    return EW_OK;
}
