/* SPDX-License-Identifier: Apache-2.0 */
/* Serialisation of a graph, exactly: order of nodes, layouts, flags.  For Edgewise's own files, as
 * part of them; other programs get ONNX. */
#ifndef EW_FORMAT_GRAPH_FILE_H
#define EW_FORMAT_GRAPH_FILE_H

#include "format/stream.h"
#include "graph/graph.h"

/* Writes the graph with its weights. */
ew_err ew_graph_put(struct ew_put *p, const struct ew_graph *g);

/* Reads a graph; its weights are copied unless in->borrow.  Free with ew_graph_free. */
ew_err ew_graph_get(struct ew_get *in, struct ew_graph **out);

#endif
