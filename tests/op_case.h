/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and input data from the operators' test cases. */
#ifndef EW_OP_CASE_H
#define EW_OP_CASE_H

#include "graph/graph.h"

/* A graph of one node: inputs "in0", "in1", ... (constants if the case says so); all outputs of the
 * node are graph outputs.  With `f64`, float32 inputs become float64. */
ew_err ew_case_graph(const struct ew_op *op, const struct ew_op_case *k, bool f64,
                     struct ew_graph **out);

/* Fills t, whose shape, dtype and data are set, as the case specifies for input `index`;
 * deterministic. */
void ew_case_fill(const struct ew_op_case *k, int index, struct ew_tensor *t);

/* Parses "2x3x4" or "" as a shape. */
ew_err ew_case_shape(const char *text, struct ew_shape *out);

#endif
