/* SPDX-License-Identifier: Apache-2.0 */
/* Common loops of the element-wise operators, whose files contain only the formulas. */
#ifndef EW_OP_POINTWISE_H
#define EW_OP_POINTWISE_H

#include <math.h>

#include "op/types.h"

/* Elements converted at a time; a few of them stay in the first-level cache. */
#define EW_CHUNK 256

/* ---- One input ------------------------------------------------------------------------------- */

/* out[0] is like in[0], whose type is one of the named set. */
ew_err ew_unary_infer_float(const struct ew_call *c);
ew_err ew_unary_infer_signed(const struct ew_call *c);
ew_err ew_unary_infer_number(const struct ew_call *c);
ew_err ew_unary_infer_int(const struct ew_call *c);
ew_err ew_unary_infer_bool(const struct ew_call *c);
/* The same for predicates of floating types, with bool output. */
ew_err ew_unary_infer_test(const struct ew_call *c);

/* y = f(x), computed in double whatever the type. */
ew_err ew_unary_forward(const struct ew_call *c, double (*f)(double x, const void *attr));
/* dx += dy * df(x, y); df may use x only if the operator saves in[0], y only if it saves out[0]. */
ew_err ew_unary_backward(const struct ew_call *c,
                         double (*df)(double x, double y, const void *attr));
/* The same for formulas with struct ew_scale_attr that recover the sign of x from y, which requires
 * a monotone function: fails on a negative alpha or beta (gamma). */
ew_err ew_unary_backward_rising(const struct ew_call *c,
                                double (*df)(double x, double y, const void *attr));
/* For step functions (floor, sign): the gradient is 0. */
ew_err ew_backward_none(const struct ew_call *c);
/* y = f(x) on integers, exact. */
ew_err ew_unary_forward_int(const struct ew_call *c, int64_t (*f)(int64_t x, const void *attr));

/* forward and backward of an operator from its formula. */
#define EW_UNARY_FORWARD(f)                                                                        \
    static ew_err forward(const struct ew_call *c)                                                 \
    {                                                                                              \
        return ew_unary_forward(c, f);                                                             \
    }
#define EW_UNARY_BACKWARD(df)                                                                      \
    static ew_err backward(const struct ew_call *c)                                                \
    {                                                                                              \
        return ew_unary_backward(c, df);                                                           \
    }

#define EW_UNARY_BACKWARD_RISING(df)                                                               \
    static ew_err backward(const struct ew_call *c)                                                \
    {                                                                                              \
        return ew_unary_backward_rising(c, df);                                                    \
    }

/* Cases of a formula of one input with these values: EW_FILL_AWAY where it has a kink at 0. */
/* clang-format off */
#define EW_UNARY_CASES(fill)                                                                       \
    {.name = "plain", .in = {{"2x3x5", EW_F32, fill}}, .n_in = 1, .out_shape = "2x3x5"},           \
    {.name = "long", .in = {{"300", EW_F32, fill}}, .n_in = 1, .out_shape = "300"},                \
    {.name = "half", .in = {{"7", EW_F16, fill}}, .n_in = 1, .out_shape = "7"}
#define EW_BENT_CASE(title, text)                                                                  \
    {.name = title, .attrs = text, .in = {{"9", EW_F32, EW_FILL_AWAY}}, .n_in = 1, .out_shape = "9"}
/* clang-format on */
/* Common fields of their descriptors, and of those with struct ew_scale_attr. */
#define EW_UNARY_OP(...)                                                                           \
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE, .min_in = 1, .max_in = 1,                          \
    .infer = ew_unary_infer_float, .forward = forward, .backward = backward, .onnx = {__VA_ARGS__}
#define EW_SCALED_OP(...)                                                                          \
    .saves = EW_SAVE_OUT, .attr_size = sizeof(struct ew_scale_attr), EW_UNARY_OP(__VA_ARGS__)

/* Cases and descriptor of ceil, floor and round. */
#define EW_ROUNDING_CASES 2
extern const struct ew_op_case ew_rounding_cases[EW_ROUNDING_CASES];
#define EW_ROUNDING_OP(...)                                                                        \
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE, .min_in = 1, .max_in = 1,                          \
    .infer = ew_unary_infer_float, .backward = ew_backward_none, .onnx = {__VA_ARGS__},            \
    EW_OP_CASES(ew_rounding_cases)

/* ---- Broadcasting ---------------------------------------------------------------------------- */

/* Elements [at, at + n) of t broadcast to the shape `out`. */
void ew_broadcast_load(const struct ew_tensor *t, const struct ew_shape *out, int64_t at, int64_t n,
                       double *v);
