/* SPDX-License-Identifier: Apache-2.0 */
/* For commands that run on several MPI ranks. */
#ifndef EW_CLI_RANK_CMD_H
#define EW_CLI_RANK_CMD_H

#include "cli/cmd.h"
#include "train/ranks.h"

/* Joins the other ranks if a launcher has started several; else *out is NULL.  `stop` as in
 * ew_ranks_watch. */
ew_err ew_cmd_join_ranks(const volatile int *stop, struct ew_ranks **out);

/* Leaves with the command's result.  A failed rank aborts the others, which would wait for it, and
 * itself, so the failure is printed first. */
void ew_cmd_leave_ranks(struct ew_ranks *ranks, const struct ew_cmd_call *c, ew_err e);

#endif
