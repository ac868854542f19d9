/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise help: all commands, or one of them. */
#include "cli/cmd.h"

static ew_err run(struct ew_cmd_call *c)
{
    if (c->n_args == 0) {
        ew_help_all();
        return EW_OK;
    }
    const struct ew_cmd *cmd = ew_cmd_find(c->args[0]);
    if (!cmd) {
        const char *near = ew_cmd_nearest(c->args[0]);
        if (near)
            ew_cmd_hint(c, "did you mean '%s'?", near);
        return ew_fail(EW_ERR_USAGE, "help: no command '%s'", c->args[0]);
    }
    ew_help_cmd(cmd);
    return EW_OK;
}

const struct ew_cmd ew_cmd_help = {
    .name = "help",
    .group = EW_CMD_GENERAL,
    .summary = "all commands, or the options of one",
    .args = "[COMMAND]",
    .max_args = 1,
    .run = run,
};
