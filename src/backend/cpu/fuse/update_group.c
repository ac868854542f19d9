/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern: a layer's wgrad and the optimiser's update of its weights.
 *
 * The wgrad kernel applies each piece of the gradient to the parameter while it is in registers or
 * cache, so the gradient, as large as the weights, is neither written nor read.  Not with gradient
 * accumulation or shared weights: the gradient must be complete before the update. */
#include "backend/cpu/fuse/fuse.h"

#define WEIGHTS 1 /* input of convolutions and dense layers */

static bool fits(const struct ew_fuse_search *f, int node)
{
    const struct ew_node *n = &f->query->g->nodes[node];
    const int w = n->n_in > WEIGHTS ? n->in[WEIGHTS] : -1;
    return f->query->needed[node] && !f->query->on_host[node] && w >= 0 &&
           f->query->g->values[w].kind == EW_VALUE_PARAM && f->query->needs_grad[w] &&
           ew_fuse_only_reader(f, w) == node;
}

ew_err ew_fuse_updates(struct ew_fuse_search *f)
{
    const struct ew_graph *g = f->query->g;
    for (int k = 0; k < g->n_nodes && f->query->micro_batches == 1; k++) {
        struct ew_group_step *s;
        if (!fits(f, k))
            continue;
        const int w = g->nodes[k].in[WEIGHTS];
        EW_TRY(ew_group_add(f->list, "optimiser's step", 1, &s));
        *s = (struct ew_group_step){.node = k,
                                    .phase = EW_PHASE_BACKWARD,
                                    .role = EW_ROLE_UPDATE,
                                    .calls = {{EW_ROLE_UPDATE, w, EW_PHASE_UPDATE}},
                                    .n_calls = 1};
        f->list->groups[f->list->n - 1].gradient = w;
    }
    return EW_OK;
}
