/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern: a batch norm in training, and the layer that is its only reader.
 *
 * The layer applies the norm line by line as it reads, so the norm's own step only computes the
 * statistics.  Forward this saves writing and reading the normalised tensor, backward keeping it.
 * A layer with fused dgrad + wgrad also computes the sums of the norm's backward. */
#include "backend/cpu/fuse/fuse.h"

static ew_err fits(struct ew_fuse_search *f, int norm, int reader, bool *out)
{
    struct ew_call layer;
    struct ew_kernel kernel;
    EW_TRY(ew_fuse_kernel(f, norm, EW_PHASE_FORWARD, &kernel));
    EW_TRY(ew_fuse_call(f, reader, &layer));
    EW_TRY(ew_fuse_add(f, &layer, EW_ROLE_INPUT_NORM, norm));
    *out = (kernel.roles & EW_ROLE_STATS_ONLY) &&
           ew_fuse_preferred(f, &layer, EW_PHASE_FORWARD).run &&
           ew_fuse_preferred(f, &layer, EW_PHASE_BACKWARD).run;
    return EW_OK;
}

static ew_err add_group(struct ew_fuse_search *f, int norm, int reader)
{
    const int value = f->query->g->nodes[norm].out[0];
    struct ew_group_step *s;
    EW_TRY(ew_group_add(f->list, "batch norm into its reader", 3, &s));
    s[0] =
        (struct ew_group_step){.node = norm, .phase = EW_PHASE_FORWARD, .role = EW_ROLE_STATS_ONLY};
    for (int i = 1; i < 3; i++)
        s[i] = (struct ew_group_step){.node = reader,
                                      .phase = i == 1 ? EW_PHASE_FORWARD : EW_PHASE_BACKWARD,
                                      .role = EW_ROLE_INPUT_NORM,
                                      .calls = {{EW_ROLE_INPUT_NORM, norm, EW_PHASE_FORWARD}},
                                      .n_calls = 1};
    f->list->groups[f->list->n - 1].decided = true;
    f->list->groups[f->list->n - 1].value = value;
    f->input_norm[value] = norm;
    if (!ew_fuse_trains_norm(f, &f->query->g->nodes[norm]))
        return EW_OK;
    EW_TRY(ew_group_add(f->list, "sums of a batch norm's backward", 2, &s));
    s[0] = (struct ew_group_step){
        .node = reader, .phase = EW_PHASE_BACKWARD, .role = EW_ROLE_INPUT_NORM_SUMS};
    s[1] = (struct ew_group_step){
        .node = norm, .phase = EW_PHASE_BACKWARD, .role = EW_ROLE_SUMS_READY};
    return EW_OK;
}

ew_err ew_fuse_input_norms(struct ew_fuse_search *f)
{
    const struct ew_graph *g = f->query->g;
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (!f->query->needed[k] || !(n->op->flags & EW_OP_BATCH_NORM) || n->in[0] < 0 ||
            ew_fuse_is_known(f, n->in[0]))
            continue;
        const int reader = ew_fuse_only_reader(f, n->out[0]);
        bool all = false;
        if (reader >= 0 && g->nodes[reader].in[0] == n->out[0])
            EW_TRY(fits(f, k, reader, &all));
        if (all)
            EW_TRY(add_group(f, k, reader));
    }
    return EW_OK;
}
