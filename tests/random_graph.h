/* SPDX-License-Identifier: Apache-2.0 */
/* Random valid graphs: convolutions of all kinds, norms, pools, activations, additions, products,
 * concatenations, resizes, transposes, pads, slices, gathers and quantisers, with shared values and
 * constants, odd sizes and several outputs. */
#ifndef EW_RANDOM_GRAPH_H
#define EW_RANDOM_GRAPH_H

#include <stdio.h>

#include "graph/graph.h"

struct ew_random_graph {
    uint64_t seed;
    int nodes;      /* approximate limit; 0: 1 to 30, depending on the seed */
    bool trainable; /* differentiable operators only, and one output [N, classes] */
    bool no_quant;  /* no quantisers */
};

/* Deterministic in the options. */
ew_err ew_random_graph(const struct ew_random_graph *o, struct ew_graph **out);

/* True if the graph has quantisers, whose results may differ by a step. */
bool ew_random_graph_quantises(const struct ew_graph *g);

/* Prints the nodes with inputs, outputs and shapes, one per line. */
void ew_random_graph_print(const struct ew_graph *g, FILE *to);

#endif
