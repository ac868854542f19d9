/* SPDX-License-Identifier: Apache-2.0 */
/* The topology of an ONNX graph: numbers of values, and topological order of nodes. */
#ifndef EW_FORMAT_ONNX_TOPOLOGY_H
#define EW_FORMAT_ONNX_TOPOLOGY_H

#include "format/onnx_file.h"

struct ew_onnx_topology {
    int n_names;       /* values: initializers, inputs, then the nodes' outputs */
    const char **name; /* by value */
    int *producer;     /* by value: node, or -1 */
    int n_nodes;
    int *first_in, *in;   /* node k's inputs are in[first_in[k]] .. ; -1: absent */
    int *first_out, *out; /* its outputs likewise */
    int *order;           /* nodes in topological order; the file's own order if valid */
    struct ew_names names;
};

/* Numbers the values and sorts the nodes; lists are in `arena`.  Fails on names that are undefined,
 * defined twice or form a cycle.  Free with ew_onnx_topology_fini, also after a failure. */
ew_err ew_onnx_topology_init(struct ew_onnx_topology *w, const Ew__OnnxGraph *g,
                             struct ew_arena *arena);
void ew_onnx_topology_fini(struct ew_onnx_topology *w);

/* The node's name, or one made from its type and index; buf has EW_ONNX_LABEL bytes. */
#define EW_ONNX_LABEL 160
const char *ew_onnx_label(const Ew__OnnxGraph *g, int node, char *buf);

#endif
