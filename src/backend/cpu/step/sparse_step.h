/* SPDX-License-Identifier: Apache-2.0 */
/* Zero-skipping steps: training of dense layers and 1x1 convolutions, and gradients of other
 * convolutions.  A step measures the share of zeros first, and runs another kernel if there are too
 * few. */
#ifndef EW_BACKEND_CPU_STEP_SPARSE_STEP_H
#define EW_BACKEND_CPU_STEP_SPARSE_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* True if the scatter gradient is worth offering, for filters of more than one tap. */
bool ew_scatter_grad_worth(const struct ew_kernel_query *query, const struct ew_conv_shape *s);

/* A zero-skipping kernel with the fallback `otherwise`, without prepare function, which the
 * catalogue sets. */
struct ew_kernel ew_sparse_kernel(const struct ew_kernel_query *query,
                                  const struct ew_conv_shape *s, struct ew_kernel otherwise);

/* What that function calls; `relu` as in ew_conv_backward_prepare.  Calls the prepare function of
 * `otherwise`. */
ew_err ew_sparse_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu,
                         const struct ew_kernel *otherwise);

#endif
