/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a graph twice: channels first, as in a model file, and plainly, with a transpose before
 * and after each layout-dependent node. */
#ifndef EW_TWIN_GRAPH_H
#define EW_TWIN_GRAPH_H

#include "graph/graph.h"

struct ew_twin {
    struct ew_graph *file, *plain;
};

/* The same value in both graphs. */
struct ew_pair {
    int file, plain;
};

ew_err ew_twin_const(struct ew_twin *t, enum ew_value_kind kind, const struct ew_tensor *x,
                     struct ew_pair *out);
/* A 1-D int64 constant. */
ew_err ew_twin_ints(struct ew_twin *t, const int64_t *v, int n, struct ew_pair *out);
/* A constant that is [O, C, k...] in the file and [O, k..., C] in the plain graph. */
ew_err ew_twin_filters(struct ew_twin *t, enum ew_value_kind kind, const struct ew_tensor *x,
                       struct ew_pair *out);

/* A layout-independent node; at most 8 inputs and outputs. */
ew_err ew_twin_node(struct ew_twin *t, const char *op, const void *attr, const struct ew_pair *in,
                    int n_in, struct ew_pair *out, int n_out);
/* A node with one input [N, C, d...] first and one output of this layout. */
ew_err ew_twin_spatial(struct ew_twin *t, const char *op, const void *attr,
                       const struct ew_pair *in, int n_in, struct ew_pair *out);

#endif
