/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise train --simulate`: training epochs on a simulated board. */
#ifndef EW_CLI_TRAIN_SIMULATED_H
#define EW_CLI_TRAIN_SIMULATED_H

#include "cli/train_run.h"

/* Simulates, prints and records the epochs of a run that was set up; nothing is trained. */
ew_err ew_train_simulated(const struct ew_train_run *r);

#endif
