/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and transposed convolution: attributes, and common geometry. */
#ifndef EW_OP_CONV_H
#define EW_OP_CONV_H

#include "op/epilogue.h"
#include "op/window.h"

/* in: x [N, d..., C], w [O, k..., C / groups], optional b [O], optional add [N, d..., O] (fused).
 */
struct ew_conv_attr {
    struct ew_window_attr win; /* kernel may be empty */
    int64_t groups;            /* default 1 */
    struct ew_epilogue_attr end;
    bool turned;  /* conv_pool: the output is [N, O, d...] */
    int64_t pool; /* conv_pool: pooling windows of 3x3 instead of 2x2, stride 2 */
};

/* in: x [N, d..., C], w [C, k..., O / groups], optional b [O]. */
struct ew_conv_transpose_attr {
    struct ew_window_attr win; /* pad and auto_pad crop the output */
    int64_t groups;
    struct ew_ints output_padding; /* added at the end of each dimension; empty: 0 */
    struct ew_ints output_shape;   /* spatial; replaces pad; empty: not given */
};

/* A convolution from `w.in` with w.channels to `w.out` with `filters` channels.  For the transposed
 * one these describe its adjoint: w.in and w.channels are its output. */
struct ew_conv_sizes {
    struct ew_window w;
    int64_t groups, filters;
};

/* Fail if shapes, types or attributes do not fit. */
ew_err ew_conv_resolve(const struct ew_call *c, struct ew_conv_sizes *out);
ew_err ew_conv_transpose_resolve(const struct ew_call *c, struct ew_conv_sizes *out);
/* The geometry of filters w [O, k..., C / groups] over x [N, d..., C], whose ranks are equal. */
ew_err ew_conv_geometry(const struct ew_window_attr *win, int64_t groups, const struct ew_shape *x,
                        const struct ew_shape *w, struct ew_conv_sizes *out);
/* Checks types and ranks of x, w and b; the bias must have `filters` elements. */
ew_err ew_conv_check(const struct ew_call *c, int64_t filters);

/* Multiply-accumulates, and the bias. */
void ew_conv_cost(const struct ew_conv_sizes *s, const struct ew_call *c, struct ew_cost *out);

/* The field table row of `groups` in struct `owner`. */
/* clang-format off */
#define EW_GROUPS_FIELD(owner)                                                                     \
    {.name = "groups", .type = EW_FIELD_INT, .offset = offsetof(owner, groups), .def = "1",        \
     .min = 1, .max = INT32_MAX, .help = "channels and filters fall into so many parts"}
/* clang-format on */

/* The reference loops, for float32 and float64 (data pointers are of `dtype`):
 * y += conv(x, w); dx += the gradient for x; dw += the gradient for w. */
struct ew_conv_data {
    const void *x, *w, *y;
    void *to; /* accumulated into: y, dx or dw */
};
void ew_conv_apply(const struct ew_conv_sizes *s, enum ew_dtype dtype,
                   const struct ew_conv_data *d);
void ew_conv_grad_x(const struct ew_conv_sizes *s, enum ew_dtype dtype,
                    const struct ew_conv_data *d);
void ew_conv_grad_w(const struct ew_conv_sizes *s, enum ew_dtype dtype,
                    const struct ew_conv_data *d);

/* Sets every pixel of y [..., channels] to the bias, or 0 without one. */
void ew_bias_fill(const struct ew_tensor *b, struct ew_tensor *y);
/* db += the sum of dy over all pixels. */
void ew_bias_grad(const struct ew_tensor *dy, struct ew_tensor *db);

#endif
