/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of everything that is a convolution to the kernels: convolutions and dense layers, forward
 * and backward.  Inputs are x, filters, bias, addition in this order; offers say what shape
 * it is. */
#ifndef EW_BACKEND_CPU_STEP_CONV_STEP_H
#define EW_BACKEND_CPU_STEP_CONV_STEP_H

#include "backend/backend.h"
#include "backend/cpu/step/conv_pass.h"

/* A kernel without its prepare function, which the catalogue has. */
struct ew_kernel ew_conv_forward_kernel(const struct ew_call *c, enum ew_conv_method m,
                                        const struct ew_conv_shape *s);
struct ew_kernel ew_conv_backward_kernel(const struct ew_backend *be,
                                         const struct ew_conv_shape *s);

/* What those kernels' prepare functions call; `end` NULL: no epilogue.  With `relu` the output has
 * gone through one, and backward clears what it did not let through from dout[0] itself. */
void ew_conv_forward_prepare(const struct ew_call *c, enum ew_conv_method m,
                             const struct ew_conv_shape *s, const struct ew_epilogue_attr *end);
void ew_conv_backward_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

/* True where the epilogue is what training does to the sums: a bias, and ReLU at most. */
bool ew_conv_trains(const struct ew_call *c);

/* True where its gradients go by groups rather than by GEMM. */
bool ew_conv_trains_grouped(const struct ew_conv_shape *s);
/* The best method for the gradient for the data, and the shape that it works on. */
enum ew_conv_method ew_conv_dgrad_method(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                         struct ew_conv_shape *shape);
/* "wgrad: " and the best method for the gradient for the filter. */
const char *ew_conv_wgrad_text(const struct ew_kernels *k, const struct ew_conv_shape *s);
/* Its cycles on one core, estimated. */
double ew_conv_wgrad_cycles(const struct ew_kernels *k, const struct ew_conv_shape *s);

#endif
