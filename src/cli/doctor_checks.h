/* SPDX-License-Identifier: Apache-2.0 */
/* What should be changed on a board before something is measured there. */
#ifndef EW_CLI_DOCTOR_CHECKS_H
#define EW_CLI_DOCTOR_CHECKS_H

#include "device/board.h"
#include "study/machine.h"

enum ew_finding_kind {
    EW_FINDING_FINE,   /* nothing to do */
    EW_FINDING_CHANGE, /* it makes measurements worse, and can be changed */
    EW_FINDING_KNOW,   /* it cannot be changed, or need not be, but is worth knowing */
};

struct ew_finding {
    const char *what; /* "governor" */
    enum ew_finding_kind kind;
    char text[256];    /* what is so, and what that does */
    char command[256]; /* that changes it; "": there is none */
};

#define EW_MAX_FINDINGS 24

struct ew_checkup {
    struct ew_finding v[EW_MAX_FINDINGS];
    int n;
};

/* Looks at the board and at the machine's state `g`; `captured`: a folder stands for the board, and
 * rights of this process say nothing. */
ew_err ew_checkup(struct ew_board *b, const struct ew_guard *g, bool captured,
                  struct ew_checkup *out);

#endif
