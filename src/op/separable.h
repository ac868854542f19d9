/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise separable convolution and inverted residual (Howard et al., "MobileNets", 2017; Sandler
 * et al., "MobileNetV2", 2018) as one operator: an optional 1x1 convolution that expands, a
 * depthwise one, and an optional 1x1 convolution that projects, each with bias and epilogue. */
#ifndef EW_OP_SEPARABLE_H
#define EW_OP_SEPARABLE_H

#include "op/conv.h"

enum ew_separable_stage { EW_SEPARABLE_EXPAND, EW_SEPARABLE_DEPTHWISE, EW_SEPARABLE_PROJECT };

#define EW_SEPARABLE_STAGES 3

/* Images of at most so many pixels a row have no fused kernel: their rows are packed in another way
 * (plan_pairs of kernel/gemm), which a band of one row could not tell from an image of several. */
#define EW_SEPARABLE_NARROW 16

/* Inputs: x [N, H, W, C], then filters and bias of each stage, then a residual of the output's
 * shape.  Filters are as a convolution has them; only the depthwise ones are required. */
enum ew_separable_input {
    EW_SEPARABLE_X,
    EW_SEPARABLE_DEPTHWISE_W,
    EW_SEPARABLE_DEPTHWISE_B,
    EW_SEPARABLE_EXPAND_W,
    EW_SEPARABLE_EXPAND_B,
    EW_SEPARABLE_PROJECT_W,
    EW_SEPARABLE_PROJECT_B,
    EW_SEPARABLE_RESIDUAL,
    EW_SEPARABLE_INPUTS
};

struct ew_separable_attr {
    struct ew_window_attr win;                        /* of the depthwise convolution */
    struct ew_epilogue_attr end[EW_SEPARABLE_STAGES]; /* of the stages that are there */
};

/* The stages as convolutions.  Points into itself: must not be copied. */
struct ew_separable {
    bool has[EW_SEPARABLE_STAGES];
    int last; /* the last stage that is there */
    struct ew_conv_attr attr[EW_SEPARABLE_STAGES];
    struct ew_call call[EW_SEPARABLE_STAGES];
    struct ew_tensor *in[EW_SEPARABLE_STAGES][4];
    struct ew_tensor *out[EW_SEPARABLE_STAGES];
    struct ew_tensor between[EW_SEPARABLE_STAGES - 1]; /* their outputs, without data */
};

/* Fills `out`, and the shape and type of the output.  Fails if shapes, types or attributes do not
 * fit. */
ew_err ew_separable_resolve(const struct ew_call *c, struct ew_separable *out);

#endif
