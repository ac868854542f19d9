/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of the kernels for convolutions and dense layers: text and predicate of each. */
#ifndef EW_BACKEND_CPU_CATALOGUE_CONV_RULES_H
#define EW_BACKEND_CPU_CATALOGUE_CONV_RULES_H

#include "backend/cpu/catalogue/catalogue.h"

/* clang-format off */
#define EW_IF_TRAINING        {"training", ew_if_training}
#define EW_IF_INFERENCE       {"inference", ew_if_inference}
#define EW_IF_RELU_AT_MOST    {"no activation but ReLU, no residual addition", ew_if_relu_at_most}
#define EW_IF_CONTIGUOUS      {"output not written into a concatenation", ew_if_contiguous}
#define EW_IF_NO_INPUT_NORM   {"no batch norm fused into the input", ew_if_no_input_norm}
#define EW_IF_NO_FUSED_NORM   {"no batch norm fused before or after", ew_if_no_fused_norm}
#define EW_IF_DEPTHWISE       {"groups = input channels = output channels", ew_if_depthwise}
#define EW_IF_GROUPED         {"several groups of at most 32 input channels, fewer than 16 in training, not depthwise", ew_if_grouped}
#define EW_IF_BATCH_LANES     {"2-D, no groups or dilation, fewer output channels than vector lanes, at least as many images", ew_if_batch_lanes}
#define EW_IF_PIXEL_LANES     {"2-D, stride 1, no groups or dilation, at most 4 input channels, rows of pixels fill vectors better than output channels", ew_if_pixel_lanes}
#define EW_IF_INPUT_LANES     {"2-D, no groups, no dilation along rows, output channels fill at most half a vector, and a line of taps of all inputs fills vectors better", ew_if_input_lanes}
#define EW_IF_WINOGRAD        {"no groups or dilation, filters square in height and width: 3x3 or 5x5 with stride 1, or 3 to 5 strides wide", ew_if_winograd}
#define EW_IF_WINOGRAD_WIDE   {"16 channels or more on both sides", ew_if_winograd_wide}
#define EW_IF_WINOGRAD_WINS   {"fewer estimated cycles than implicit gemm", ew_if_winograd_wins, true}
#define EW_IF_WORTH_THE_BYTES {"training, or a stride, or transformed filters less than 3 MiB larger than plain ones, or fewer than 64 image tiles a sample and plain filters below 16 MiB", ew_if_worth_the_bytes}
#define EW_IF_PLAIN_FILTERS   {"inference, stride 1", ew_if_plain_filters}
#define EW_IF_WINOGRAD_5X5    {"5x5 with stride 1, 3 to 32 input channels, 8 to 64 output channels, 1.5 times fewer operations than direct convolution, transforms fit into L2", ew_if_winograd_5x5}
#define EW_IF_TAP_PAIRS       {"at most 3/4 of the (output, tap) pairs read a pixel, the others padding; or a strided 1x1 on few pixels", ew_if_tap_pairs}
#define EW_IF_DENSE_PAIRS     {"at most 4 images per output channel and 1024 images", ew_if_tap_pairs}
#define EW_IF_GEMM_INPUT      {"no batch norm fused into the input, or a contiguous output and not depthwise", ew_if_gemm_input}
#define EW_IF_WIDE_PRODUCT    {"dense, or 1x1 with stride 1; 128 channels or more on both sides, 32 rows or more", ew_if_wide_product}
#define EW_IF_SPARSE_GRADS    {"dense, or 1x1 with stride 1, 128 channels or more on both sides, 32 rows or more; or a larger filter with fewer partial sums than dy has elements, 2-D, no groups or dilation", ew_if_sparse_grads}
#define EW_IF_NOT_TAP_PAIRS   {"a batch norm fused before or after, or not a case for tap pairs", ew_if_not_tap_pairs}
#define EW_IF_FUSED_1X1       {"1x1 with stride 1, filter and partial sums fit into L2, channels not a multiple of 1024", ew_if_fused_1x1}
#define EW_IF_FUSED_DEPTHWISE {"depthwise next to a fused batch norm, without bias or ReLU", ew_if_fused_depthwise}
#define EW_IF_GROUPED_DGRAD   {"grouped forward and backward, stride 1", ew_if_grouped_dgrad}
#define EW_IF_LANES_DGRAD     {"stride 1, fewer input channels than vector lanes, at least as many images", ew_if_batch_lanes_dgrad}
#define EW_IF_WINOGRAD_DGRAD  {"3x3 or 5x5 with stride 1, fewer estimated cycles than implicit gemm", ew_if_winograd_dgrad}
/* clang-format on */

bool ew_if_training(const struct ew_kernel_case *c);
bool ew_if_inference(const struct ew_kernel_case *c);
bool ew_if_relu_at_most(const struct ew_kernel_case *c);
bool ew_if_contiguous(const struct ew_kernel_case *c);
bool ew_if_no_input_norm(const struct ew_kernel_case *c);
bool ew_if_no_fused_norm(const struct ew_kernel_case *c);
bool ew_if_depthwise(const struct ew_kernel_case *c);
bool ew_if_grouped(const struct ew_kernel_case *c);
bool ew_if_batch_lanes(const struct ew_kernel_case *c);
bool ew_if_pixel_lanes(const struct ew_kernel_case *c);
bool ew_if_input_lanes(const struct ew_kernel_case *c);
bool ew_if_winograd(const struct ew_kernel_case *c);
bool ew_if_winograd_wide(const struct ew_kernel_case *c);
bool ew_if_winograd_wins(const struct ew_kernel_case *c);
bool ew_if_worth_the_bytes(const struct ew_kernel_case *c);
bool ew_if_plain_filters(const struct ew_kernel_case *c);
bool ew_if_winograd_5x5(const struct ew_kernel_case *c);
bool ew_if_tap_pairs(const struct ew_kernel_case *c);
bool ew_if_gemm_input(const struct ew_kernel_case *c);
bool ew_if_wide_product(const struct ew_kernel_case *c);
bool ew_if_sparse_grads(const struct ew_kernel_case *c);
bool ew_if_not_tap_pairs(const struct ew_kernel_case *c);
bool ew_if_fused_1x1(const struct ew_kernel_case *c);
bool ew_if_fused_depthwise(const struct ew_kernel_case *c);
bool ew_if_grouped_dgrad(const struct ew_kernel_case *c);
bool ew_if_batch_lanes_dgrad(const struct ew_kernel_case *c);
bool ew_if_winograd_dgrad(const struct ew_kernel_case *c);

/* Estimated cycles on one core. */
double ew_conv_gemm_cycles(const struct ew_kernel_case *c);
double ew_conv_winograd_cycles(const struct ew_kernel_case *c);
double ew_conv_winograd_plain_cycles(const struct ew_kernel_case *c);
/* Of the gradients that are wanted: dgrad by this method, wgrad by the best one. */
double ew_conv_gemm_grads_cycles(const struct ew_kernel_case *c);
double ew_conv_winograd_grads_cycles(const struct ew_kernel_case *c);

/* sparse_kernels.c: a kernel that skips zeros if the data has enough of them, else runs `next`. */
struct ew_kernel ew_wrap_sparse(const struct ew_kernel_case *c, struct ew_kernel next);

/* The Winograd form that the kernel uses, such as "F(4x4,3x3)"; NULL: unknown. */
const char *ew_conv_winograd_form(const struct ew_kernel_case *c);

#endif
