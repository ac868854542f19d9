/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: evaluates nodes whose inputs are all constant. */
#include <stdlib.h>

#include "compress/pass.h"

/* Larger results (expand, tile) are left to the run. */
#define MOST_BYTES ((size_t)256 << 20)

static bool can_fold(const struct ew_graph *g, const struct ew_node *n)
{
    if (!n->op->forward || (n->op->flags & EW_OP_STOCHASTIC) || n->n_in == 0)
        return false;
    size_t in_bytes = 0, out_bytes = 0;
    for (int i = 0; i < n->n_in; i++) {
        /* values known from shapes change with the batch */
        if (n->in[i] >= 0 &&
            (!ew_pass_is_constant(g, n->in[i]) || g->values[n->in[i]].kind == EW_VALUE_ACT))
            return false;
        in_bytes += n->in[i] >= 0 ? ew_tensor_bytes(&g->values[n->in[i]].t) : 0;
    }
    for (int i = 0; i < n->n_out; i++)
        out_bytes += n->out[i] >= 0 ? ew_tensor_bytes(&g->values[n->out[i]].t) : 0;
    return out_bytes <= 4 * in_bytes && out_bytes <= MOST_BYTES;
}

static ew_err fold(struct ew_graph *g, int node)
{
    const struct ew_node *n = &g->nodes[node];
    EW_CLEANUP(ew_free_ptr)
    struct ew_tensor **slots = calloc((size_t)(n->n_in + n->n_out) + 1, sizeof(*slots));
    EW_CLEANUP(ew_free_ptr) void *scratch = NULL;
    EW_CHECK(slots, EW_ERR_MEMORY, "%s: no memory to fold it", n->name);
    struct ew_call c;
    ew_graph_call(g, n, slots, &c);
    const bool empty = ew_call_is_empty(&c);
    if (n->op->scratch && !empty)
        EW_TRY(ew_fail_in(ew_aligned_new(n->op->scratch(&c), &scratch), "node %s", n->name));
    c.scratch = scratch;
    for (int i = 0; i < n->n_out; i++) {
        if (!c.out[i])
            continue;
        c.out[i]->data = ew_arena_alloc(&g->arena, ew_tensor_bytes(c.out[i]));
        EW_CHECK(c.out[i]->data, EW_ERR_MEMORY, "%s: no memory to fold it", n->name);
    }
    if (!empty)
        EW_TRY(n->op->forward(&c));
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0)
            continue;
        g->values[n->out[i]].kind = EW_VALUE_CONST;
        g->values[n->out[i]].producer = -1;
    }
    return EW_OK;
}

ew_err ew_pass_fold_constants(struct ew_graph *g)
{
    int kept = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        if (can_fold(g, &g->nodes[k])) {
            EW_TRY(fold(g, k));
            continue;
        }
        g->nodes[kept] = g->nodes[k];
        for (int i = 0; i < g->nodes[kept].n_out; i++)
            if (g->nodes[kept].out[i] >= 0)
                g->values[g->nodes[kept].out[i]].producer = kept;
        kept++;
    }
    g->n_nodes = kept;
    EW_TRY(ew_graph_sweep(g));
    return ew_graph_infer(g);
}
