/* SPDX-License-Identifier: Apache-2.0 */
/* The backward step of convolutions of few channels by F(5x5, 5x5); forward is a method of
 * conv_pass.h. */
#ifndef EW_BACKEND_CPU_PATCH_STEP_H
#define EW_BACKEND_CPU_PATCH_STEP_H

#include "backend/backend.h"
#include "backend/cpu/isa.h"

/* A kernel without its prepare function, which is the row's and calls ew_patch_prepare; `relu` as
 * with ew_conv_backward_prepare. */
struct ew_kernel ew_patch_backward_kernel(const struct ew_backend *be,
                                          const struct ew_conv_shape *s);
void ew_patch_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

#endif
