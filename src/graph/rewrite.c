/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing one node by others in place.  What is replaced by what is left to the callers. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

static void set_producers(struct ew_graph *g, int from)
{
    for (int k = from; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_out; i++)
            if (g->nodes[k].out[i] >= 0)
                g->values[g->nodes[k].out[i]].producer = k;
}

static void replace_uses(struct ew_graph *g, int old, int new)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_in; i++)
            if (g->nodes[k].in[i] == old)
                g->nodes[k].in[i] = new;
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == old)
            g->outputs[i] = new;
}

/* nodes[at] goes; nodes[first ..] come in its place. */
static ew_err rotate(struct ew_graph *g, int at, int first)
{
    const int added = g->n_nodes - first;
    EW_CLEANUP(ew_free_ptr)
    struct ew_node *fresh = calloc((size_t)added + 1, sizeof(*fresh));
    EW_CHECK(fresh, EW_ERR_MEMORY, "no memory to rewrite graph %s", g->name);
    memcpy(fresh, &g->nodes[first], (size_t)added * sizeof(*fresh));
    memmove(&g->nodes[at + added], &g->nodes[at + 1], (size_t)(first - at - 1) * sizeof(*g->nodes));
    memcpy(&g->nodes[at], fresh, (size_t)added * sizeof(*fresh));
    g->n_nodes--;
    return EW_OK;
}

ew_err ew_graph_splice(struct ew_graph *g, int node, int first, const int *out)
{
    EW_ASSERT(node < first && first <= g->n_nodes);
    const struct ew_node gone = g->nodes[node];
    EW_TRY(rotate(g, node, first));
    set_producers(g, node);
    for (int i = 0; i < gone.n_out; i++) {
        if (gone.out[i] < 0)
            continue;
        g->values[gone.out[i]].producer = -1;
        replace_uses(g, gone.out[i], out[i]);
        const char *name = g->values[gone.out[i]].name;
        EW_TRY(ew_graph_rename(g, gone.out[i], "replaced"));
        if (g->values[out[i]].kind == EW_VALUE_ACT)
            EW_TRY(ew_graph_rename(g, out[i], name));
    }
    return EW_OK;
}

ew_err ew_graph_expand(struct ew_graph *g)
{
    bool any = false;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (!n->op->onnx.expand)
            continue;
        const int first = g->n_nodes;
        EW_CLEANUP(ew_free_ptr) int *out = calloc((size_t)n->n_out + 1, sizeof(*out));
        EW_CHECK(out, EW_ERR_MEMORY, "%s: no memory", n->name);
        for (int i = 0; i < n->n_out; i++)
            out[i] = -1;
        EW_TRY(n->op->onnx.expand(g, k, out));
        if (out[0] < 0)
            continue;
        const int added = g->n_nodes - first;
        EW_TRY(ew_graph_splice(g, k, first, out));
        any = true;
        k += added - 1; /* what was added is plain */
    }
    return any ? ew_graph_sweep(g) : EW_OK;
}
