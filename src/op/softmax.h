/* SPDX-License-Identifier: Apache-2.0 */
/* What softmax, log_softmax and hardmax share: attributes, lanes, layout, ONNX's two meanings. */
#ifndef EW_OP_SOFTMAX_H
#define EW_OP_SOFTMAX_H

#include "graph/onnx.h"
#include "op/lanes.h"
#include "op/math_attr.h"

extern const struct ew_field ew_softmax_attrs[];
extern const char *const ew_softmax_rename[];

/* The lanes that are normalised, each alone. */
ew_err ew_softmax_lanes(const struct ew_call *c, const struct ew_shape *s, struct ew_lanes *out);
ew_err ew_softmax_infer(const struct ew_call *c);
/* Room for two lanes. */
size_t ew_softmax_scratch(const struct ew_call *c);
ew_err ew_softmax_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

/* Before opset 13 the axis begins a block of axes that is normalised as one. */
ew_err ew_softmax_import(struct ew_graph *g, const struct ew_onnx_node *n, int *out);
ew_err ew_softmax_expand(struct ew_graph *g, int node, int *out);

/* The part of their descriptors that is the same. */
#define EW_SOFTMAX_OP(onnx_type)                                                                   \
    .flags = EW_OP_INPLACE, .min_in = 1, .max_in = 1, .attr_size = sizeof(struct ew_softmax_attr), \
    .attrs = ew_softmax_attrs, .infer = ew_softmax_infer, .scratch = ew_softmax_scratch,           \
    .permute = ew_softmax_permute,                                                                 \
    .onnx = {.type = onnx_type,                                                                    \
             .rename = ew_softmax_rename,                                                          \
             .import = ew_softmax_import,                                                          \
             .expand = ew_softmax_expand}

#endif
