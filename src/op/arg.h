/* SPDX-License-Identifier: Apache-2.0 */
/* Common part of argmax and argmin: all but the comparison. */
#ifndef EW_OP_ARG_H
#define EW_OP_ARG_H

#include "graph/graph.h"
#include "op/math_attr.h"

extern const struct ew_field ew_arg_attrs[];

ew_err ew_arg_infer(const struct ew_call *c);
void ew_arg_cost(const struct ew_call *c, struct ew_cost *out);
/* Bytes of one lane. */
size_t ew_arg_scratch(const struct ew_call *c);
ew_err ew_arg_forward(const struct ew_call *c, bool largest);
ew_err ew_arg_permute(struct ew_graph *g, int node, const int *perm, int *out_perm);

#define EW_ARG_CASES 3
extern const struct ew_op_case ew_arg_cases[EW_ARG_CASES];

/* Common fields of their descriptors. */
#define EW_ARG_OP(onnx_type)                                                                       \
    .min_in = 1, .max_in = 1, .attr_size = sizeof(struct ew_arg_attr), .attrs = ew_arg_attrs,      \
    .infer = ew_arg_infer, .cost = ew_arg_cost, .scratch = ew_arg_scratch,                         \
    .permute = ew_arg_permute, .onnx = {.type = onnx_type}, EW_OP_CASES(ew_arg_cases)

#endif
