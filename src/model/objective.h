/* SPDX-License-Identifier: Apache-2.0 */
/* What a network is trained for. */
#ifndef EW_MODEL_OBJECTIVE_H
#define EW_MODEL_OBJECTIVE_H

#include "model/loss_table.h"

/* Makes the loss the graph's new first output; the network's own output stays as the second.
 * Where that is [N, classes], the input "labels" [N] int64 is added, and losses by element compare
 * with rows of 0 and a 1; where it has the input's shape, they compare with the input.  Fails
 * where the output has another shape. */
ew_err ew_objective_add_loss(struct ew_graph *g, const struct ew_loss *loss);

/* The same with the network's own loss, "auto". */
ew_err ew_objective_add(struct ew_graph *g);

#endif
