/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the mildest strategy that meets a memory limit. */
#ifndef EW_PLAN_LIMIT_H
#define EW_PLAN_LIMIT_H

#include "plan/plan_impl.h"

/* One plan with a given strategy (plan.c). */
ew_err ew_plan_build(struct ew_graph *g, const struct ew_plan_opts *o, const struct ew_strategy *s,
                     struct ew_plan **out);

/* Tries strategies by dry plans; EW_ERR_LIMIT says how much is missing where none fits. */
ew_err ew_limit_choose(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_strategy *out);

#endif
