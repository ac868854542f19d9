/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of runs: going on with one that was stopped, and not writing over one. */
#ifndef EW_CLI_RESUME_H
#define EW_CLI_RESUME_H

#include "cli/cmd.h"
#include "format/checkpoint.h"

/* A run that goes on. */
struct ew_cmd_resume {
    const char *from;              /* its folder, or one of its checkpoints */
    const char *const *may_change; /* options that no number to come depends on, ended by NULL */
    struct ew_arena *arena;        /* texts live there */
    const char *folder;            /* set: the run's */
};

/* Reads the checkpoint, and the options that it was saved with into `opts`, of the command's size;
 * those of the command line come over them.  Fails on one that may not change. */
ew_err ew_cmd_resume(const struct ew_cmd_call *c, struct ew_cmd_resume *r,
                     struct ew_checkpoint *checkpoint, void *opts);

/* Fails where the folder holds a run, with a hint how to go on with that. */
ew_err ew_cmd_folder_is_new(struct ew_cmd_call *c, const char *folder);

#endif
