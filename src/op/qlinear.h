/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on quantised tensors: attributes and inputs, for the lowering pass and for kernels.
 * op/quant.h has the arithmetic. */
#ifndef EW_OP_QLINEAR_H
#define EW_OP_QLINEAR_H

#include "op/int_conv.h"
#include "op/pooling.h"

/* qlinear_conv.  The first nine inputs are ONNX's; the others are set by the lowering pass only.
 * Without Y_SCALE the output is float32: (float)sum * (x_scale * w_scale).
 * With ADD the output is quantised, added to ADD and requantised with SUM_SCALE and SUM_ZERO.
 * With TABLE each byte of the result is then mapped through it. */
enum ew_qconv_in {
    EW_QCONV_X,
    EW_QCONV_X_SCALE,
    EW_QCONV_X_ZERO,
    EW_QCONV_W,
    EW_QCONV_W_SCALE,
    EW_QCONV_W_ZERO,
    EW_QCONV_Y_SCALE,
    EW_QCONV_Y_ZERO,
    EW_QCONV_BIAS,
    EW_QCONV_ADD,
    EW_QCONV_ADD_SCALE,
    EW_QCONV_ADD_ZERO,
    EW_QCONV_SUM_SCALE,
    EW_QCONV_SUM_ZERO,
    EW_QCONV_TABLE,
    EW_QCONV_INPUTS
};

struct ew_qconv_attr {
    struct ew_int_conv_attr conv; /* first: what int_conv.c reads */
    struct ew_quant_clamp clamp;  /* of the result, before TABLE */
};

ew_err ew_qconv_resolve(const struct ew_call *c, struct ew_int_conv *out);

/* qlinear_gemm: A [m, k], B [k, n] or [n, k], bias [n]; without Y_SCALE the output is float32. */
enum ew_qgemm_in {
    EW_QGEMM_A,
    EW_QGEMM_A_SCALE,
    EW_QGEMM_A_ZERO,
    EW_QGEMM_B,
    EW_QGEMM_B_SCALE,
    EW_QGEMM_B_ZERO,
    EW_QGEMM_BIAS,
    EW_QGEMM_Y_SCALE,
    EW_QGEMM_Y_ZERO,
    EW_QGEMM_INPUTS
};

struct ew_qgemm_attr {
    bool trans_b; /* B is stored as [n, k] */
    struct ew_quant_clamp clamp;
};

/* qlinear_add and qlinear_mul, with broadcasting. */
enum ew_qbinary_in {
    EW_QBINARY_A,
    EW_QBINARY_A_SCALE,
    EW_QBINARY_A_ZERO,
    EW_QBINARY_B,
    EW_QBINARY_B_SCALE,
    EW_QBINARY_B_ZERO,
    EW_QBINARY_Y_SCALE,
    EW_QBINARY_Y_ZERO,
    EW_QBINARY_INPUTS
};

struct ew_qbinary_attr {
    struct ew_quant_clamp clamp;
};

/* Infer hook of both: broadcast shape, Y_ZERO's type. */
ew_err ew_qbinary_infer(const struct ew_call *c);
/* Export hook of both: a clamp has no ONNX form. */
ew_err ew_qbinary_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);
/* Loop of both: f gets both elements minus their zero points. */
typedef int64_t ew_qbinary_fn(const struct ew_quant_binary *q, int64_t a, int64_t b);
ew_err ew_qbinary_forward(const struct ew_call *c, const struct ew_quant_binary *q,
                          ew_qbinary_fn *f);
/* Ratios and zero point of qlinear_add, and of qlinear_mul, whose only ratio is a_ratio. */
struct ew_quant_binary ew_qadd_ratios(const struct ew_call *c);
struct ew_quant_binary ew_qmul_ratios(const struct ew_call *c);

/* Attributes, ONNX names and cases of both. */
#define EW_QBINARY_CASES 5
extern const struct ew_field ew_qbinary_attrs[];
extern const char *const ew_qbinary_renames[];
extern const struct ew_op_case ew_qbinary_cases[EW_QBINARY_CASES];

/* Common fields of their descriptors. */
#define EW_QBINARY_OP(onnx_type)                                                                   \
    .flags = EW_OP_ELEMENTWISE, .min_in = EW_QBINARY_INPUTS, .max_in = EW_QBINARY_INPUTS,          \
    .attr_size = sizeof(struct ew_qbinary_attr), .attrs = ew_qbinary_attrs,                        \
    .infer = ew_qbinary_infer,                                                                     \
    .onnx = {.type = onnx_type,                                                                    \
             .domain = "com.microsoft",                                                            \
             .rename = ew_qbinary_renames,                                                         \
             .export = ew_qbinary_export},                                                         \
    EW_OP_CASES(ew_qbinary_cases)

/* qlinear_average_pool and qlinear_global_average_pool: y = round((float)sum * ratio) + zero with
 * ratio = x_scale / (elements * y_scale), where sum is over x - x_zero. */
enum ew_qpool_in {
    EW_QPOOL_X,
    EW_QPOOL_X_SCALE,
    EW_QPOOL_X_ZERO,
    EW_QPOOL_Y_SCALE,
    EW_QPOOL_Y_ZERO,
    EW_QPOOL_INPUTS
};

ew_err ew_qpool_infer(const struct ew_call *c, const struct ew_window *w);
ew_err ew_qpool_forward(const struct ew_call *c, const struct ew_window *w, bool padded);

/* lookup: y = table[x], with x's byte as unsigned index. */
enum ew_lookup_in { EW_LOOKUP_X, EW_LOOKUP_TABLE, EW_LOOKUP_INPUTS };

#endif
