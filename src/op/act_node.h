/* SPDX-License-Identifier: Apache-2.0 */
/* Activations that ONNX Runtime's fused operators name, as nodes of their own. */
#ifndef EW_OP_ACT_NODE_H
#define EW_OP_ACT_NODE_H

#include "graph/graph.h"

struct ew_act_params {
    const char *type; /* as ONNX calls it */
    float v[3];       /* in the order of the fused operators */
    int n;
};

/* Adds the activation after `value`. */
ew_err ew_act_add_node(struct ew_graph *g, const struct ew_act_params *act, int value, int *out);

#endif
