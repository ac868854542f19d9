/* SPDX-License-Identifier: Apache-2.0 */
/* Private to graph.c and rewrite.c; others use ew_graph_rewrite_begin of graph.h. */
#ifndef EW_GRAPH_REWRITE_H
#define EW_GRAPH_REWRITE_H

#include "graph/readers.h"

/* Frees a rewrite that was not ended; NULL is fine. */
void ew_rewrite_free(struct ew_rewrite *r);

#endif
