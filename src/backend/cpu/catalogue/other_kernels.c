/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's families with a single kernel.  offer/offer_*.c decide which calls it supports;
 * here the conditions are stated in words. */
#include "backend/cpu/catalogue/catalogue.h"
#include "graph/ops.h"

#define FORWARD  EW_PHASE_FORWARD
#define BACKWARD EW_PHASE_BACKWARD

/* A list with one entry. */
#define EW_ONLY(kernel, in, when, covered, does, needed, ...)                                      \
    {                                                                                              \
        .ops = EW_FAMILY_OPS(__VA_ARGS__), .phase = (when), .needs = (needed),                     \
        .entries =                                                                                 \
            &(const struct ew_kernel_entry){                                                       \
                .name = (kernel), .folder = (in), .fuses = (does), .test = (covered)},             \
        .n = 1                                                                                     \
    }

#define POINTWISE "backend/test_kernel_pointwise.c"
#define MOVE      "backend/test_kernel_move.c"
#define NORM      "backend/test_kernel_norm.c"
#define POOL      "backend/test_kernel_conv_pool.c"
#define OFFERS    "backend/test_offers.c"
#define FLOATS    "float32"
#define ACTIVATIONS                                                                                \
    &ew_op_relu, &ew_op_clip, &ew_op_leaky_relu, &ew_op_hard_swish, &ew_op_hard_sigmoid,           \
        &ew_op_silu, &ew_op_sigmoid, &ew_op_tanh
#define POOLS                                                                                      \
    &ew_op_max_pool, &ew_op_average_pool, &ew_op_global_average_pool, &ew_op_global_max_pool,      \
        &ew_op_adaptive_avg_pool

#define REDUCTIONS                                                                                 \
    &ew_op_reduce_sum, &ew_op_reduce_mean, &ew_op_reduce_max, &ew_op_reduce_min, &ew_op_reduce_l1, \
        &ew_op_reduce_l2, &ew_op_reduce_sum_square

