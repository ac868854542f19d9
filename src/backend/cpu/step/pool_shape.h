/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of all pooling operators in the kernels' form. */
#ifndef EW_BACKEND_CPU_STEP_POOL_SHAPE_H
#define EW_BACKEND_CPU_STEP_POOL_SHAPE_H

#include "backend/cpu/kernel.h"
#include "graph/op.h"

/* Sliding, global, and adaptive pools with windows of equal size, of floats or integers.  False:
 * the kernels do not support it. */
bool ew_pool_shape_of(const struct ew_call *c, struct ew_conv_shape *out, bool *max,
                      bool *count_pads);

#endif
