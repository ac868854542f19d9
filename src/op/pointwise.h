/* SPDX-License-Identifier: Apache-2.0 */
/* Loops shared by the element-wise operators: their files hold only the formulas. */
#ifndef EW_OP_POINTWISE_H
#define EW_OP_POINTWISE_H

#include "graph/op.h"

/* y = f(x), computed in double whatever the type. */
ew_err ew_unary_forward(const struct ew_call *c, double (*f)(double x, const void *attr));
/* dx += dy * df(x, y); df may use x only if the operator saves in[0], y only if it saves out[0]. */
ew_err ew_unary_backward(const struct ew_call *c,
                         double (*df)(double x, double y, const void *attr));
/* y = f(x) on integers, exact. */
ew_err ew_unary_forward_int(const struct ew_call *c, int64_t (*f)(int64_t x, const void *attr));

/* Shapes of two or more inputs by broadcasting; out has in[0]'s type (or `bool` for comparisons).
 */
ew_err ew_broadcast_infer(const struct ew_call *c);
ew_err ew_broadcast_infer_bool(const struct ew_call *c);

/* y = f(a, b) with broadcasting: `f` for floating types, `fi` (exact) for the others; where one is
 * NULL the other serves all types. */
ew_err ew_binary_forward(const struct ew_call *c, double (*f)(double a, double b),
                         int64_t (*fi)(int64_t a, int64_t b));
/* da += dy * *ga, db += dy * *gb where df sets the partial derivatives; sums over broadcast axes.
 */
ew_err ew_binary_backward(const struct ew_call *c,
                          void (*df)(double a, double b, double *ga, double *gb));

#endif
