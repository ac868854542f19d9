/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of runs: resuming a stopped run, and not overwriting one. */
#ifndef EW_CLI_RESUME_H
#define EW_CLI_RESUME_H

#include "cli/cmd.h"
#include "format/checkpoint.h"

/* A resumed run. */
struct ew_cmd_resume {
    const char *from;              /* its folder, or one of its checkpoints */
    const char *const *may_change; /* options that no later result depends on, terminated by NULL */
    struct ew_arena *arena;        /* owns the texts */
    const char *folder;            /* output: the run's folder */
};

/* Reads the checkpoint and its saved options into `opts` (of the command's size), overridden by
 * those of the command line.  Fails for an option that may not change. */
ew_err ew_cmd_resume(const struct ew_cmd_call *c, struct ew_cmd_resume *r,
                     struct ew_checkpoint *checkpoint, void *opts);

/* Fails if the folder holds a run, with a hint how to resume it. */
ew_err ew_cmd_folder_is_new(struct ew_cmd_call *c, const char *folder);

#endif
