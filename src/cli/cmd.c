/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of commands, and the command line parser.  Running a command is left to main. */
#include "cli/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/options.h"

#define EW_CMD(name) extern const struct ew_cmd ew_cmd_##name;
#include "cmd_list.h"
#undef EW_CMD

static const struct ew_cmd *const table[] = {
#define EW_CMD(name) &ew_cmd_##name,
#include "cmd_list.h"
#undef EW_CMD
};

struct common {
    bool json, help;
};

const struct ew_field ew_cmd_common[] = {
    {.name = "json",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct common, json),
     .help = "print the result as JSON"},
    {.name = "help",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct common, help),
     .help = "show this help",
     .letter = 'h'},
    EW_FIELD_END,
};

int ew_cmd_count(void)
{
    return (int)EW_COUNT(table);
}

const struct ew_cmd *ew_cmd_at(int i)
{
    return table[i];
}

const struct ew_cmd *ew_cmd_find(const char *name)
{
    for (int i = 0; i < ew_cmd_count(); i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

const char *ew_cmd_nearest(const char *name)
{
    struct ew_field names[EW_COUNT(table) + 1];
    memset(names, 0, sizeof(names));
    for (int i = 0; i < ew_cmd_count(); i++)
        names[i].name = table[i]->name;
    return ew_field_nearest(names, name);
}

const char *ew_cmd_group_title(enum ew_cmd_group g)
{
    static const char *const titles[] = {
#define EW_CMD_GROUP_TITLE(id, title) title,
        EW_CMD_GROUP_MAP(EW_CMD_GROUP_TITLE)
#undef EW_CMD_GROUP_TITLE
    };
    return titles[g];
}

bool ew_cmd_given(const struct ew_cmd_call *c, const char *option)
{
    const struct ew_field *f = ew_field_find(c->cmd->opts, option);
    EW_ASSERT(f);
    return c->given >> (f - c->cmd->opts) & 1;
}

void ew_cmd_hint(struct ew_cmd_call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->hint, sizeof(c->hint), fmt, ap);
    va_end(ap);
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* State of the parser. */
struct reader {
    struct ew_cmd_line *line;
    struct common common;
    char *const *words;
    int n, at; /* words[at] is the next one */
};

/* A field and the object that it belongs to. */
struct target {
    const struct ew_field *field;
    void *object;
};

static const struct ew_field *find_letter(const struct ew_field *fields, char letter)
{
    for (const struct ew_field *f = fields; f && f->name; f++)
        if (f->letter == letter)
            return f;
    return NULL;
}

static struct target find_option(struct reader *r, const char *name, char letter)
{
    const struct ew_field *const tables[2] = {r->line->cmd->opts, ew_cmd_common};
    void *const objects[2] = {r->line->opts, &r->common};
    for (int i = 0; i < 2; i++) {
        const struct ew_field *f =
            name ? ew_field_find(tables[i], name) : find_letter(tables[i], letter);
        if (f)
            return (struct target){f, objects[i]};
    }
    return (struct target){NULL, NULL};
}

static ew_err unknown_option(const struct ew_cmd *cmd, const char *name)
{
    const char *near = ew_field_nearest(cmd->opts, name);
    if (!near)
        near = ew_field_nearest(ew_cmd_common, name);
    if (near)
        return ew_fail(EW_ERR_USAGE, "%s: no option --%s; did you mean --%s?", cmd->name, name,
                       near);
    return ew_fail(EW_ERR_USAGE, "%s: no option --%s", cmd->name, name);
}

/* Appends to a repeatable option (its metavar ends in "..."): the values are joined by commas in
 * line->joined. */
static ew_err join(struct reader *r, struct target t, const char **text)
{
    const size_t n = t.field->metavar ? strlen(t.field->metavar) : 0;
    if (t.field->type != EW_FIELD_STR || n < 3 || strcmp(t.field->metavar + n - 3, "...") != 0)
        return EW_OK;
    struct ew_cmd_line *line = r->line;
    const char *before;
    memcpy(&before, (const char *)t.object + t.field->offset, sizeof(before));
    if (!(before >= line->joined && before < line->joined + line->joined_used))
        before = "";
    char *to = line->joined + line->joined_used;
    const size_t need = strlen(before) + strlen(*text) + 2;
    EW_CHECK(line->joined_used + need <= sizeof(line->joined), EW_ERR_USAGE, "%s: --%s: too many",
             line->cmd->name, t.field->name);
    snprintf(to, need, "%s%s%s", before, *before ? "," : "", *text);
    line->joined_used += strlen(to) + 1;
    *text = to;
    return EW_OK;
}

/* Parses a value; a failure names the command and the option with its dashes. */
static ew_err set_option(struct reader *r, struct target t, const char *text)
{
    EW_TRY(join(r, t, &text));
    const ew_err err = ew_field_parse(t.field, text, t.object);
    if (t.object == r->line->opts)
        r->line->given |= UINT64_C(1) << (t.field - r->line->cmd->opts);
    if (err == EW_OK)
        return EW_OK;
    char message[512];
    snprintf(message, sizeof(message), "%s", ew_error_message());
    return ew_fail(err, "%s: --%s", r->line->cmd->name, message);
}

/* The value of an option that was not given as --name=value. */
static ew_err next_word(struct reader *r, const struct ew_field *f, const char **out)
{
    EW_CHECK(r->at < r->n, EW_ERR_USAGE, "%s: --%s needs a value", r->line->cmd->name, f->name);
    *out = r->words[r->at++];
    return EW_OK;
}

/* "--cold" alone is "--cold yes": an enum whose choices begin with no and yes needs no value. */
static bool may_be_bare(const struct reader *r, const struct ew_field *f)
{
    if (f->type != EW_FIELD_ENUM || strcmp(f->choices[0], "no") != 0 ||
        strcmp(f->choices[1], "yes") != 0)
        return false;
    for (int i = 0; r->at < r->n && f->choices[i]; i++)
        if (strcmp(f->choices[i], r->words[r->at]) == 0)
            return false;
    return true;
}

static ew_err read_long(struct reader *r, const char *word)
{
    char name[64];
    const char *equals = strchr(word, '=');
    const size_t n = equals ? (size_t)(equals - word) : strlen(word);
    EW_CHECK(n < sizeof(name), EW_ERR_USAGE, "%s: no option --%.80s", r->line->cmd->name, word);
    memcpy(name, word, n);
    name[n] = '\0';

    struct target t = find_option(r, name, 0);
    if (!t.field && strncmp(name, "no-", 3) == 0 && !equals) {
        t = find_option(r, name + 3, 0);
        if (t.field && t.field->type == EW_FIELD_BOOL)
            return set_option(r, t, "false");
        t.field = NULL;
    }
    if (!t.field)
        return unknown_option(r->line->cmd, name);
    const char *value = equals ? equals + 1 : "true";
    if (!equals && t.field->type != EW_FIELD_BOOL && !may_be_bare(r, t.field))
        EW_TRY(next_word(r, t.field, &value));
    return set_option(r, t, value);
}

static ew_err read_short(struct reader *r, const char *word)
{
    const struct target t = find_option(r, NULL, word[0]);
    EW_CHECK(t.field, EW_ERR_USAGE, "%s: no option -%c", r->line->cmd->name, word[0]);
    if (t.field->type == EW_FIELD_BOOL) {
        EW_CHECK(!word[1], EW_ERR_USAGE, "%s: -%c takes no value", r->line->cmd->name, word[0]);
        return set_option(r, t, "true");
    }
    const char *value = word + 1;
    if (!*value)
        EW_TRY(next_word(r, t.field, &value));
    return set_option(r, t, value);
}

static ew_err check_args(const struct ew_cmd_line *line)
{
    const struct ew_cmd *cmd = line->cmd;
    EW_CHECK(line->n_args >= cmd->min_args, EW_ERR_USAGE, "%s: needs %s", cmd->name, cmd->args);
    const bool enough = cmd->max_args < 0 || line->n_args <= cmd->max_args;
    EW_CHECK(enough, EW_ERR_USAGE, "%s: unexpected '%s'", cmd->name, line->args[cmd->max_args]);
    return EW_OK;
}

/* ---- Verbs: "fit NAME|generate NAME" are two ---- */

static size_t letters(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz");
}

static bool is_verb(const struct ew_cmd *cmd, const char *word, size_t n)
{
    for (const char *p = cmd->args; n && p; p = strchr(p, '|')) {
        p += strspn(p, "|[ ");
        if (letters(p) == n && strncmp(p, word, n) == 0)
            return true;
    }
    return false;
}

/* Whether the list "fit, generate" contains the verb. */
static bool lists(const char *verbs, const char *verb, size_t n)
{
    for (const char *p = verbs; *p; p += letters(p), p += strspn(p, ", "))
        if (letters(p) == n && strncmp(p, verb, n) == 0)
            return true;
    return false;
}

static ew_err check_verb(const struct ew_cmd_line *line)
{
    const struct ew_cmd *cmd = line->cmd;
    const char *verb = line->n_args ? line->args[0] : "";
    const size_t n = letters(verb);
    if (!is_verb(cmd, verb, n) || verb[n])
        return EW_OK;
    for (const struct ew_field *f = cmd->opts; f && f->name; f++)
        EW_CHECK(!(line->given >> (f - cmd->opts) & 1) || !f->verbs || lists(f->verbs, verb, n),
                 EW_ERR_USAGE, "%s %s: --%s is an option of %s", cmd->name, verb, f->name,
                 f->verbs);
    return EW_OK;
}

ew_err ew_cmd_parse(int n_words, char *const *words, struct ew_cmd_line *line)
{
    struct reader r = {.line = line, .words = words, .n = n_words};
    bool options = true;
    line->n_args = line->n_before = 0;
    line->joined[0] = '\0';
    while (r.at < r.n) {
        const char *word = r.words[r.at++];
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && strncmp(word, "--", 2) == 0)
            EW_TRY(read_long(&r, word + 2));
        else if (options && word[0] == '-' && word[1])
            EW_TRY(read_short(&r, word + 1));
        else
            line->args[line->n_args++] = word;
        if (options)
            line->n_before = line->n_args;
    }
    line->help = r.common.help;
    line->json = r.common.json;
    if (line->help)
        return EW_OK;
    EW_TRY(check_args(line));
    return check_verb(line);
}

ew_err ew_cmd_perform(const char *name, int n_words, const char *const *words)
{
    const struct ew_cmd *cmd = ew_cmd_find(name);
    EW_CHECK(cmd, EW_ERR_NOT_FOUND, "this build has no command %s", name);
    EW_CLEANUP(ew_free_ptr) void *opts = calloc(1, cmd->opts_size + 1);
    EW_CLEANUP(ew_free_ptr) const char **args = calloc((size_t)n_words + 1, sizeof(*args));
    EW_CHECK(opts && args, EW_ERR_MEMORY, "no memory for the command line");
    ew_fields_default(cmd->opts, opts, cmd->opts_size);
    struct ew_cmd_line line = {.cmd = cmd, .opts = opts, .args = args};
    char *const *list;
    memcpy(&list, &words, sizeof(list)); /* parsing does not modify the words */
    EW_TRY(ew_cmd_parse(n_words, list, &line));
    struct ew_cmd_call call = {.cmd = cmd,
                               .opts = opts,
                               .n_args = line.n_args,
                               .n_before = line.n_before,
                               .args = args,
                               .json = line.json,
                               .given = line.given};
    return cmd->run(&call);
}
