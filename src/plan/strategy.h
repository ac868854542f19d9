/* SPDX-License-Identifier: Apache-2.0 */
/* How a plan saves memory.  Which way meets a limit is for plan/limit to find. */
#ifndef EW_PLAN_STRATEGY_H
#define EW_PLAN_STRATEGY_H

#include "plan/plan.h"

struct ew_strategy {
    bool cheap;   /* values of operators without multiply-accumulates are computed again */
    int segments; /* over 1: only what crosses a segment's border is kept */
    int parts;    /* the batch is run in so many equal parts */
    /* Inference: layers whose kernel was chosen for what it packs, and what that costs as a share
     * of the estimated cycles of all. */
    int swapped;
    double slower;
};

/* A plan that saves memory in this way, whatever opts.memory_limit says. */
ew_err ew_plan_build(struct ew_graph *g, const struct ew_plan_opts *o, const struct ew_strategy *s,
                     struct ew_plan **out);

#endif
