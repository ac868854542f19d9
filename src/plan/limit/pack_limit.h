/* SPDX-License-Identifier: Apache-2.0 */
/* Inference within a memory limit: kernels by what they pack. */
#ifndef EW_PLAN_LIMIT_PACK_LIMIT_H
#define EW_PLAN_LIMIT_PACK_LIMIT_H

#include "plan/plan.h"

/* A plan that takes opts.memory_limit bytes at most (the block of its steps, packed weights, and
 * weights that are not packed); EW_ERR_LIMIT says how much is missing where none does. */
ew_err ew_pack_limit_compile(struct ew_graph *g, const struct ew_plan_opts *o,
                             struct ew_plan **out);

#endif
