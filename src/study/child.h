/* SPDX-License-Identifier: Apache-2.0 */
/* One job as a process of its own, so that its crashes and memory do not affect the study.  It ends
 * when the study does. */
#ifndef EW_STUDY_CHILD_H
#define EW_STUDY_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spawn.h"

#define EW_CHILD_TEXT 512

struct ew_child {
    int status;               /* as waitpid has it */
    double wall_s, cpu_s;     /* cpu_s: of the process and its own children */
    bool late;                /* it was ended by ew_child_end */
    char said[EW_CHILD_TEXT]; /* the last line that it wrote to standard error */
    /* Private. */
    struct ew_spawned process;
    int64_t start_ns;
    char line[EW_CHILD_TEXT];
    size_t used;
};

/* Starts `argv` (NULL-terminated, argv[0] is the program's path) with EW_RUN=uid and nothing on its
 * standard output. `gently`: it gets SIGTERM when the study ends, else SIGKILL.  ew_child_finish
 * must follow. */
ew_err ew_child_start(const char *const *argv, const char *uid, bool gently, struct ew_child *out);

/* Reads its standard error for up to timeout_ms; false: closed, as when it ends.
 */
bool ew_child_listen(struct ew_child *c, int timeout_ms);

/* Ends it: at once or, `gently`, by asking it, so that it can restore what it has set. */
void ew_child_end(struct ew_child *c, bool gently);

/* Waits for its end and fills in the rest. */
ew_err ew_child_finish(struct ew_child *c);

/* Start, listen and finish in one. */
ew_err ew_child_run(const char *const *argv, const char *uid, struct ew_child *out);

#endif
