/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise help: all commands, or one; also the sources of the man page and the completions. */
#include "cli/cmd.h"
#include "cli/docs.h"

enum format { TEXT, MAN, BASH, ZSH, FISH, COMPLETE };

static const char *const formats[] = {"text", "man", "bash", "zsh", "fish", "complete", NULL};

struct opts {
    int format;
};

static const struct ew_field fields[] = {
    {.name = "format",
     .type = EW_FIELD_ENUM,
     .offset = offsetof(struct opts, format),
     .def = "text",
     .choices = formats,
     .help = "text, the commands' part of the man page, shell completion, or (complete) "
             "candidates for the words after --"},
    EW_FIELD_END,
};

static ew_err help_one(struct ew_cmd_call *c, const char *name)
{
    const struct ew_cmd *cmd = ew_cmd_find(name);
    if (!cmd) {
        const char *near = ew_cmd_nearest(name);
        if (near)
            ew_cmd_hint(c, "did you mean '%s'?", near);
        return ew_fail(EW_ERR_USAGE, "help: no command '%s'", name);
    }
    if (c->json)
        return ew_docs_json(cmd);
    ew_help_cmd(cmd);
    return EW_OK;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    EW_CHECK(o->format == TEXT || o->format == COMPLETE || c->n_args == 0, EW_ERR_USAGE,
             "help: --format %s is for all commands", formats[o->format]);
    EW_CHECK(o->format == COMPLETE || c->n_args <= 1, EW_ERR_USAGE, "help: unexpected '%s'",
             c->args[1]);
    switch ((enum format)o->format) {
    case MAN:
        ew_docs_man();
        break;
    case BASH:
        ew_docs_bash();
        break;
    case ZSH:
        ew_docs_zsh();
        break;
    case FISH:
        ew_docs_fish();
        break;
    case COMPLETE:
        ew_complete(c->n_args, c->args);
        break;
    case TEXT:
        if (c->n_args)
            return help_one(c, c->args[0]);
        if (c->json)
            return ew_docs_json(NULL);
        ew_help_all();
        break;
    }
    return EW_OK;
}

const struct ew_cmd ew_cmd_help = {
    .name = "help",
    .group = EW_CMD_GENERAL,
    .summary = "list all commands, or the options of one",
    .args = "[COMMAND]",
    .max_args = -1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
};
