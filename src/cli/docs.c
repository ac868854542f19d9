/* SPDX-License-Identifier: Apache-2.0 */
/* The generated half of the man page, and the bash completion, from the commands' tables. */
#include "cli/docs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- Man page -------------------------------------------------------------------------------- */

/* Text as roff has it: no escapes of its own, hyphens that can be copied. */
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
    put_roff(f->help ? f->help : "");
    for (int i = 0; f->type == EW_FIELD_ENUM && f->choices[i]; i++) {
        fputs(i ? ", " : ": ", stdout);
        put_roff(f->choices[i]);
    }
    if (f->def) {
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

/* 'verb --name' or 'verb --name' | 'verb -x' as a case pattern. */
static void bash_pattern(const struct ew_cmd *cmd, const struct ew_field *f)
{
    printf("    '%s --%s'", cmd->name, f->name);
    if (f->letter)
        printf(" | '%s -%c'", cmd->name, f->letter);
    printf(") ");
}

/* What may follow an option: its choices, or a file; nothing for numbers. */
static void bash_values(const struct ew_cmd *cmd)
{
    for (const struct ew_field *f = cmd->opts; f && f->name; f++) {
        if (f->type == EW_FIELD_BOOL)
            continue;
        bash_pattern(cmd, f);
        if (f->type == EW_FIELD_ENUM) {
            printf("words='");
            for (int i = 0; f->choices[i]; i++)
                printf("%s%s", i ? " " : "", f->choices[i]);
            printf("' ;;\n");
        } else {
            printf("%s ;;\n", f->type == EW_FIELD_STR ? "files=yes" : "words=' '");
        }
    }
}

static void bash_flags(const struct ew_cmd *cmd)
{
    printf("        %s) words='", cmd->name);
    for (const struct ew_field *f = cmd->opts; f && f->name; f++)
        printf("--%s%s ", ew_help_is_on(f) ? "no-" : "", f->name);
    printf("--json --help' ;;\n");
}

/* Commands that take a network know the zoo's names. */
static void bash_networks(void)
{
    const char *sep = "        ";
    for (int i = 0; i < ew_cmd_count(); i++) {
        const struct ew_cmd *cmd = ew_cmd_at(i);
        if (!cmd->args || !strstr(cmd->args, "NAME"))
            continue;
        printf("%s%s", sep, cmd->name);
        sep = " | ";
    }
    printf("%s)\n"
           "            words=$(edgewise models --json 2>/dev/null |\n"
           "                sed -n 's/^ *\"name\": \"\\([^\"]*\\)\".*/\\1/p')\n"
           "            files=yes\n"
           "            ;;\n",
           sep[0] == ' ' && sep[1] == '|' ? "" : "        no-such-command");
}

static void bash_verbs(void)
{
    for (int i = 0; i < ew_cmd_count(); i++)
        printf("%s%s", i ? " " : "", ew_cmd_at(i)->name);
}

void ew_docs_bash(void)
{
    printf("# shellcheck shell=bash\n"
           "# Completion for edgewise, made by 'edgewise help --format bash'.\n"
           "_edgewise()\n"
           "{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local verb=${COMP_WORDS[1]} words='' files='' verbs='");
    bash_verbs();
    printf("'\n"
           "    case \"$verb $prev\" in\n");
    for (int i = 0; i < ew_cmd_count(); i++)
        bash_values(ew_cmd_at(i));
    printf("    esac\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$verb\" = help ] && [[ -z $words && $cur != "
           "-* ]]; }; then\n"
           "        words=$verbs\n"
           "    elif [ -z \"$words$files\" ] && [[ $cur == -* ]]; then\n"
           "        case $verb in\n");
    for (int i = 0; i < ew_cmd_count(); i++)
        bash_flags(ew_cmd_at(i));
    printf("        esac\n"
           "    elif [ -z \"$words$files\" ]; then\n"
           "        case $verb in\n");
    bash_networks();
    printf("        *) files=yes ;;\n"
           "        esac\n"
           "    fi\n"
           "    mapfile -t COMPREPLY < <(\n"
           "        compgen -W \"$words\" -- \"$cur\" || true\n"
           "        if [ -n \"$files\" ]; then compgen -f -- \"$cur\"; fi\n"
           "    )\n"
           "    if [ -n \"$files\" ]; then compopt -o filenames 2>/dev/null || true; fi\n"
           "}\n"
           "complete -F _edgewise edgewise\n");
}
