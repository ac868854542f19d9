/* SPDX-License-Identifier: Apache-2.0 */
/* The wiring of an ONNX graph: names become numbers, nodes get an order. */
#ifndef EW_FORMAT_ONNX_WIRE_H
#define EW_FORMAT_ONNX_WIRE_H

#include "format/onnx_file.h"

struct ew_onnx_wire {
    int n_names;       /* values: initializers, inputs, then the nodes' outputs */
    const char **name; /* by value */
    int *producer;     /* by value: node, or -1 */
    int n_nodes;
    int *first_in, *in;   /* node k's inputs are in[first_in[k]] .. ; -1: absent */
    int *first_out, *out; /* its outputs likewise */
    int *order;           /* nodes, producers first; the file's own order where that will do */
    struct ew_names names;
};

/* Numbers the values and sorts the nodes; lists lie in `arena`.  Fails on names that are missing,
 * made twice or make a cycle.  Release with ew_onnx_wire_fini, also after a failure. */
ew_err ew_onnx_wire_init(struct ew_onnx_wire *w, const Ew__OnnxGraph *g, struct ew_arena *arena);
void ew_onnx_wire_fini(struct ew_onnx_wire *w);

/* The node's own name, or one made of its type and position; buf has EW_ONNX_LABEL bytes. */
#define EW_ONNX_LABEL 160
const char *ew_onnx_label(const Ew__OnnxGraph *g, int node, char *buf);

#endif
