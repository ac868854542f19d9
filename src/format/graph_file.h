/* SPDX-License-Identifier: Apache-2.0 */
/* Serialisation of a graph, exactly: order of nodes, layouts, flags.  For Edgewise's own files, as
 * part of them; other programs get ONNX. */
#ifndef EW_FORMAT_GRAPH_FILE_H
#define EW_FORMAT_GRAPH_FILE_H

#include "format/stream.h"
#include "graph/graph.h"

/* Writes the graph with its weights. */
ew_err ew_graph_write(struct ew_byte_writer *p, const struct ew_graph *g);

/* Reads a graph; its weights are copied unless in->borrow.  Free with ew_graph_free. */
ew_err ew_graph_read(struct ew_byte_reader *in, struct ew_graph **out);

#endif
