/* SPDX-License-Identifier: Apache-2.0 */
/* Graph passes: each makes an inference graph cheaper and preserves its results up to rounding.
 * They need weights with data, and leave alone what they cannot prove safe. */
#ifndef EW_COMPRESS_PASS_H
#define EW_COMPRESS_PASS_H

#include "graph/graph.h"

/* Converts a graph trained with fake_quant nodes to QDQ form: quantisers for activations, integer
 * weights and biases. */
ew_err ew_pass_convert_fake_quant(struct ew_graph *g);
/* For files that FPGA tools read.  The first fails unless every quantiser is int8 with one
 * power-of-two scale and zero point 0, and makes zero points explicit.  The second also inserts a
 * clip to [-128, 127] between quantisers and dequantisers (QCDQ). */
ew_err ew_pass_explicit_pow2(struct ew_graph *g);
ew_err ew_pass_qcdq(struct ew_graph *g);
/* Lowers float nodes between dequantisers and quantisers to integer nodes.  Must run before
 * ew_pass_fold_constants, which would turn integer weights into floats. */
ew_err ew_pass_lower_quant(struct ew_graph *g);
/* For the DPU, before all other passes: lowers nodes between power-of-two quantisers to the
 * operators of the hardware, where it has them. */
ew_err ew_pass_lower_dpu(struct ew_graph *g);
/* Constant folding. */
ew_err ew_pass_fold_constants(struct ew_graph *g);
/* Removes nodes that are identities in inference: identity, dropout, reshapes to the same shape,
 * clips of integers to their type's range. */
ew_err ew_pass_drop_identity(struct ew_graph *g);
/* Folds zero padding into the convolution after it.  Reads no weights, so it is for training too.
 */
ew_err ew_pass_fold_pad(struct ew_graph *g);
/* Folds batch norm into filters and bias of the convolution before it. */
ew_err ew_pass_fold_batch_norm(struct ew_graph *g);
/* The same in place, if the graph owns the filters exclusively. */
ew_err ew_pass_fold_batch_norm_own(struct ew_graph *g);
/* Folds the transpose before flatten and a dense layer into the order of the dense layer's weights.
 */
ew_err ew_pass_fold_flatten(struct ew_graph *g);
/* The same in place, if the graph owns the weights exclusively: large ones are then never in memory
 * twice. */
ew_err ew_pass_fold_flatten_own(struct ew_graph *g);
/* Trims taps of constant filters that only ever see padding, at the present input size. */
ew_err ew_pass_trim_taps(struct ew_graph *g);
/* Fuses the steps of a layer norm, as PyTorch writes them before opset 17; x ^ 2 becomes x * x. */
ew_err ew_pass_fuse_layer_norm(struct ew_graph *g);
/* Turns matrix products with constant matrices, and their biases, into 1x1 convolutions. */
ew_err ew_pass_matmul_conv(struct ew_graph *g);
/* Turns transposed convolutions of few outputs into a convolution and a transpose. */
ew_err ew_pass_transposed_conv(struct ew_graph *g);
/* Folds products and sums with one constant a channel, or one for all, into the convolution before
 * them. */
ew_err ew_pass_fold_scale(struct ew_graph *g);
/* Fuses activations and additions after a convolution into its epilogue. */
ew_err ew_pass_fuse_epilogue(struct ew_graph *g);
/* Merges parallel convolutions whose outputs are concatenated into one, if zero-padding the smaller
 * filters costs at most `most` multiply-accumulates.  Runs after the others; not in ew_pass_all. */
ew_err ew_pass_join_convs(struct ew_graph *g, int64_t most);

/* Fuses depthwise convolutions with the 1x1 ones around them, where a value between them takes more
 * than cache_bytes for one image.  Runs after the others; not in ew_pass_all. */
ew_err ew_pass_fuse_separable(struct ew_graph *g, int64_t cache_bytes);

/* Fuses activations after a batch norm into its epilogue.  For training, so not in ew_pass_all:
 * nodes and values keep their numbers, and no weight is read.  The same holds for the next three.
 */
ew_err ew_pass_fuse_norm(struct ew_graph *g);
/* Fuses the addition after a batch norm into it; before ew_pass_fuse_norm. */
ew_err ew_pass_fuse_add(struct ew_graph *g);
/* Moves activations before a max pool behind it. */
ew_err ew_pass_sink_activation(struct ew_graph *g);
/* Fuses relu after a convolution into its epilogue. */
ew_err ew_pass_fuse_relu(struct ew_graph *g);
/* Options of cross-layer equalisation. */
struct ew_equalize_opts {
    /* by value: peak magnitude of each channel, NULL where unknown; NULL: estimated from the
     * filters */
    const float *const *peaks;
    /* the same of values after a ReLU6, so that channels that do not reach 6 are scaled too; NULL:
     * ReLU6 is not crossed */
    const float *const *reach;
    int rounds;
};
ew_err ew_pass_equalize(struct ew_graph *g, const struct ew_equalize_opts *o);

/* For the quantiser: clips weights of convolutions to the power-of-two scale that minimises the
 * error of the outputs.  peaks[v]: peak magnitude of each channel of value v, NULL where unknown.
 * Values keep their numbers. */
ew_err ew_pass_clip_weights(struct ew_graph *g, const float *const *peaks);

/* For the quantiser: bias correction, which preserves the means of outputs when weights are rounded
 * to 8 bits, per channel or (pow2) per tensor to a power of two.  means[v]: mean of each channel of
 * value v, NULL where unknown. */
ew_err ew_pass_correct_bias(struct ew_graph *g, const float *const *means, bool pow2);

/* All passes for inference, in order. */
ew_err ew_pass_all(struct ew_graph *g);

/* ---- For the passes ---- */

/* Runs `rewrite` on every node, in order, with the use lists through which it rewires them; then
 * removes dead nodes and infers. */
struct ew_readers;
typedef ew_err ew_pass_rewrite(struct ew_graph *g, struct ew_readers *r, int node, void *ctx);
ew_err ew_pass_each_node(struct ew_graph *g, ew_pass_rewrite *rewrite, void *ctx);

/* True for a weight or constant with data. */
bool ew_pass_is_constant(const struct ew_graph *g, int value);
/* True for one of float32. */
bool ew_pass_is_floats(const struct ew_graph *g, int value);
/* True for a ReduceMean over all axes between batch and channels: a global average pool, except
 * that keepdims may drop those axes. */
bool ew_pass_is_spatial_mean(const struct ew_graph *g, int node);
/* Adds a float32 parameter, contents undefined. */
ew_err ew_pass_new_param(struct ew_graph *g, const char *name, const struct ew_shape *shape,
                         int *out);
/* True if the value's data is owned by the graph, not shared, and read by one node: it may be
 * changed in place. */
bool ew_pass_owns(const struct ew_graph *g, const struct ew_readers *r, int value);

/* Adds a parameter with the type, shape, kind and name of the weight `like`, which it replaces. */
ew_err ew_pass_new_weights(struct ew_graph *g, int like, int *out);

#endif
