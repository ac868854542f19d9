/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of a network: boxes from top to bottom, skips beside them. */
#ifndef EW_REPORT_GRAPH_SVG_H
#define EW_REPORT_GRAPH_SVG_H

#include <stdio.h>

#include "graph/graph.h"

/* Writes an SVG document of the graph (shapes inferred).  Batch norms, activations and the like are
 * drawn inside the box that they follow.  Fails over 20,000 nodes and out of memory; whether
 * `out` took all is the caller's to check. */
ew_err ew_graph_svg(const struct ew_graph *g, FILE *out);

#endif
