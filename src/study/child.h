/* SPDX-License-Identifier: Apache-2.0 */
/* One job as a process of its own: its crash, its memory and its page cache are not ours.  It ends
 * when we do. */
#ifndef EW_STUDY_CHILD_H
#define EW_STUDY_CHILD_H

#include <stdbool.h>

#include "base/err.h"

#define EW_CHILD_TEXT 512

struct ew_child {
    int status;               /* as waitpid has it */
    double wall_s, cpu_s;     /* cpu_s: of the process and its own children */
    char said[EW_CHILD_TEXT]; /* the last line that it wrote to standard error */
};

/* Runs `argv` (NULL-terminated, argv[0] is the program's path) with EW_RUN=uid and nothing on its
 * standard output, and waits for it.  `gently`: it is asked to end when we end, else killed. */
ew_err ew_child_run(const char *const *argv, const char *uid, bool gently, struct ew_child *out);

#endif
