/* SPDX-License-Identifier: Apache-2.0 */
/* Passes over graphs: each makes an inference graph smaller and leaves what it computes unchanged,
 * up to rounding.  They need weights with data; what they cannot prove they leave alone. */
#ifndef EW_COMPRESS_PASS_H
#define EW_COMPRESS_PASS_H

#include "graph/graph.h"

/* What was learnt for integers (fake_quant) takes QDQ form: quantisers for activations, integer
 * weights and biases. */
ew_err ew_pass_settle_quant(struct ew_graph *g);
/* For files that tools for FPGAs read: fails unless every quantiser is int8 with one power-of-two
 * scale and zero point 0, and makes zero points explicit.  The second puts a clip to -128 .. 127
 * between quantisers and dequantisers too (QCDQ). */
ew_err ew_pass_explicit_pow2(struct ew_graph *g);
ew_err ew_pass_qcdq(struct ew_graph *g);
/* Float nodes between quantisers and dequantisers become integer nodes; before the next one, which
 * would make floats of the weights. */
ew_err ew_pass_lower_quant(struct ew_graph *g);
/* The same to the operators of the DPU, for that device and before all others: nodes between
 * power-of-two quantisers become what the hardware computes, where it can. */
ew_err ew_pass_lower_dpu(struct ew_graph *g);
/* Nodes whose inputs are all constant become constants. */
ew_err ew_pass_fold_constants(struct ew_graph *g);
/* Nodes that only hand their input on disappear: identity, dropout, reshapes to the same shape,
 * clips of integers at the ends of their range. */
ew_err ew_pass_drop_identity(struct ew_graph *g);
/* Padding with zeros before a convolution becomes its own; reads no weight, so it is for training
 * too. */
ew_err ew_pass_fold_pad(struct ew_graph *g);
/* Batch norm after a convolution goes into its filters and bias. */
ew_err ew_pass_fold_batch_norm(struct ew_graph *g);
/* The same where they lie, of filters that are the graph's and in no other one. */
ew_err ew_pass_fold_batch_norm_own(struct ew_graph *g);
/* A transpose before flatten and a dense layer goes into the order of the dense layer's weights. */
ew_err ew_pass_fold_flatten(struct ew_graph *g);
/* The same where they lie, of weights that are the graph's and in no other one: large ones are then
 * never in memory twice. */
ew_err ew_pass_fold_flatten_own(struct ew_graph *g);
/* Taps of constant filters that only ever see padding are cut off; for the present input size
 * alone. */
ew_err ew_pass_trim_taps(struct ew_graph *g);
/* Products with constant matrices, and biases behind them, become convolutions of one tap. */
ew_err ew_pass_matmul_conv(struct ew_graph *g);
/* Activations and additions after a convolution become its epilogue. */
ew_err ew_pass_fuse_epilogue(struct ew_graph *g);
/* Convolutions side by side whose outputs are concatenated become one, where smaller filters are
 * filled up with so many multiply-accumulates at most; behind the others, and not one of
 * ew_pass_all. */
ew_err ew_pass_join_convs(struct ew_graph *g, int64_t most);

/* Activations after a batch norm become its epilogue; for training, so it is not one of
 * ew_pass_all.  Nodes and values keep their numbers, and no weight is read. */
ew_err ew_pass_fuse_norm(struct ew_graph *g);
/* The addition after a batch norm into it; before ew_pass_fuse_norm. */
ew_err ew_pass_fuse_add(struct ew_graph *g);
/* Activations before a max pool go after it; the same holds. */
ew_err ew_pass_sink_activation(struct ew_graph *g);
/* Relu after a convolution becomes its epilogue; the same holds. */
ew_err ew_pass_fuse_relu(struct ew_graph *g);
/* Scales channels between convolutions so that quantising loses less; for the quantiser. */
struct ew_equalize_opts {
    /* Largest magnitude by channel of each value, NULL where unknown; NULL: filters stand for
     * them. */
    const float *const *peaks;
    /* The same of values after a ReLU6, by which channels that do not reach 6 are scaled too;
     * NULL: it stops there. */
    const float *const *reach;
    int rounds;
};
ew_err ew_pass_equalize(struct ew_graph *g, const struct ew_equalize_opts *o);

/* Cuts off weights of convolutions where outputs lose less by that than by a wider power-of-two
 * scale for all; for the quantiser.  peaks[v]: largest magnitude by channel of value v, NULL where
 * unknown.  Values keep their numbers. */
ew_err ew_pass_limit_weights(struct ew_graph *g, const float *const *peaks);

/* Changes biases so that means stay what they are when weights are rounded to 8 bits, one scale a
 * filter or (pow2) a power of two for all; for the quantiser.  means[v]: by channel of value v,
 * NULL where unknown. */
ew_err ew_pass_correct_bias(struct ew_graph *g, const float *const *means, bool pow2);

/* All that make inference faster, in the order in which each prepares the next. */
ew_err ew_pass_all(struct ew_graph *g);

/* ---- For the passes ---- */

/* True where the value is a weight or constant whose data is there. */
bool ew_pass_is_constant(const struct ew_graph *g, int value);
/* A ReduceMean over height and width (all that lies between batch and channels): a global average
 * pool, which keeps those axes with size 1. */
bool ew_pass_is_spatial_mean(const struct ew_graph *g, int node);
/* A float32 parameter of the graph's own, contents undefined. */
ew_err ew_pass_new_param(struct ew_graph *g, const char *name, const struct ew_shape *shape,
                         int *out);
/* True where the graph owns the value's data, alone in memory, and one node reads it: it may be
 * changed where it lies. */
struct ew_readers;
bool ew_pass_owns(struct ew_graph *g, const struct ew_readers *r, int value);

/* The same of the type, shape and kind of another weight, whose place it takes. */
ew_err ew_pass_new_weights(struct ew_graph *g, int like, int *out);

#endif
