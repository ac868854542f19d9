/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern: a layer and the batch norm after it, backward.
 *
 * The layer computes the gradient of its output from that of the norm's output, block by block as
 * it reads, so the norm's own backward only computes the two sums of each channel.  The gradient
 * between them is not stored. */
#include "backend/cpu/fuse/fuse.h"

ew_err ew_fuse_output_norm_kernel(struct ew_fuse_search *f, int value, int norm,
                                  struct ew_kernel *out)
{
    const int from = f->query->g->values[value].producer, in = f->query->g->nodes[from].in[0];
    struct ew_call layer;
    EW_TRY(ew_fuse_call(f, from, &layer));
    if (in >= 0 && f->input_norm[in] >= 0)
        EW_TRY(ew_fuse_add(f, &layer, EW_ROLE_INPUT_NORM, f->input_norm[in]));
    EW_TRY(ew_fuse_add(f, &layer, EW_ROLE_OUTPUT_NORM_GRAD, norm));
    *out = ew_fuse_preferred(f, &layer, EW_PHASE_BACKWARD);
    return EW_OK;
}

static ew_err fits(struct ew_fuse_search *f, int norm, bool *out)
{
    const struct ew_graph *g = f->query->g;
    const int value = g->nodes[norm].in[0], from = value < 0 ? -1 : g->values[value].producer;
    struct ew_kernel kernel;
    *out = false;
    if (from < 0 || (g->nodes[from].op->flags & EW_OP_BATCH_NORM) || f->query->micro_batches > 1)
        return EW_OK;
    EW_TRY(ew_fuse_kernel(f, norm, EW_PHASE_FORWARD, &kernel));
    if (!(kernel.roles & EW_ROLE_SUMS_ONLY))
        return EW_OK;
    EW_TRY(ew_fuse_output_norm_kernel(f, value, norm, &kernel));
    *out = kernel.run != NULL;
    return EW_OK;
}

ew_err ew_fuse_output_norms(struct ew_fuse_search *f)
{
    const struct ew_graph *g = f->query->g;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        struct ew_group_step *s;
        bool all;
        if (!f->query->needed[k] || !(n->op->flags & EW_OP_BATCH_NORM) ||
            !ew_fuse_trains_norm(f, n) || ew_fuse_only_reader(f, n->in[0]) != k)
            continue;
        EW_TRY(fits(f, k, &all));
        if (!all)
            continue;
        EW_TRY(ew_group_add(f->list, "batch norm's gradient into the layer before it", 2, &s));
        s[0] = (struct ew_group_step){
            .node = k, .phase = EW_PHASE_BACKWARD, .role = EW_ROLE_SUMS_ONLY};
        s[1] = (struct ew_group_step){.node = g->values[n->in[0]].producer,
                                      .phase = EW_PHASE_BACKWARD,
                                      .role = EW_ROLE_OUTPUT_NORM_GRAD,
                                      .calls = {{EW_ROLE_OUTPUT_NORM_GRAD, k, EW_PHASE_BACKWARD}},
                                      .n_calls = 1};
        f->list->groups[f->list->n - 1].decided = true;
        f->list->groups[f->list->n - 1].gradient = n->in[0];
        f->output_norm[n->in[0]] = k;
    }
    return EW_OK;
}
