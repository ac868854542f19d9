/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing nodes in place.  Which nodes, and by what, the callers decide. */
#include "graph/rewrite.h"

#include <stdlib.h>

struct replacement {
    int first, count; /* the new nodes; count < 0: the node stays */
};

struct ew_rewrite {
    struct ew_readers *readers;
    struct replacement *by; /* by old node */
    int n_nodes;            /* when the rewrite began */
};

void ew_rewrite_free(struct ew_rewrite *r)
{
    if (!r)
        return;
    ew_readers_free(r->readers);
    free(r->by);
    free(r);
}

struct ew_readers *ew_graph_readers(const struct ew_graph *g)
{
    return g->rewrite ? g->rewrite->readers : NULL;
}

ew_err ew_graph_rewrite_begin(struct ew_graph *g)
{
    EW_ASSERT(!g->rewrite);
    struct ew_rewrite *r = calloc(1, sizeof(*r));
    struct replacement *by = malloc(((size_t)g->n_nodes + 1) * sizeof(*by));
    if (!r || !by) {
        free(r);
        free(by);
        return ew_fail(EW_ERR_MEMORY, "no memory to rewrite graph %s", g->name);
    }
    for (int k = 0; k < g->n_nodes; k++)
        by[k] = (struct replacement){.count = -1};
    r->by = by;
    r->n_nodes = g->n_nodes;
    const ew_err e = ew_readers_new(g, &r->readers);
    if (e != EW_OK)
        ew_rewrite_free(r);
    else
        g->rewrite = r;
    return e;
}

static void put_node(struct ew_graph *g, struct ew_node *nodes, int *n, int k)
{
    nodes[*n] = g->nodes[k];
    for (int i = 0; i < nodes[*n].n_out; i++)
        if (nodes[*n].out[i] >= 0)
            g->values[nodes[*n].out[i]].producer = *n;
    ++*n;
}

ew_err ew_graph_rewrite_end(struct ew_graph *g)
{
    struct ew_rewrite *r = g->rewrite;
    struct ew_node *nodes = malloc(((size_t)g->n_nodes + 1) * sizeof(*nodes));
    EW_CHECK(nodes, EW_ERR_MEMORY, "no memory to rewrite graph %s", g->name);
    int n = 0;
    for (int k = 0; k < r->n_nodes; k++) {
        const struct replacement by = r->by[k];
        if (by.count < 0)
            put_node(g, nodes, &n, k);
        for (int i = 0; i < by.count; i++)
            put_node(g, nodes, &n, by.first + i);
    }
    g->rewrite = NULL;
    ew_rewrite_free(r);
    g->cap_nodes = g->n_nodes + 1;
    g->n_nodes = n;
    free(g->nodes);
    g->nodes = nodes;
    return EW_OK;
}

ew_err ew_graph_splice(struct ew_graph *g, int node, int first, const int *out)
{
    const bool alone = !g->rewrite;
    if (alone)
        EW_TRY(ew_graph_rewrite_begin(g));
    struct ew_rewrite *r = g->rewrite;
    const struct ew_node gone = g->nodes[node];
    EW_ASSERT(node < r->n_nodes && r->by[node].count < 0 && first <= g->n_nodes);
    if (alone) /* the new nodes were added before this rewrite */
        r->n_nodes = first;
    r->by[node] = (struct replacement){first, g->n_nodes - first};
    ew_readers_detach(r->readers, node);
    for (int i = 0; i < gone.n_out; i++) {
        if (gone.out[i] < 0)
            continue;
        g->values[gone.out[i]].producer = -1;
        EW_TRY(ew_readers_replace(r->readers, gone.out[i], out[i]));
        const char *name = g->values[gone.out[i]].name;
        EW_TRY(ew_graph_rename(g, gone.out[i], "replaced"));
        if (g->values[out[i]].kind == EW_VALUE_ACT)
            EW_TRY(ew_graph_rename(g, out[i], name));
    }
    return alone ? ew_graph_rewrite_end(g) : EW_OK;
}

ew_err ew_graph_expand(struct ew_graph *g)
{
    const int n_nodes = g->n_nodes;
    bool any = false;
    EW_TRY(ew_graph_rewrite_begin(g));
    for (int k = 0; k < n_nodes; k++) { /* not the nodes that expand adds */
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
        EW_TRY(ew_graph_splice(g, k, first, out));
        any = true;
    }
    EW_TRY(ew_graph_rewrite_end(g));
    return any ? ew_graph_sweep(g) : EW_OK;
}
