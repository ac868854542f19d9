/* SPDX-License-Identifier: Apache-2.0 */
/* Generated documentation: man page sections, help as JSON, completion scripts. */
#include "cli/docs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* ---- Man page -------------------------------------------------------------------------------- */

/* Escapes text for roff; hyphens are written so that they can be copied. */
static void put_roff(const char *text)
{
    for (const char *p = text; *p; p++) {
        const bool line_start = p == text || p[-1] == '\n';
        if (line_start && (*p == '.' || *p == '\''))
            fputs("\\&", stdout);
        if (*p == '\\')
            fputs("\\e", stdout);
        else if (*p == '-')
            fputs("\\-", stdout);
        else
            putchar(*p);
    }
}

static void man_option(const struct ew_field *f)
{
    fputs(".TP\n", stdout);
    if (f->letter)
        printf("\\fB\\-%c\\fR, ", f->letter);
    fputs(ew_help_is_on(f) ? "\\fB\\-\\-[no\\-]" : "\\fB\\-\\-", stdout);
    put_roff(f->name);
    fputs("\\fR", stdout);
    const char *value = ew_help_value(f);
    if (value) {
        fputs(" \\fI", stdout);
        put_roff(value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    char text[1024];
    ew_help_text(f, text, sizeof(text));
    put_roff(text);
    for (int i = 0; f->type == EW_FIELD_ENUM && f->choices[i]; i++) {
        fputs(i ? ", " : ": ", stdout);
        put_roff(f->choices[i]);
    }
    if (f->def && f->def[0]) {
        fputs(" (default ", stdout);
        put_roff(ew_help_is_on(f) ? "on" : f->def);
        putchar(')');
    }
    putchar('\n');
}

static void man_examples(const char *examples)
{
    fputs(".PP\n.nf\n", stdout);
    for (const char *p = examples; *p;) {
        char line[256];
        const size_t n = strcspn(p, "\n");
        snprintf(line, sizeof(line), "edgewise %.*s", (int)n, p);
        fputs(".RS\n", stdout);
        put_roff(line);
        fputs("\n.RE\n", stdout);
        p += n + (p[n] == '\n');
    }
    fputs(".fi\n", stdout);
}

static void man_cmd(const struct ew_cmd *cmd)
{
    printf(".SS ");
    put_roff(cmd->name);
    printf("\n\\fBedgewise ");
    put_roff(cmd->name);
    printf("\\fR [\\fIoptions\\fR]");
    if (cmd->args) {
        printf(" \\fI");
        put_roff(cmd->args);
        printf("\\fR");
    }
    printf("\n.PP\n");
    if (cmd->about) {
        put_roff(cmd->about);
    } else {
        putchar(toupper((unsigned char)cmd->summary[0]));
        put_roff(cmd->summary + 1);
        putchar('.');
    }
    putchar('\n');
    for (const struct ew_field *f = cmd->opts; f && f->name; f++)
        man_option(f);
    if (cmd->examples)
        man_examples(cmd->examples);
}

void ew_docs_man(void)
{
    for (int g = 0; g < EW_CMD_GROUP_COUNT; g++)
        for (int i = 0; i < ew_cmd_count(); i++)
            if ((int)ew_cmd_at(i)->group == g)
                man_cmd(ew_cmd_at(i));
    printf(".SS Options of every command\n");
    for (const struct ew_field *f = ew_cmd_common; f->name; f++)
        man_option(f);
}

/* ---- Completion ------------------------------------------------------------------------------ */

/* The scripts only pass the words on: complete.c computes the candidates. */

void ew_docs_bash(void)
{
    fputs("# shellcheck shell=bash\n"
          "# Completion for edgewise, made by 'edgewise help --format bash'.\n"
          "_edgewise()\n"
          "{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} line files=''\n"
          "    COMPREPLY=()\n"
          "    while IFS= read -r line; do\n"
          "        if [ \"$line\" = '" EW_COMPLETE_FILES "' ]; then files=yes; "
          "else COMPREPLY+=(\"$line\"); fi\n"
          "    done < <(edgewise help --format complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
          "2>/dev/null)\n"
          "    if [ -n \"$files\" ]; then\n"
          "        while IFS= read -r line; do COMPREPLY+=(\"$line\"); done "
          "< <(compgen -f -- \"$cur\")\n"
          "        compopt -o filenames 2>/dev/null || true\n"
          "    fi\n"
          "}\n"
          "complete -F _edgewise edgewise\n",
          stdout);
}

void ew_docs_zsh(void)
{
    fputs("#compdef edgewise\n"
          "# Completion for edgewise, made by 'edgewise help --format zsh'.\n"
          "_edgewise() {\n"
          "    local line files=\n"
          "    local -a found\n"
          "    while IFS= read -r line; do\n"
          "        if [[ $line == '" EW_COMPLETE_FILES "' ]]; then files=yes; "
          "else found+=(\"$line\"); fi\n"
          "    done < <(edgewise help --format complete -- \"${(@)words[2,CURRENT]}\" "
          "2>/dev/null)\n"
          "    (( $#found )) && compadd -a found\n"
          "    [[ -n $files ]] && _files\n"
          "    return 0\n"
          "}\n"
          "if [[ $funcstack[1] == _edgewise ]]; then _edgewise \"$@\"; else compdef _edgewise "
          "edgewise; fi\n",
          stdout);
}

void ew_docs_fish(void)
{
    fputs("# Completion for edgewise, made by 'edgewise help --format fish'.\n"
          "function __edgewise_complete\n"
          "    set -l words (commandline -opc) (commandline -ct)\n"
          "    edgewise help --format complete -- $words[2..-1] 2>/dev/null | "
          "string match -v '" EW_COMPLETE_FILES "'\n"
          "end\n"
          "complete -c edgewise -a '(__edgewise_complete)'\n",
          stdout);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_options(struct ew_json *j, const struct ew_field *f)
{
    ew_json_array(j, "options");
    for (; f && f->name; f++) {
        ew_json_object(j, NULL);
        ew_json_str(j, "name", f->name);
        ew_json_str(j, "value", ew_help_value(f));
        if (f->verbs)
            ew_json_str(j, "verbs", f->verbs);
        ew_json_str(j, "help", f->help);
        ew_json_str(j, "default", f->def);
        if (f->type == EW_FIELD_ENUM) {
            ew_json_array(j, "choices");
            for (int i = 0; f->choices[i]; i++)
                ew_json_str(j, NULL, f->choices[i]);
            ew_json_end(j);
        }
        ew_json_end(j);
    }
    ew_json_end(j);
}

ew_err ew_docs_json(const struct ew_cmd *only)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = 0; i < ew_cmd_count(); i++) {
        const struct ew_cmd *cmd = ew_cmd_at(i);
        if (only && cmd != only)
            continue;
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", cmd->name);
        ew_json_str(&j, "group", ew_cmd_group_title(cmd->group));
        ew_json_str(&j, "summary", cmd->summary);
        ew_json_str(&j, "arguments", cmd->args);
        ew_json_str(&j, "about", cmd->about);
        ew_json_str(&j, "examples", cmd->examples);
        json_options(&j, cmd->opts);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}
