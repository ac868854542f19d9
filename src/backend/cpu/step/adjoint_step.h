/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of what is the data gradient of a convolution to the kernels: transposed convolutions, and
 * products A B, where B [k, n] is the filter of a dense layer from n to k channels.
 *
 *   forward   y  = dgrad(x, w)        A B
 *   backward  dx = conv(dy, w)        dY B'
 *             dw = wgrad(dy, x)       A' dY
 *
 * Inputs are x, filters, bias.  The shape is everywhere that of the convolution, whose input is
 * this operator's output. */
#ifndef EW_BACKEND_CPU_STEP_ADJOINT_STEP_H
#define EW_BACKEND_CPU_STEP_ADJOINT_STEP_H

#include "backend/cpu/step/conv_pass.h"

/* Kernels without their prepare functions, and what those call.  `gemm` is the name of the implicit
 * GEMM; the others, which pack filters in other ways, have their own. */
struct ew_kernel ew_adjoint_forward_kernel(const struct ew_call *c, const struct ew_conv_shape *s,
                                           const char *gemm);
struct ew_kernel ew_adjoint_backward_kernel(const struct ew_backend *be,
                                            const struct ew_conv_shape *s);
void ew_adjoint_forward_prepare(const struct ew_call *c, const struct ew_conv_shape *s);
void ew_adjoint_backward_prepare(const struct ew_call *c, const struct ew_conv_shape *s);

/* ---- The parts, for stacks of products ---- */

/* One pass by method m on other weights at each run: packs w, then runs over the threads. */
struct ew_adjoint_pass {
    enum ew_conv_method m;
    const struct ew_conv_shape *s;
    const float *x, *w;
    float *y;
    bool add; /* to what y holds */
};

/* Bytes of scratch with so many threads. */
size_t ew_adjoint_pass_scratch(const struct ew_kernels *k, enum ew_conv_method m,
                               const struct ew_conv_shape *s, int threads);
void ew_adjoint_pass_run(const struct ew_call *c, const struct ew_adjoint_pass *p);

/* The gradient for the filter; f->partial is taken from c->scratch. */
size_t ew_adjoint_filter_scratch(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                 int threads);
void ew_adjoint_filter_run(const struct ew_call *c, struct ew_conv_wgrad *f);

#endif
