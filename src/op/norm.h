/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation: attributes, and the common loops of instance, group and layer normalisation. */
#ifndef EW_OP_NORM_H
#define EW_OP_NORM_H

#include "op/epilogue.h"

/* in: x [N, d..., C], then scale, bias, mean and variance [C]; if `added`, a residual of x's shape,
 * which is added before the activation. */
struct ew_batch_norm_attr {
    double eps;      /* added to the variance */
    double momentum; /* share of the old running statistics that is kept, as in ONNX: 1 - PyTorch's
                      * momentum, whose default 0.1 is 0.9 here */
    bool training_mode; /* ONNX's: batch statistics, out[1] and out[2] are the running ones */
    bool added;         /* set by a fusion pass only */
    struct ew_epilogue_attr end; /* activation; with a residual relu or none */
};

/* in: x [N, d..., C], scale, bias; instance_norm has one group per channel. */
struct ew_group_norm_attr {
    double eps;
    int64_t groups;
    int64_t stash_type; /* ONNX's type of the statistics, which are computed in double here */
};

/* in: x, scale, optional bias of the shape of x's dimensions from `axis` on. */
struct ew_layer_norm_attr {
    int64_t axis;
    double eps;
    int64_t stash_type;
};

/* in: x [N, d..., C]. */
struct ew_lrn_attr {
    int64_t size; /* neighbouring channels, including the element's own */
    double alpha, beta, bias;
};

/* Partition of x into sets that are normalised independently.  Set (i, j), i < outer, j < inner, is
 * x[(i * rows + r) * inner * run + j * run + k],  r < rows, k < run
 * and uses parameter j * run + k (or j if per_set). */
struct ew_norm_sets {
    int64_t outer, rows, inner, run;
    bool per_set;
    double eps;
};

/* Common fields of the descriptors of group_norm and instance_norm. */
#define EW_GROUP_NORM_OP                                                                           \
    .flags = EW_OP_SPATIAL, .saves = EW_SAVE_IN0 | EW_SAVE_AUX, .min_in = 3, .max_in = 3,          \
    .param_in = 1 << 1 | 1 << 2, .attr_size = sizeof(struct ew_group_norm_attr), .attrs = attrs,   \
    .infer = infer, .cost = ew_norm_cost, .aux = aux, .forward = forward, .backward = backward,    \
    EW_OP_CASES(cases)

/* aux: mean, then 1 / std, of every set, in x's type. */
size_t ew_norm_aux(const struct ew_call *c, const struct ew_norm_sets *s);
/* in: x, scale, optional bias; out[1] and out[2], where asked for, get mean and 1 / std. */
ew_err ew_norm_forward(const struct ew_call *c, const struct ew_norm_sets *s);
ew_err ew_norm_backward(const struct ew_call *c, const struct ew_norm_sets *s);
/* aux, forward and backward of an operator defined by its sets. */
#define EW_NORM_HOOKS(sets)                                                                        \
    static size_t aux(const struct ew_call *c)                                                     \
    {                                                                                              \
        const struct ew_norm_sets s = sets(c);                                                     \
        return ew_norm_aux(c, &s);                                                                 \
    }                                                                                              \
    static ew_err forward(const struct ew_call *c)                                                 \
    {                                                                                              \
        const struct ew_norm_sets s = sets(c);                                                     \
        return ew_norm_forward(c, &s);                                                             \
    }                                                                                              \
    static ew_err backward(const struct ew_call *c)                                                \
    {                                                                                              \
        const struct ew_norm_sets s = sets(c);                                                     \
        return ew_norm_backward(c, &s);                                                            \
    }
/* 8 operations per element: two sums, then subtract, scale, scale, add. */
void ew_norm_cost(const struct ew_call *c, struct ew_cost *out);

/* Resolves axes (empty: all) to a mask; fails on duplicates and out of range. */
ew_err ew_norm_axes(const struct ew_ints *axes, int rank, unsigned *out);

#endif
