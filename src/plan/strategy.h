/* SPDX-License-Identifier: Apache-2.0 */
/* How a plan saves memory.  plan/limit searches for the strategy that meets a limit. */
#ifndef EW_PLAN_STRATEGY_H
#define EW_PLAN_STRATEGY_H

#include "plan/plan.h"

struct ew_strategy {
    bool cheap;        /* recompute values of operators without multiply-accumulates */
    int segments;      /* > 1: checkpointing: keep only values that cross a segment's border */
    int micro_batches; /* number of micro-batches */
    /* Inference: layers whose kernel was chosen for smaller packed weights, and their extra cycles
     * as a share of the estimated cycles of all layers. */
    int swapped;
    double slower;
};

/* Compiles a plan with this strategy, ignoring opts.memory_limit. */
ew_err ew_plan_build(struct ew_graph *g, const struct ew_plan_opts *o, const struct ew_strategy *s,
                     struct ew_plan **out);

#endif
