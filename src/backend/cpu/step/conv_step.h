/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of convolutions and dense layers, forward and backward.  Inputs are x, filters, bias,
 * residual. */
#ifndef EW_BACKEND_CPU_STEP_CONV_STEP_H
#define EW_BACKEND_CPU_STEP_CONV_STEP_H

#include "backend/backend.h"
#include "backend/cpu/step/conv_pass.h"

/* Kernels without prepare functions, which the catalogue sets. */
struct ew_kernel ew_conv_forward_kernel(const struct ew_call *c, enum ew_conv_method m,
                                        const struct ew_conv_shape *s);
struct ew_kernel ew_conv_backward_kernel(const struct ew_backend *be,
                                         const struct ew_conv_shape *s);

/* What the prepare functions call; `end` NULL: no epilogue.  `relu`: the forward pass ends in a
 * ReLU, whose mask backward applies to dout[0] in place. */
void ew_conv_forward_prepare(const struct ew_call *c, enum ew_conv_method m,
                             const struct ew_conv_shape *s, const struct ew_epilogue_attr *end);
void ew_conv_backward_prepare(const struct ew_call *c, const struct ew_conv_shape *s, bool relu);

/* True if the epilogue can be trained: bias and ReLU at most. */
bool ew_conv_trains(const struct ew_call *c);

/* True if its gradients use the grouped kernels rather than GEMM. */
bool ew_conv_trains_grouped(const struct ew_conv_shape *s);
/* The best method for dgrad, and the shape to give it. */
enum ew_conv_method ew_conv_dgrad_method(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                         struct ew_conv_shape *shape);
/* "wgrad: " and the best method for it. */
const char *ew_conv_wgrad_text(const struct ew_kernels *k, const struct ew_conv_shape *s);
/* Its cycles on one core, estimated. */
double ew_conv_wgrad_cycles(const struct ew_kernels *k, const struct ew_conv_shape *s);

#endif
