/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that a training runs on, for its sensors and its run folder. */
#ifndef EW_CLI_TRAIN_BOARD_H
#define EW_CLI_TRAIN_BOARD_H

#include "base/mem.h"

struct ew_board;

/* Opens this machine, with the power meter `power_from` (NULL: none), puts back what a killed run
 * had left changed, and describes it as JSON in the arena.  Where it cannot be opened it warns, and
 * both are NULL: training does not depend on it; with a meter, which was asked for, it fails. */
ew_err ew_train_board_open(struct ew_arena *a, const char *power_from, struct ew_board **board,
                           const char **json);
void ew_train_board_close(struct ew_board *board);

#endif
