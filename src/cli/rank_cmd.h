/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that several ranks of MPI run together. */
#ifndef EW_CLI_RANK_CMD_H
#define EW_CLI_RANK_CMD_H

#include "cli/cmd.h"
#include "train/ranks.h"

/* Joins the others where a launcher has started several of us; else *out is NULL.  `stop` as in
 * ew_ranks_watch. */
ew_err ew_cmd_join_ranks(const volatile int *stop, struct ew_ranks **out);

/* Leaves with the command's result.  A rank in trouble ends the others, which would wait for it,
 * and itself; so it says why first. */
void ew_cmd_leave_ranks(struct ew_ranks *ranks, const struct ew_cmd_call *c, ew_err e);

#endif
