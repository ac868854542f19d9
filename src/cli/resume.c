/* SPDX-License-Identifier: Apache-2.0 */
/* Resuming a run from its folder. */
#include "cli/resume.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "train/options.h"

#define PATH_CHARS 4096

static bool listed(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* A checkpoint may be untrusted: output paths outside of its folder, and commands that are run, are
 * taken from the command line only. */
static void forget_untrusted(const struct ew_cmd_call *c, const char *from, void *opts)
{
    static const char *const unsafe[] = {"db", "tensorboard", "power-from", NULL};
    for (const struct ew_field *f = c->cmd->opts; f->name; f++) {
        char *at = (char *)opts + f->offset;
        const char *value = NULL;
        if (f->type != EW_FIELD_STR || !listed(f->name, unsafe) || ew_cmd_given(c, f->name))
            continue;
        memcpy(&value, at, sizeof(value));
        if (value)
            EW_WARN("%s: the checkpoint names %s, which is not used unless --%s is given again",
                    from, value, f->name);
        memset(at, 0, sizeof(value));
    }
}

/* The saved options, overridden by those of the command line. */
static ew_err merge_options(const struct ew_cmd_call *c, const struct ew_cmd_resume *r,
                            const char *saved, void *opts)
{
    const struct ew_field *fields = c->cmd->opts;
    char word[PATH_CHARS];
    char *text = ew_arena_strdup(r->arena, saved);
    EW_CHECK(text, EW_ERR_MEMORY, "no memory");
    ew_fields_default(fields, opts, c->cmd->opts_size);
    EW_TRY(ew_fields_from_text(fields, text, r->from, opts));
    forget_untrusted(c, r->from, opts);
    for (const struct ew_field *f = fields; f->name; f++) {
        if (!ew_cmd_given(c, f->name))
            continue;
        EW_CHECK(listed(f->name, r->may_change), EW_ERR_USAGE,
                 "--%s: cannot be changed when a run is resumed; begin a new one from its weights",
                 f->name);
        ew_field_print(f, c->opts, word, sizeof(word));
        EW_TRY(ew_field_parse(f, ew_arena_strdup(r->arena, word), opts));
    }
    return EW_OK;
}

ew_err ew_cmd_resume(const struct ew_cmd_call *c, struct ew_cmd_resume *r,
                     struct ew_checkpoint *checkpoint, void *opts)
{
    struct stat st;
    EW_CHECK(c->n_args == 0, EW_ERR_USAGE, "--resume takes no network: the run has its own");
    const bool folder = stat(r->from, &st) == 0 && S_ISDIR(st.st_mode);
    const char *file = folder ? ew_arena_printf(r->arena, "%s/last.ckpt", r->from) : r->from;
    EW_CHECK(file, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_checkpoint_read(file, checkpoint));
    EW_TRY(merge_options(c, r, checkpoint->options, opts));
    const char *slash = strrchr(file, '/');
    r->folder = slash ? ew_arena_printf(r->arena, "%.*s", (int)(slash - file), file) : ".";
    EW_CHECK(r->folder, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

ew_err ew_cmd_folder_is_new(struct ew_cmd_call *c, const char *folder)
{
    struct stat st;
    char path[PATH_CHARS];
    snprintf(path, sizeof(path), "%s/last.ckpt", folder);
    if (stat(path, &st) != 0)
        return EW_OK;
    ew_cmd_hint(c, "edgewise %s --resume %.160s continues it", c->cmd->name, folder);
    return ew_fail(EW_ERR_ARG, "%s: holds a run already", folder);
}
