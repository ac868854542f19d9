/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as bytes, exactly as it is: the order of its nodes, its layouts, its marks.  For our own
 * files, which hold it beside other things; other programs get ONNX. */
#ifndef EW_FORMAT_GRAPH_FILE_H
#define EW_FORMAT_GRAPH_FILE_H

#include "format/stream.h"
#include "graph/graph.h"

/* Writes the graph with the values that its weights have now. */
ew_err ew_graph_put(struct ew_put *p, const struct ew_graph *g);

/* Reads one; its weights have memory of their own unless in->borrow.  Release with ew_graph_free.
 */
ew_err ew_graph_get(struct ew_get *in, struct ew_graph **out);

#endif