void ew_broadcast_load_int(const struct ew_tensor *t, const struct ew_shape *out, int64_t at,
                           int64_t n, int64_t *v);
/* The adjoint: adds v[i] to the element of t that broadcasts to element at + i of `out`. */
void ew_broadcast_accumulate(struct ew_tensor *t, const struct ew_shape *out, int64_t at, int64_t n,
                             const double *v);

/* Shapes of one or more inputs of one type by broadcasting; out has in[0]'s type (or `bool` for
 * comparisons). */
ew_err ew_broadcast_infer_number(const struct ew_call *c); /* no bool */
ew_err ew_broadcast_infer_float(const struct ew_call *c);
ew_err ew_broadcast_infer_int(const struct ew_call *c);
ew_err ew_broadcast_infer_logic(const struct ew_call *c); /* bool only */
ew_err ew_broadcast_infer_bool(const struct ew_call *c);  /* to bool, from anything */
ew_err ew_broadcast_infer_order(const struct ew_call *c); /* to bool, from numbers */

/* A binary formula.  uint64 uses `fi` on the same bits, unless there is `fu`. */
struct ew_binary {
    double (*f)(double a, double b);        /* floating types; NULL: use fi */
    int64_t (*fi)(int64_t a, int64_t b);    /* integers, exact; NULL: use f */
    uint64_t (*fu)(uint64_t a, uint64_t b); /* uint64 only */
};

/* y = f(a, b) with broadcasting. */
ew_err ew_binary_forward(const struct ew_call *c, const struct ew_binary *fn);
/* da += dy * *ga, db += dy * *gb where df sets the partial derivatives; sums over broadcast axes.
 */
ew_err ew_binary_backward(const struct ew_call *c,
                          void (*df)(double a, double b, double *ga, double *gb));

/* Common fields of add, sub, mul and div. */
#define EW_ARITHMETIC_OP(...)                                                                      \
    .min_in = 2, .max_in = 2, .param_in = 1 << 1, .infer = ew_broadcast_infer_number,              \
    .forward = forward, .backward = backward,                                                      \
    .onnx = {.since = 7, .export = ew_onnx_export_arithmetic, __VA_ARGS__}

/* A fold over any number of inputs, times `scale`. */
ew_err ew_variadic_forward(const struct ew_call *c, const struct ew_binary *fn, double scale);
/* Each input gets dy times `scale`. */
ew_err ew_variadic_backward_sum(const struct ew_call *c, double scale);
/* For max and min: inputs equal to the output share dy. */
ew_err ew_variadic_backward_extreme(const struct ew_call *c);

/* Their cases and descriptor. */
#define EW_EXTREME_CASES 5
extern const struct ew_op_case ew_extreme_cases[EW_EXTREME_CASES];
#define EW_EXTREME_OP(onnx_type)                                                                   \
    .flags = EW_OP_ELEMENTWISE, .saves = EW_SAVE_INS | EW_SAVE_OUT, .min_in = 1, .max_in = -1,     \
    .infer = ew_broadcast_infer_number, .backward = ew_variadic_backward_extreme,                  \
    .onnx = {.type = onnx_type}, EW_OP_CASES(ew_extreme_cases)

#define EW_BINARY_FORWARD(...)                                                                     \
    static ew_err forward(const struct ew_call *c)                                                 \
    {                                                                                              \
        static const struct ew_binary fn = {__VA_ARGS__};                                          \
        return ew_binary_forward(c, &fn);                                                          \
    }
#define EW_BINARY_BACKWARD(df)                                                                     \
    static ew_err backward(const struct ew_call *c)                                                \
    {                                                                                              \
        return ew_binary_backward(c, df);                                                          \
    }

/* Comparisons (`sign`: <, >=, ...): forward, cases, descriptor. */
#define EW_ORDER_FORWARD(sign)                                                                     \
    static double f(double a, double b)                                                            \
    {                                                                                              \
        return a sign b;                                                                           \
    }                                                                                              \
    static int64_t fi(int64_t a, int64_t b)                                                        \
    {                                                                                              \
        return a sign b;                                                                           \
    }                                                                                              \
    static uint64_t fu(uint64_t a, uint64_t b)                                                     \
    {                                                                                              \
        return a sign b;                                                                           \
    }                                                                                              \
    EW_BINARY_FORWARD(f, fi, fu)

#define EW_ORDER_CASES 4
extern const struct ew_op_case ew_order_cases[EW_ORDER_CASES];
#define EW_ORDER_OP(...)                                                                           \
    .flags = EW_OP_ELEMENTWISE, .min_in = 2, .max_in = 2, .infer = ew_broadcast_infer_order,       \
    .forward = forward, .onnx = {__VA_ARGS__}, EW_OP_CASES(ew_order_cases)

#endif
