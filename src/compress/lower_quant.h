/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of lowering from QDQ form to integer nodes. */
#ifndef EW_COMPRESS_LOWER_QUANT_H
#define EW_COMPRESS_LOWER_QUANT_H

#include "compress/quant_view.h"
#include "op/pooling.h"

/* A quantiser to lower with the float nodes before it.  Each function below handles one kind of
 * node: if the nodes before quantiser `node` match, it replaces them by an integer node and sets
 * *done. */
struct ew_lowering {
    struct ew_graph *g;
    int node;           /* quantize_linear */
    struct ew_qview to; /* its parameters */
    /* the value that it quantises, before a relu or clip, which is in `clamp` */
    int value;
    struct ew_quant_clamp clamp;
};

typedef ew_err ew_lower_fn(const struct ew_lowering *l, bool *done);

/* Convolutions, dense layers, and batch norm as a depthwise convolution of one tap. */
ew_lower_fn ew_lower_conv, ew_lower_gemm, ew_lower_norm;
/* Without a quantiser after the layer: output in float32. */
ew_err ew_lower_conv_float(struct ew_graph *g, int node, bool *done);
ew_err ew_lower_gemm_float(struct ew_graph *g, int node, bool *done);
/* Addition and multiplication, average pools, concat, and unary functions by table. */
ew_lower_fn ew_lower_binary, ew_lower_average, ew_lower_concat, ew_lower_function;

/* The window of an average pool that the integer operators support; false: none.  *global: it
 * covers the whole input. */
bool ew_lower_window(const struct ew_graph *g, int node, struct ew_pool_attr *attr, bool *global);
/* Drops the axes that a ReduceMean without keepdims drops, and a pool keeps with size 1. */
ew_err ew_lower_drop_axes(struct ew_graph *g, int node, int *value);
ew_err ew_lower_reshape(struct ew_graph *g, int value, const int64_t *dims, int n, int *out);

/* Lowers quantiser `node` by the first kind that matches, if any. */
ew_err ew_lower_first(struct ew_graph *g, int node, ew_lower_fn *const *kinds, size_t n);

typedef ew_err ew_lower_step(struct ew_graph *g, int node);
/* Applies a step, which may replace a node by any number of nodes, to all nodes; then removes dead
 * nodes and infers. */
ew_err ew_lower_sweep(struct ew_graph *g, ew_lower_step *step);
/* Makes zero points explicit, and moves dequantisers behind data movement. */
ew_err ew_lower_prepare(struct ew_graph *g);

/* Replaces the quantiser by the nodes from `first` on. */
static inline ew_err ew_lower_place(const struct ew_lowering *l, int first, int value, bool *done)
{
    *done = true;
    return ew_graph_splice(l->g, l->node, first, &value);
}

#endif
