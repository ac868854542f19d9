/* SPDX-License-Identifier: Apache-2.0 */
/* The training objective: the loss between a network's output and labels, or its own input. */
#ifndef EW_MODEL_OBJECTIVE_H
#define EW_MODEL_OBJECTIVE_H

#include "model/loss_table.h"

/* Adds the loss as the new first output; the network's output becomes the second.  For scores [N,
 * classes] the input "labels" [N] int64 is added, one-hot encoded for element-wise losses; an
 * autoencoder's output is compared with its input.  Fails on other output shapes. */
ew_err ew_objective_add_loss(struct ew_graph *g, const struct ew_loss *loss);

/* The same with the default loss, "auto". */
ew_err ew_objective_add(struct ew_graph *g);

#endif
