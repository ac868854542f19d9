/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of a training run: its sensors, and its description for the run folder. */
#ifndef EW_CLI_TRAIN_BOARD_H
#define EW_CLI_TRAIN_BOARD_H

#include "base/mem.h"

struct ew_board;

/* Opens this machine, with the power meter `power_from` (NULL: none), restores settings that a
 * killed run left changed, and describes the machine as JSON in the arena.  Failure is a warning
 * and both are NULL, as training does not depend on it; with a meter, which was requested, it is an
 * error. */
ew_err ew_train_board_open(struct ew_arena *a, const char *power_from, struct ew_board **board,
                           const char **json);
void ew_train_board_close(struct ew_board *board);

#endif
