/* SPDX-License-Identifier: Apache-2.0 */
/* --simulate BOARD[:MODE]: predicts a command's measurements on another board, from the plan's
 * steps and the model of the board.  All results are marked "simulated". */
#ifndef EW_CLI_SIMULATED_H
#define EW_CLI_SIMULATED_H

#include "advise/simulated_run.h"
#include "measure/simulated_record.h"

/* Option table entry for the member `simulate` of `owner`. */
#define EW_SIMULATE_FIELD(owner)                                                                   \
    {                                                                                              \
        .name = "simulate", .type = EW_FIELD_STR, .offset = offsetof(owner, simulate),             \
        .metavar = "BOARD[:MODE]",                                                                 \
        .help = "do not run, but predict it for another board by its model; MODE is a mode of "    \
                "the board's profile or CORES/CPU/GPU/MEM in MHz, default: the highest"            \
    }

/* Prints the result as text or JSON. */
ew_err ew_simulated_show(const struct ew_simulated *s, const struct ew_simulated_run *r,
                         const char *name, bool json);

#endif
