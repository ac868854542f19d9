/* SPDX-License-Identifier: Apache-2.0 */
/* Training of convolutions of few channels by Winograd F(5x5, 5x5).  Inputs are x, filters,
 * bias. */
#ifndef EW_BACKEND_CPU_STEP_WINOGRAD_5X5_STEP_H
#define EW_BACKEND_CPU_STEP_WINOGRAD_5X5_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* Kernels without prepare functions, which the caller sets. */
struct ew_kernel ew_winograd_5x5_forward_kernel(const struct ew_backend *be,
                                                const struct ew_conv_shape *s);
struct ew_kernel ew_winograd_5x5_backward_kernel(const struct ew_backend *be,
                                                 const struct ew_conv_shape *s);

/* What the prepare functions call; `relu` as in ew_conv_backward_prepare. */
void ew_winograd_5x5_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);
/* The same for conv_pool with channels-first output; backward needs dw at least. */
void ew_winograd_5x5_prepare_pool(const struct ew_call *c, const struct ew_conv_shape *s,
                                  bool relu);

#endif
