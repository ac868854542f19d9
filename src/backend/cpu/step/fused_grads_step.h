/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of 1x1 and depthwise convolutions, fused with the batch norms around them. */
#ifndef EW_BACKEND_CPU_STEP_FUSED_GRADS_STEP_H
#define EW_BACKEND_CPU_STEP_FUSED_GRADS_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* True if the kernel supports the call and is faster than separate passes. */
bool ew_fused_grads_pays(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

/* A kernel without prepare function, which the catalogue sets. */
struct ew_kernel ew_fused_grads_kernel(const struct ew_backend *be, const struct ew_conv_shape *s);
void ew_fused_grads_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

#endif
