/* SPDX-License-Identifier: Apache-2.0 */
/* What scatter_elements and scatter_nd share: updates that go to elements of a copy of the data. */
#ifndef EW_OP_SCATTER_H
#define EW_OP_SCATTER_H

#include "graph/onnx.h"

enum { EW_SCATTER_DATA, EW_SCATTER_INDICES, EW_SCATTER_UPDATES };

enum ew_scatter_reduction {
    EW_SCATTER_NONE, /* the last update of an element stays */
    EW_SCATTER_ADD,
    EW_SCATTER_MUL,
    EW_SCATTER_MAX,
    EW_SCATTER_MIN
};

extern const char *const ew_scatter_choices[];

struct ew_scatter_attr {
    int64_t axis;  /* scatter_elements only */
    int reduction; /* enum ew_scatter_reduction */
};

/* The element of the data that update j goes to. */
typedef ew_err (*ew_scatter_target)(const struct ew_call *c, int64_t j, int64_t *out);

ew_err ew_scatter_forward(const struct ew_call *c, ew_scatter_target target);
/* Data and updates; only without reduction or with `add`. */
ew_err ew_scatter_backward(const struct ew_call *c, ew_scatter_target target);
/* backward's memory: one byte an element of the data. */
size_t ew_scatter_scratch(const struct ew_call *c);
/* export hook: reductions came with opsets 16 and 18. */
ew_err ew_scatter_export(const struct ew_graph *g, int node, struct ew_onnx_node *n);

/* The part of their descriptors that is the same; names are of their own files. */
#define EW_SCATTER_OP                                                                              \
    .flags = EW_OP_INPLACE, .saves = EW_SAVE_IN1, .min_in = 3, .max_in = 3,                        \
    .attr_size = sizeof(struct ew_scatter_attr), .attrs = attrs, .infer = infer,                   \
    .cost = ew_move_cost, .scratch = ew_scatter_scratch, .forward = forward, .backward = backward, \
    EW_OP_CASES(cases)

#endif
