/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern: a layer and the batch norm after it, forward.
 *
 * The layer accumulates the statistics of its output while it is in registers, which saves the norm
 * one pass over the tensor. */
#include "backend/cpu/fuse/fuse.h"

/* The layer that can compute a batch norm's statistics; -1: none, or it does so for another
 * norm. */
static int layer_of(const struct ew_fuse_search *f, int norm)
{
    const struct ew_graph *g = f->query->g;
    const int value = g->nodes[norm].in[0], from = value < 0 ? -1 : g->values[value].producer;
    if (from < 0 || !f->query->needed[from] || g->nodes[from].out[0] != value)
        return -1;
    for (int k = f->query->uses[value].first; k < norm; k++)
        if (f->query->needed[k] && (g->nodes[k].op->flags & EW_OP_BATCH_NORM) &&
            g->nodes[k].in[0] == value)
            return -1;
    return from;
}

ew_err ew_fuse_norm_stats(struct ew_fuse_search *f)
{
    const struct ew_graph *g = f->query->g;
    for (int k = 0; k < g->n_nodes; k++) {
        struct ew_group_step *s;
        struct ew_kernel kernel;
        if (!f->query->needed[k] || !(g->nodes[k].op->flags & EW_OP_BATCH_NORM))
            continue;
        const int layer = layer_of(f, k);
        EW_TRY(ew_fuse_kernel(f, k, EW_PHASE_FORWARD, &kernel));
        if (layer < 0 || !(kernel.roles & EW_ROLE_STATS_READY))
            continue;
        EW_TRY(ew_group_add(f->list, "batch norm's statistics from the layer before it", 2, &s));
        s[0] = (struct ew_group_step){.node = layer,
                                      .phase = EW_PHASE_FORWARD,
                                      .role = EW_ROLE_OUTPUT_NORM_STATS,
                                      .calls = {{EW_ROLE_OUTPUT_NORM_STATS, k, EW_PHASE_FORWARD}},
                                      .n_calls = 1};
        s[1] = (struct ew_group_step){
            .node = k, .phase = EW_PHASE_FORWARD, .role = EW_ROLE_STATS_READY};
    }
    return EW_OK;
}
