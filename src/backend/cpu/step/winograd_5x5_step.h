/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of convolutions of few channels by F(5x5, 5x5), in training.  Inputs are x, filters and
 * bias in this order. */
#ifndef EW_BACKEND_CPU_STEP_WINOGRAD_5X5_STEP_H
#define EW_BACKEND_CPU_STEP_WINOGRAD_5X5_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* Kernels without their prepare function, which is the row's. */
struct ew_kernel ew_winograd_5x5_forward_kernel(const struct ew_backend *be,
                                                const struct ew_conv_shape *s);
struct ew_kernel ew_winograd_5x5_backward_kernel(const struct ew_backend *be,
                                                 const struct ew_conv_shape *s);

/* What those kernels' prepare functions call; `relu` as with ew_conv_backward_prepare. */
void ew_winograd_5x5_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);
/* The same for conv_pool with channels first in the output; backward makes the filter's gradient at
 * least. */
void ew_winograd_5x5_prepare_pool(const struct ew_call *c, const struct ew_conv_shape *s,
                                  bool relu);

#endif
