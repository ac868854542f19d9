/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronised batch norm: two steps, between which a run in pieces stops.  The first computes the
 * statistics (backward: the sums), the second uses them.  In fused groups a half that is done in
 * another step is a no-op. */
#include "plan/plan_impl.h"

bool ew_plan_splits(const struct ew_plan *p, int node)
{
    return p->opts.stop_at_norms && (p->g->nodes[node].op->flags & EW_OP_BATCH_NORM);
}

ew_err ew_plan_split(struct ew_plan *p, struct ew_step **second)
{
    EW_TRY(ew_plan_step_new(p, second));
    struct ew_step *first = &p->steps[p->n_steps - 2];
    EW_CHECK(first->kernel.reduce && first->kernel.apply, EW_ERR_UNSUPPORTED,
             "node %s: its statistics cannot be synchronised over ranks: it is partly frozen, "
             "or this device has no split kernel for it",
             first->call.name);
    **second = *first;
    first->stop = first->phase == EW_PHASE_FORWARD ? EW_STOP_STATISTICS : EW_STOP_SUMS;
    first->kernel.run = first->kernel.reduce;
    (*second)->kernel.run = first->kernel.apply;
    (*second)->scratch = -1;
    return EW_OK;
}
