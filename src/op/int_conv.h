/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of 8-bit tensors with zero points, accumulated in wrapping int32.  Padding has the
 * value of x's zero point. */
#ifndef EW_OP_INT_CONV_H
#define EW_OP_INT_CONV_H

#include "op/conv.h"
#include "op/quant.h"

struct ew_int_conv_attr {
    struct ew_window_attr win;
    int64_t groups;
};

/* (our name, ONNX's name) of both operators. */
#define EW_INT_CONV_RENAMES EW_WINDOW_RENAMES, "groups", "group"

struct ew_int_conv {
    int x, x_zero, w, w_zero; /* input slots; w_zero: scalar or per filter */
    struct ew_conv_sizes s;
};

/* Sets s; fails if shapes, types or attributes do not fit. */
ew_err ew_int_conv_resolve(const struct ew_call *c, struct ew_int_conv *v);
void ew_int_conv_infer(const struct ew_call *c, const struct ew_int_conv *v);
/* Bytes: x and w as int32. */
size_t ew_int_conv_scratch(const struct ew_call *c, int x, int w);
/* Fills the scratch, from which `sum` computes an output element. */
void ew_int_conv_begin(const struct ew_call *c, const struct ew_int_conv *v);
int32_t ew_int_conv_sum(const struct ew_call *c, const struct ew_int_conv *v, int64_t image,
                        const int64_t *o, int64_t filter);

#endif
