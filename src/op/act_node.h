/* SPDX-License-Identifier: Apache-2.0 */
/* Separate nodes for the activations in ONNX Runtime's fused operators. */
#ifndef EW_OP_ACT_NODE_H
#define EW_OP_ACT_NODE_H

#include "graph/graph.h"

struct ew_act_params {
    const char *type; /* ONNX operator type */
    float v[3];       /* parameters, in the order of the fused operators */
    int n;
};

/* Adds the activation after `value`. */
ew_err ew_act_add_node(struct ew_graph *g, const struct ew_act_params *act, int value, int *out);

#endif
