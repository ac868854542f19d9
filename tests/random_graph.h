/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs that are valid: convolutions of all kinds, norms, pools, activations, additions,
 * products, concatenations, resizes, transposes, pads, slices, gathers and quantisers, with several
 * readers of one value, shared constants, odd sizes and several outputs. */
#ifndef EW_RANDOM_GRAPH_H
#define EW_RANDOM_GRAPH_H

#include <stdio.h>

#include "graph/graph.h"

struct ew_random_graph {
    uint64_t seed;
    int nodes;      /* at most about so many; 0: 1 to 30 by the seed */
    bool trainable; /* nothing but what has a gradient, and one output [N, classes] */
    bool no_quant;  /* no quantisers */
};

/* The same graph for the same options. */
ew_err ew_random_graph(const struct ew_random_graph *o, struct ew_graph **out);

/* True where the graph has quantisers, whose results may be a step apart. */
bool ew_random_graph_quantises(const struct ew_graph *g);

/* Its nodes with inputs, outputs and shapes, one a line. */
void ew_random_graph_print(const struct ew_graph *g, FILE *to);

#endif
