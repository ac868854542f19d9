/* SPDX-License-Identifier: Apache-2.0 */
/* Training of a first convolution with a max pool of 3x3 and stride 2 and an optional ReLU: strip
 * by strip of each image, so that the convolution's output stays in a core's L2.  Uses the kernels
 * of the two operators. */
#ifndef EW_BACKEND_CPU_STEP_CONV_POOL_TILED_H
#define EW_BACKEND_CPU_STEP_CONV_POOL_TILED_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

bool ew_conv_pool_tiled_fits(const struct ew_conv_shape *s);

/* Kernels without prepare function, which the caller sets. */
struct ew_kernel ew_conv_pool_tiled_forward_kernel(const struct ew_backend *be,
                                                   const struct ew_conv_shape *s);
struct ew_kernel ew_conv_pool_tiled_backward_kernel(const struct ew_backend *be,
                                                    const struct ew_conv_shape *s);
void ew_conv_pool_tiled_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

#endif