const struct ew_kernel_list ew_other_kernels[] = {
    EW_ONLY("activation", "pointwise", FORWARD, POINTWISE, NULL, FLOATS, ACTIVATIONS),
    EW_ONLY("activation", "pointwise", BACKWARD, POINTWISE, NULL, FLOATS, ACTIVATIONS),
    EW_ONLY("add", "pointwise", FORWARD, POINTWISE, NULL, "float32, equal shapes", &ew_op_add),
    EW_ONLY("add", "pointwise", BACKWARD, POINTWISE, NULL, "float32, equal shapes", &ew_op_add),
    EW_ONLY("mul", "pointwise", FORWARD, MOVE, NULL, "float32, equal shapes", &ew_op_mul),
    EW_ONLY("mul", "pointwise", BACKWARD, MOVE, NULL, "float32, equal shapes", &ew_op_mul),
    EW_ONLY("channel scale", "pointwise", FORWARD, MOVE, NULL,
            "float32, [N, ..., C] with [N, 1, C] or [C]", &ew_op_mul, &ew_op_add),
    EW_ONLY("channel scale", "pointwise", BACKWARD, MOVE,
            "squeeze-and-excite: sums of the batch norm before it",
            "float32, [N, ..., C] with [N, 1, C] or [C]", &ew_op_mul, &ew_op_add),
    EW_ONLY("scale and shift", "norm", FORWARD, POINTWISE, "activation, residual addition",
            "float32, inference", &ew_op_batch_norm),
    EW_ONLY("batch norm", "norm", FORWARD, NORM,
            "activation, residual addition; statistics from the convolution before it",
            "float32, training", &ew_op_batch_norm),
    EW_ONLY("batch norm", "norm", BACKWARD, NORM,
            "activation's gradient; sums from the layer after it", "float32, nothing frozen",
            &ew_op_batch_norm),
    EW_ONLY("fused conv+max pool", "direct", FORWARD, POOL, "bias, ReLU, max pool 2x2",
            "training, first layer, 2-D, stride 1", &ew_op_conv_pool),
    EW_ONLY("fused conv+max pool wgrad", "direct", BACKWARD, POOL, "bias gradient",
            "no gradient for the input", &ew_op_conv_pool),
    EW_ONLY("winograd F(5x5,5x5)", "winograd", FORWARD, "backend/test_kernel_winograd_5x5.c",
            "bias, ReLU, max pool 2x2, transpose", "training, channels first in the output",
            &ew_op_conv_pool),
    EW_ONLY("winograd F(5x5,5x5) gradients", "winograd", BACKWARD,
            "backend/test_kernel_winograd_5x5.c", "max pool 2x2, transpose",
            "channels first in the output", &ew_op_conv_pool),
    EW_ONLY("tiled conv+max pool", "direct", FORWARD, "plan/test_fuse_pool.c",
            "bias, ReLU, max pool 3x3", "training, first layer, pool of stride 2",
            &ew_op_conv_pool),
    EW_ONLY("tiled conv+max pool wgrad", "direct", BACKWARD, "plan/test_fuse_pool.c",
            "bias gradient", "no gradient for the input, pool of stride 2", &ew_op_conv_pool),
    EW_ONLY("separable", "depthwise", FORWARD, "compress/test_fuse_separable.c",
            "1x1 convolutions before and after a depthwise one, their biases and activations, "
            "residual addition",
            "float32, inference, rows of more than 16 pixels", &ew_op_separable_conv),
    EW_ONLY("dropout", "pointwise", FORWARD, POINTWISE, NULL, "float32, mask not wanted",
            &ew_op_dropout),
    EW_ONLY("dropout", "pointwise", BACKWARD, POINTWISE, NULL, "float32, mask not wanted",
            &ew_op_dropout),
    EW_ONLY("fake quantize", "int8", FORWARD, OFFERS, NULL, FLOATS, &ew_op_fake_quant),
    EW_ONLY("fake quantize", "pointwise", BACKWARD, OFFERS, NULL, FLOATS, &ew_op_fake_quant),
    EW_ONLY("copy", "move", FORWARD, MOVE, NULL, FLOATS, &ew_op_concat, &ew_op_split,
            &ew_op_channel_shuffle),
    EW_ONLY("copy", "move", BACKWARD, MOVE, NULL, FLOATS, &ew_op_concat, &ew_op_split,
            &ew_op_channel_shuffle),
    EW_ONLY("pool", "pool", FORWARD, NORM, "ReLU after max", FLOATS, POOLS),
    EW_ONLY("pool", "pool", BACKWARD, NORM, "ReLU's gradient", FLOATS, POOLS),
    EW_ONLY("softmax", "pointwise", FORWARD, POINTWISE, "cross-entropy and its gradient",
            "float32, last axis, one label a row, no weights or smoothing", &ew_op_softmax,
            &ew_op_softmax_cross_entropy),
    EW_ONLY("softmax", "pointwise", BACKWARD, POINTWISE, NULL,
            "float32, last axis, one label a row, no weights or smoothing",
            &ew_op_softmax_cross_entropy),
    EW_ONLY("softmax", "pointwise", BACKWARD, OFFERS, NULL, "float32, last axis", &ew_op_softmax),
    EW_ONLY("transpose", "pointwise", FORWARD, POINTWISE, NULL,
            "float32; one block of axes past another by registers, else by runs", &ew_op_transpose),
    EW_ONLY("transpose", "pointwise", BACKWARD, POINTWISE, NULL,
            "float32; one block of axes past another by registers, else by runs", &ew_op_transpose),
    EW_ONLY("function", "pointwise", FORWARD, OFFERS, NULL, FLOATS, &ew_op_erf, &ew_op_gelu,
            &ew_op_exp, &ew_op_sqrt, &ew_op_neg, &ew_op_abs),
    EW_ONLY("function", "pointwise", BACKWARD, OFFERS, NULL, FLOATS, &ew_op_gelu),
    EW_ONLY(
        "broadcast", "pointwise", FORWARD, OFFERS, NULL,
        "float32; equal shapes, one element, or adjacent axes of which the other operand has one",
        &ew_op_add, &ew_op_sub, &ew_op_mul, &ew_op_div, &ew_op_prelu),
    EW_ONLY("pad", "move", FORWARD, OFFERS, NULL, FLOATS, &ew_op_pad),
    EW_ONLY("blocks", "move", FORWARD, OFFERS, NULL, FLOATS, &ew_op_depth_to_space,
            &ew_op_space_to_depth),
    EW_ONLY("layer norm", "norm", FORWARD, OFFERS, NULL,
            "float32, a scale for each element, statistics not wanted", &ew_op_layer_norm),
    EW_ONLY("layer norm", "norm", BACKWARD, OFFERS, NULL,
            "float32, a scale for each element, statistics not wanted", &ew_op_layer_norm),
    EW_ONLY("group norm", "norm", FORWARD, OFFERS, NULL, FLOATS, &ew_op_group_norm,
            &ew_op_instance_norm),
    EW_ONLY("group norm", "norm", BACKWARD, OFFERS, NULL, FLOATS, &ew_op_group_norm,
            &ew_op_instance_norm),
    EW_ONLY("lrn", "norm", FORWARD, NORM, NULL, FLOATS, &ew_op_lrn),
    EW_ONLY("reduction", "pointwise", FORWARD, OFFERS, NULL, "float32, any axes", REDUCTIONS),
    EW_ONLY("reduction", "pointwise", BACKWARD, OFFERS, NULL, "float32, any axes",
            &ew_op_reduce_sum, &ew_op_reduce_mean),
    EW_ONLY("resample", "move", FORWARD, OFFERS, NULL,
            "float32, at most three axes between the first and the last that change; all modes but "
            "tf_crop_and_resize",
            &ew_op_resize),
    EW_ONLY("resample", "move", BACKWARD, OFFERS, NULL,
            "float32, at most three axes between the first and the last that change; all modes but "
            "tf_crop_and_resize",
            &ew_op_resize),
    EW_ONLY("gemm", "gemm", FORWARD, OFFERS, "bias",
            "float32, stacks that broadcast; gemm: nothing transposed, bias [n], alpha = beta = 1",
            &ew_op_matmul, &ew_op_gemm),
    EW_ONLY("gemm", "gemm", BACKWARD, OFFERS, "bias gradient",
            "float32, stacks that broadcast; gemm: nothing transposed, bias [n], alpha = beta = 1",
            &ew_op_matmul, &ew_op_gemm),
    EW_ONLY("transposed batch in lanes", "direct", FORWARD, "engine/test_random_layout.c", NULL,
            "float32, fewer columns or channels of the output than vector lanes, at least as many "
            "rows or images, stride 1, no bias",
            &ew_op_matmul, &ew_op_gemm, &ew_op_conv_transpose),
    EW_ONLY("transposed depthwise", "depthwise", FORWARD, OFFERS, NULL,
            "float32, one filter a channel, no bias", &ew_op_conv_transpose),
    EW_ONLY("transposed grouped", "grouped", FORWARD, OFFERS, NULL,
            "float32, groups of few channels, no bias", &ew_op_conv_transpose),
    EW_ONLY("transposed winograd", "winograd", FORWARD, OFFERS, "bias",
            "float32, stride 1, filters of 3x3 to 5x5 where that is less work",
            &ew_op_conv_transpose),
    EW_ONLY("transposed implicit gemm", "gemm", FORWARD, OFFERS, "bias", FLOATS,
            &ew_op_conv_transpose),
    EW_ONLY("transposed implicit gemm", "gemm", BACKWARD, OFFERS, "bias gradient", FLOATS,
            &ew_op_conv_transpose),
    EW_ONLY("int8 implicit gemm", "int8", FORWARD, "compress/test_quant.c",
            "bias, clamp, requantisation", "constant symmetric weights", &ew_op_qlinear_gemm,
            &ew_op_qlinear_matmul),
    EW_ONLY("int8 copy", "int8", FORWARD, "compress/test_quant.c", NULL, "bytes", &ew_op_concat,
            &ew_op_split, &ew_op_channel_shuffle),
    EW_ONLY("int8 add/mul", "int8", FORWARD, "compress/test_quant.c", "clamp",
            "equal shapes, or one pixel", &ew_op_qlinear_add, &ew_op_qlinear_mul),
    EW_ONLY("int8 pool", "int8", FORWARD, "compress/test_quant.c", NULL, "bytes", &ew_op_max_pool,
            &ew_op_global_max_pool, &ew_op_qlinear_average_pool,
            &ew_op_qlinear_global_average_pool),
    EW_ONLY("quantize", "int8", FORWARD, "compress/test_quant.c", NULL, "one scale",
            &ew_op_quantize_linear),
    EW_ONLY("dequantize", "int8", FORWARD, "compress/test_quant.c", NULL, "one scale",
            &ew_op_dequantize_linear),
    EW_ONLY("int8 lookup", "int8", FORWARD, "compress/test_quant.c", NULL, "bytes", &ew_op_lookup),
};

const int ew_other_kernels_count = (int)EW_COUNT(ew_other_kernels);
