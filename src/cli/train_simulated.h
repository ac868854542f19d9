/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise train --simulate`: epochs on a board that is not here. */
#ifndef EW_CLI_TRAIN_SIMULATED_H
#define EW_CLI_TRAIN_SIMULATED_H

#include "cli/train_run.h"

/* The epochs of a run that was set up, shown and recorded; nothing is trained. */
ew_err ew_train_simulated(const struct ew_train_run *r);

#endif
