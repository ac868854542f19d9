/* SPDX-License-Identifier: Apache-2.0 */
/* For training: swaps an activation with the max pool behind it.  max(clamp(x)) = clamp(max(x)),
 * and the gradients agree; the activation then processes a quarter of the elements, and the pool's
 * input need not be kept.  Nodes and values keep their numbers, as in fuse_norm.c; the value
 * between the two gets the pooled shape. */
#include "compress/pass.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "op/epilogue.h"

/* True for a monotone activation whose gradient is zero wherever it maps different numbers to equal
 * ones: otherwise ties could select another element. */
static bool clamps(const struct ew_graph *g, int node)
{
    struct ew_epilogue_attr end = {0};
    return node >= 0 && g->nodes[node].n_out == 1 && ew_act_of_node(g, node, &end) &&
           (end.act == EW_ACT_RELU || end.act == EW_ACT_CLIP);
}

/* Swaps the two nodes. */
static ew_err trade(struct ew_graph *g, struct ew_readers *r, int act, int pool)
{
    struct ew_node *a = &g->nodes[act], *p = &g->nodes[pool];
    const struct ew_node was_act = *a, was_pool = *p;
    *a = was_pool;
    *p = was_act;
    a->in = was_act.in; /* inputs are rewired through the use lists */
    a->n_in = was_act.n_in;
    p->in = was_pool.in;
    p->n_in = was_pool.n_in;
    a->out = was_act.out;
    p->out = was_pool.out;
    const int from = was_act.in[0], between = was_act.out[0];
    EW_TRY(ew_readers_set_all(r, act, was_pool.in, was_pool.n_in));
    EW_TRY(ew_readers_set_all(r, pool, was_act.in, was_act.n_in));
    EW_TRY(ew_readers_set(r, act, 0, from));
    EW_TRY(ew_readers_set(r, pool, 0, between));
    g->values[between].t.shape = g->values[p->out[0]].t.shape;
    return EW_OK;
}

ew_err ew_pass_sink_activation(struct ew_graph *g)
{
    EW_CLEANUP(ew_readers_free_ptr) struct ew_readers *r = NULL;
    EW_TRY(ew_readers_new(g, &r));
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (n->op != &ew_op_max_pool || n->n_out != 1)
            continue;
        const int before = ew_readers_sole_producer(r, n->in[0]);
        if (clamps(g, before))
            EW_TRY(trade(g, r, before, k));
    }
    return EW_OK;
}
