/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and leaving a group of MPI ranks. */
#include "cli/rank_cmd.h"

#include <stdio.h>

ew_err ew_cmd_join_ranks(const volatile int *stop, struct ew_ranks **out)
{
    *out = NULL;
    if (!ew_ranks_launched())
        return EW_OK;
    EW_TRY(ew_ranks_open(out));
    ew_ranks_watch(*out, stop);
    return EW_OK;
}

void ew_cmd_leave_ranks(struct ew_ranks *ranks, const struct ew_cmd_call *c, ew_err e)
{
    const bool well = e == EW_OK || e == EW_ERR_SKIPPED;
    if (ranks && !well)
        fprintf(stderr, "edgewise: %s: %s\n%s%s%s", ew_ranks_name(ranks, ew_ranks_rank(ranks)),
                ew_error_message(), *c->hint ? "hint: " : "", c->hint, *c->hint ? "\n" : "");
    ew_ranks_close(ranks, well);
}
