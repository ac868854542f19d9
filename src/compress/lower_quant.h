/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the pass that turns graphs in QDQ form into integer nodes. */
#ifndef EW_COMPRESS_LOWER_QUANT_H
#define EW_COMPRESS_LOWER_QUANT_H

#include "compress/quant_view.h"
#include "op/pooling.h"

/* One float node, or a few, on the way to a quantiser.  Each of the functions below looks whether
 * the nodes before quantiser `node` are of its kind, and if so puts an integer node in its place;
 * *done says whether. */
struct ew_lowering {
    struct ew_graph *g;
    int node;           /* quantize_linear */
    struct ew_qview to; /* its parameters */
    /* What it quantises, without the relu and clip between, which are in `clamp`. */
    int value;
    struct ew_quant_clamp clamp;
};

typedef ew_err ew_lower_fn(const struct ew_lowering *l, bool *done);

/* Convolutions, dense layers, and batch norm as a depthwise convolution of one tap. */
ew_lower_fn ew_lower_conv, ew_lower_gemm, ew_lower_norm;
/* The same without a quantiser after them: to float32. */
ew_err ew_lower_conv_float(struct ew_graph *g, int node, bool *done);
ew_err ew_lower_gemm_float(struct ew_graph *g, int node, bool *done);
/* Sums and products of two, averages, concat, and functions of one value. */
ew_lower_fn ew_lower_binary, ew_lower_average, ew_lower_concat, ew_lower_function;

/* The window of an average that our operators have; false: none.  *global: it covers all. */
bool ew_lower_window(const struct ew_graph *g, int node, struct ew_pool_attr *attr, bool *global);
/* A ReduceMean may drop the axes that a pool keeps with size 1: so does what takes its place. */
ew_err ew_lower_drop_axes(struct ew_graph *g, int node, int *value);
ew_err ew_lower_reshape(struct ew_graph *g, int value, const int64_t *dims, int n, int *out);

/* The first of these kinds that takes what is before the quantiser `node`; nothing where it is
 * none. */
ew_err ew_lower_first(struct ew_graph *g, int node, ew_lower_fn *const *kinds, size_t n);

typedef ew_err ew_lower_step(struct ew_graph *g, int node);
/* One sweep over all nodes; a step may put any number of nodes in the place of the one it is given.
 * Nodes that nobody needs any more go, and types are inferred again. */
ew_err ew_lower_sweep(struct ew_graph *g, ew_lower_step *step);
/* Zero points that are left out are put in, and dequantisers go after what only moves. */
ew_err ew_lower_prepare(struct ew_graph *g);

/* Puts the nodes from `first` on in the place of the quantiser. */
static inline ew_err ew_lower_place(const struct ew_lowering *l, int first, int value, bool *done)
{
    *done = true;
    return ew_graph_splice(l->g, l->node, first, &value);
}

#endif
