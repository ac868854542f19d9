/* SPDX-License-Identifier: Apache-2.0 */
/* Training of dense layers, and of convolutions on small feature maps.  Weights change at each
 * step, and packing them would cost as much as the products of a small batch, so they are read
 * unpacked.  Inputs are x, weights, bias. */
#ifndef EW_BACKEND_CPU_STEP_TAP_PAIRS_STEP_H
#define EW_BACKEND_CPU_STEP_TAP_PAIRS_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* Kernels without prepare functions, which the catalogue sets. */
struct ew_kernel ew_tap_pairs_forward_kernel(const struct ew_backend *be,
                                             const struct ew_conv_shape *s);
struct ew_kernel ew_tap_pairs_backward_kernel(const struct ew_backend *be,
                                              const struct ew_conv_shape *s);

/* The arguments of kernels with fused dgrad + wgrad for a backward call.  `update`: the result of
 * ew_cpu_update_of, or NULL. */
struct ew_unpacked_grads ew_unpacked_grads_of(const struct ew_call *c,
                                              const struct ew_conv_shape *s,
                                              const struct ew_update *update);

/* What the prepare functions call; `relu` as in ew_conv_backward_prepare. */
void ew_tap_pairs_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

#endif
