/* SPDX-License-Identifier: Apache-2.0 */
/* Static facts about a network.  Memory of a run is in the plan's statistics (plan/plan.h). */
#ifndef EW_GRAPH_FACTS_H
#define EW_GRAPH_FACTS_H

#include "graph/graph.h"

struct ew_facts {
    int64_t params;       /* trainable elements */
    int64_t weight_bytes; /* parameters and running statistics */
    int64_t macs;         /* multiply-accumulates of convolutions and matrix products */
    int64_t flops;        /* all arithmetic; a MAC is two */
    int64_t flops_thop;   /* 2 x the MACs as thop counts them */
    int64_t nodes;        /* all nodes of the graph */
    int64_t cdl;          /* critical datapath length: operators on the longest path */
    int64_t cdl_nodes;    /* operators that count towards CDL, on all paths */
};

/* True for a transpose between channels-first and channels-last: [N, C, d...] <-> [N, d..., C]. */
bool ew_node_moves_channels(const struct ew_node *n);

/* True for a node whose outputs are all known before the run (shape arithmetic). */
bool ew_node_is_known(const struct ew_graph *g, const struct ew_node *n);

/* At the graph's present shapes, so for the whole batch.  Fails only for want of memory. */
ew_err ew_graph_facts(const struct ew_graph *g, struct ew_facts *out);

#endif
