/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a network without running it.  Memory of a run is the plan's to say. */
#ifndef EW_GRAPH_FACTS_H
#define EW_GRAPH_FACTS_H

#include "graph/graph.h"

struct ew_facts {
    int64_t params;       /* trainable elements */
    int64_t weight_bytes; /* parameters and running statistics */
    int64_t macs;         /* multiply-accumulates of convolutions and matrix products */
    int64_t flops;        /* all arithmetic, a MAC being two */
    int64_t flops_thop;   /* 2 x the MACs as thop counts them */
    int64_t nodes;        /* all of the graph's */
    int64_t cdl;          /* critical datapath length: operators on the longest path */
    int64_t cdl_nodes;    /* operators that count for it, on any path */
};

/* True for a transpose between our layout and ONNX's: [N, C, d...] <-> [N, d..., C]. */
bool ew_node_moves_channels(const struct ew_node *n);

/* True for a node whose outputs are known before the run: a part of shapes, pads and the like. */
bool ew_node_is_known(const struct ew_graph *g, const struct ew_node *n);

/* For the graph's present shapes, so for its whole batch.  Fails only where memory runs out. */
ew_err ew_graph_facts(const struct ew_graph *g, struct ew_facts *out);

#endif
