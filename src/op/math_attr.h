/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of element-wise, matrix, reduction and loss operators, for code that builds graphs. */
#ifndef EW_OP_MATH_ATTR_H
#define EW_OP_MATH_ATTR_H

#include "base/field.h"

/* gemm */
struct ew_gemm_attr {
    double alpha, beta;    /* alpha A B + beta C */
    bool trans_a, trans_b; /* A is stored as [k, m], B as [n, k] */
};

/* softmax, log_softmax, hardmax */
struct ew_softmax_attr {
    int64_t axis;
    bool flatten; /* over all axes from `axis` on (ONNX before opset 13) */
};

struct ew_call;

/* distillation */
struct ew_distillation_attr {
    double share, temperature; /* share of the teacher in the loss; softmax temperature */
};

/* dropout */
struct ew_dropout_attr {
    double ratio; /* probability of dropping; the input of that name takes precedence */
};

/* The ratio of this call: 0 outside of training. */
double ew_dropout_ratio(const struct ew_call *c);

/* softmax_cross_entropy, nll_loss */
enum ew_loss_reduction { EW_LOSS_MEAN, EW_LOSS_SUM, EW_LOSS_NONE };
#define EW_LOSS_NO_IGNORE INT64_MIN
struct ew_loss_attr {
    int reduction;        /* enum ew_loss_reduction */
    int64_t ignore_index; /* ignored label; EW_LOSS_NO_IGNORE: none */
    double smoothing;     /* label smoothing, softmax_cross_entropy only */
    int64_t axis;         /* of the classes */
};

/* hard_sigmoid: clip(alpha x + beta, 0, 1); elu, selu, celu, leaky_relu, thresholded_relu: alpha */
struct ew_scale_attr {
    double alpha, beta;
};
#define EW_SCALE_FIELD(field, member, value, text)                                                 \
    {                                                                                              \
        .name = field, .type = EW_FIELD_FLOAT, .offset = offsetof(struct ew_scale_attr, member),   \
        .def = value, .help = text                                                                 \
    }

/* gelu */
enum ew_gelu_form { EW_GELU_EXACT, EW_GELU_TANH };
struct ew_gelu_attr {
    int approximate; /* enum ew_gelu_form */
};

/* The reductions, argmax, argmin */
struct ew_reduce_attr {
    bool keepdims;
    bool noop_with_empty_axes; /* without axes reduce nothing instead of everything */
};
struct ew_arg_attr {
    int64_t axis;
    bool keepdims;
    bool select_last_index; /* of equal elements */
};

#endif
