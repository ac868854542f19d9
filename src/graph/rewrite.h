/* SPDX-License-Identifier: Apache-2.0 */
/* What the graph and its rewrites share; others use ew_graph_rewrite_begin of graph.h. */
#ifndef EW_GRAPH_REWRITE_H
#define EW_GRAPH_REWRITE_H

#include "graph/readers.h"

/* A rewrite that was given up; NULL: none. */
void ew_rewrite_free(struct ew_rewrite *r);

#endif
