/* SPDX-License-Identifier: Apache-2.0 */
/* A command line as the job of a run. */
#include "cli/recorded.h"

ew_err ew_cmd_record(const struct ew_cmd_call *c, const char *db, struct ew_recording *out)
{
    const struct ew_recorded_command command = {.name = c->cmd->name,
                                                .network = c->n_args ? c->args[0] : "",
                                                .fields = c->cmd->opts,
                                                .opts = c->opts};
    return ew_recording_begin(&command, db, out);
}
