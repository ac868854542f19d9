/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of 1x1 convolutions' backward with the batch norms around them. */
#ifndef EW_BACKEND_CPU_STEP_FUSED_GRADS_STEP_H
#define EW_BACKEND_CPU_STEP_FUSED_GRADS_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* True where the kernel can do this call, and is worth it. */
bool ew_fused_grads_pays(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

/* A kernel without its prepare function, which is the row's. */
struct ew_kernel ew_fused_grads_kernel(const struct ew_backend *be, const struct ew_conv_shape *s);
void ew_fused_grads_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

#endif
