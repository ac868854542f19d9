/* SPDX-License-Identifier: Apache-2.0 */
/* --on: runs a command on the machines of a file (study/machines.h). */
#ifndef EW_CLI_ON_MACHINES_H
#define EW_CLI_ON_MACHINES_H

#include "cli/cmd.h"

/* Option table entry for the member `on` of `owner`. */
#define EW_ON_FIELD(owner)                                                                         \
    {                                                                                              \
        .name = "on", .type = EW_FIELD_STR, .offset = offsetof(owner, on), .metavar = "FILE.ini",  \
        .help = "run on the machines listed in this file (docs/fleet.md)"                          \
    }

/* Runs the same command with the same options on every machine of the file at once.  `stream`:
 * prints each line as it arrives, after the machine's name (in JSON as its first member); else each
 * machine's whole output, in the order of the file (in JSON as members of one object).  Fails if a
 * machine fails, after all have ended. */
ew_err ew_on_machines(const struct ew_cmd_call *c, const char *file, bool stream);

#endif
