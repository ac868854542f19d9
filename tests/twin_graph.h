/* SPDX-License-Identifier: Apache-2.0 */
/* A graph made twice: as a file has it, channels first, and plainly, with a transpose before and
 * after each node that looks at channels. */
#ifndef EW_TWIN_GRAPH_H
#define EW_TWIN_GRAPH_H

#include "graph/graph.h"

struct ew_twin {
    struct ew_graph *file, *plain;
};

/* A value of both. */
struct ew_pair {
    int file, plain;
};

ew_err ew_twin_const(struct ew_twin *t, enum ew_value_kind kind, const struct ew_tensor *x,
                     struct ew_pair *out);
/* A 1-D int64 constant. */
ew_err ew_twin_ints(struct ew_twin *t, const int64_t *v, int n, struct ew_pair *out);
/* A constant [O, C, k...] of the file, which is [O, k..., C] in the plain graph. */
ew_err ew_twin_filters(struct ew_twin *t, enum ew_value_kind kind, const struct ew_tensor *x,
                       struct ew_pair *out);

/* A node that treats all axes alike; at most 8 inputs and outputs. */
ew_err ew_twin_node(struct ew_twin *t, const char *op, const void *attr, const struct ew_pair *in,
                    int n_in, struct ew_pair *out, int n_out);
/* A node whose first input and only output are [N, C, d...]. */
ew_err ew_twin_spatial(struct ew_twin *t, const char *op, const void *attr,
                       const struct ew_pair *in, int n_in, struct ew_pair *out);

#endif
