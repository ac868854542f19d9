/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps of dense layers, and of convolutions on small feature maps.  Weights change at
 * each step, so packing them costs as much as a small batch's products: they are read where they
 * lie. Inputs are x, weights, bias in this order; the rows say what shape it is. */
#ifndef EW_BACKEND_CPU_STEP_TAP_PAIRS_STEP_H
#define EW_BACKEND_CPU_STEP_TAP_PAIRS_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* Kernels without their prepare function, which is the catalogue's. */
struct ew_kernel ew_tap_pairs_forward_kernel(const struct ew_backend *be,
                                             const struct ew_conv_shape *s);
struct ew_kernel ew_tap_pairs_backward_kernel(const struct ew_backend *be,
                                              const struct ew_conv_shape *s);

/* What a backward call asks of kernels that make both gradients in one pass.  `update`: what
 * ew_cpu_update_of makes of it, or NULL. */
struct ew_unpacked_grads ew_unpacked_grads_of(const struct ew_call *c,
                                              const struct ew_conv_shape *s,
                                              const struct ew_update *update);

/* What those kernels' prepare functions call; `relu` as with ew_conv_backward_prepare. */
void ew_tap_pairs_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

#endif
