/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps of dense layers and 1x1 convolutions, and gradients of other convolutions, that
 * look at their data first: where it has many zeros these are skipped, and otherwise another kernel
 * runs.
 */
#ifndef EW_BACKEND_CPU_STEP_SPARSE_STEP_H
#define EW_BACKEND_CPU_STEP_SPARSE_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* True where a backward step is worth offering for filters of more than one tap. */
bool ew_scatter_grad_worth(const struct ew_kernel_query *query, const struct ew_conv_shape *s);

/* `otherwise` with what skips zeros before it, forward or backward, without its prepare function,
 * which is the row's. */
struct ew_kernel ew_sparse_kernel(const struct ew_kernel_query *query,
                                  const struct ew_conv_shape *s, struct ew_kernel otherwise);

/* What that function calls; `relu` as with ew_conv_backward_prepare.  `otherwise` has its own
 * prepare function here. */
ew_err ew_sparse_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu,
                         const struct ew_kernel *otherwise);

#endif
