/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what disturbs measurements on a board. */
#ifndef EW_CLI_DOCTOR_CHECKS_H
#define EW_CLI_DOCTOR_CHECKS_H

#include "device/board.h"
#include "study/machine.h"

enum ew_finding_kind {
    EW_FINDING_FINE,   /* nothing to do */
    EW_FINDING_CHANGE, /* disturbs measurements, and can be changed */
    EW_FINDING_KNOW,   /* cannot or need not be changed, but is worth knowing */
};

struct ew_finding {
    const char *what; /* "governor" */
    enum ew_finding_kind kind;
    char text[256];    /* the state and its effect */
    char command[256]; /* a command that changes it; "": none */
};

#define EW_MAX_FINDINGS 24

struct ew_checkup {
    struct ew_finding v[EW_MAX_FINDINGS];
    int n;
};

/* Checks the board and the state of the machine `g`.  `captured`: the board is a folder of captured
 * files, where permissions of this process mean nothing. */
ew_err ew_checkup(struct ew_board *b, const struct ew_machine_state *g, bool captured,
                  struct ew_checkup *out);

#endif
