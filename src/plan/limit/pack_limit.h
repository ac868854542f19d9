/* SPDX-License-Identifier: Apache-2.0 */
/* Inference within a memory limit: kernels chosen by the size of their packed weights. */
#ifndef EW_PLAN_LIMIT_PACK_LIMIT_H
#define EW_PLAN_LIMIT_PACK_LIMIT_H

#include "plan/plan.h"

/* Compiles a plan of at most opts.memory_limit bytes: the steps' block, packed weights, and weights
 * that are read unpacked.  EW_ERR_LIMIT, with the missing bytes in the message, if none fits. */
ew_err ew_pack_limit_compile(struct ew_graph *g, const struct ew_plan_opts *o,
                             struct ew_plan **out);

#endif
