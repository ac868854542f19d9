/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of operators that are the dgrad of a convolution: transposed convolutions, and products A
 * B, where B [k, n] is the filter of a dense layer from n to k channels.
 *
 *   forward   y  = dgrad(x, w)        A B
 *   backward  dx = conv(dy, w)        dY B'
 *             dw = wgrad(dy, x)       A' dY
 *
 * Inputs are x, filters, bias.  Every ew_conv_shape here is that of the convolution, whose input is
 * this operator's output. */
#ifndef EW_BACKEND_CPU_STEP_ADJOINT_STEP_H
#define EW_BACKEND_CPU_STEP_ADJOINT_STEP_H

#include "backend/cpu/step/conv_pass.h"

/* Kernels without prepare functions, and what those must call.  `gemm` is the kernel's name for
 * implicit GEMM; other methods, which pack filters differently, have their own names. */
struct ew_kernel ew_adjoint_forward_kernel(const struct ew_call *c, const struct ew_conv_shape *s,
                                           const char *gemm);
struct ew_kernel ew_adjoint_backward_kernel(const struct ew_backend *be,
                                            const struct ew_conv_shape *s);
void ew_adjoint_forward_prepare(const struct ew_call *c, const struct ew_conv_shape *s);
void ew_adjoint_backward_prepare(const struct ew_call *c, const struct ew_conv_shape *s);

/* ---- The parts, for batched products ---- */

/* One pass by method m with weights that change: packs w at each run, then runs over the
 * threads. */
struct ew_adjoint_pass {
    enum ew_conv_method m;
    const struct ew_conv_shape *s;
    const float *x, *w;
    float *y;
    bool add; /* accumulate into y */
};

/* Bytes of scratch for that many threads. */
size_t ew_adjoint_pass_scratch(const struct ew_kernels *k, enum ew_conv_method m,
                               const struct ew_conv_shape *s, int threads);
void ew_adjoint_pass_run(const struct ew_call *c, const struct ew_adjoint_pass *p);

/* Wgrad; f->partial is taken from c->scratch. */
size_t ew_adjoint_filter_scratch(const struct ew_kernels *k, const struct ew_conv_shape *s,
                                 int threads);
void ew_adjoint_filter_run(const struct ew_call *c, struct ew_conv_wgrad *f);

#endif
