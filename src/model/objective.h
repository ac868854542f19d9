/* SPDX-License-Identifier: Apache-2.0 */
/* What a classifier is trained for. */
#ifndef EW_MODEL_OBJECTIVE_H
#define EW_MODEL_OBJECTIVE_H

#include "graph/graph.h"

/* Adds the input "labels" [N] int64 and makes the softmax cross-entropy between the graph's first
 * output, [N, classes], and them the new first output; the scores stay as the second.  Fails where
 * the output has another shape. */
ew_err ew_objective_add(struct ew_graph *g);

#endif
