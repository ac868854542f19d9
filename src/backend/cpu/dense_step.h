/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps of dense layers with few rows (a batch) beside many weights. */
#ifndef EW_BACKEND_CPU_DENSE_STEP_H
#define EW_BACKEND_CPU_DENSE_STEP_H

#include "backend/backend.h"
#include "backend/cpu/kernel.h"

/* True where weights outweigh the rows; `s` is the layer as a convolution of one tap. */
bool ew_dense_pays(const struct ew_conv_shape *s);

/* Whole kernels. */
struct ew_kernel ew_dense_forward_kernel(const struct ew_backend *be,
                                         const struct ew_conv_shape *s);
struct ew_kernel ew_dense_backward_kernel(const struct ew_backend *be,
                                          const struct ew_conv_shape *s);

#endif
