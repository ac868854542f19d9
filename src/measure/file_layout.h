/* SPDX-License-Identifier: Apache-2.0 */
/* Which values of a graph have another layout than in its ONNX file. */
#ifndef EW_MEASURE_FILE_LAYOUT_H
#define EW_MEASURE_FILE_LAYOUT_H

#include "graph/graph.h"

/* Sets last[v] for each value that is [N, ..., C] in the graph and [N, C, ...] in a file; the
 * others have one layout in both. */
void ew_file_layout(const struct ew_graph *g, bool *last);

#endif
