/* SPDX-License-Identifier: Apache-2.0 */
/* Help on the terminal, generated from the commands' tables. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/progress.h"
#include "cli/cmd.h"
#include "cli/docs.h"

#define FLAG_WIDTH  26  /* columns before an option's text */
#define NAME_WIDTH  13  /* columns before a command's summary */
#define COLUMNS_MAX 100 /* longer lines are hard to read */

static int line_columns(void)
{
    const int columns = ew_terminal_columns(stdout);
    return (columns < COLUMNS_MAX ? columns : COLUMNS_MAX) - 1;
}

const char *ew_help_value(const struct ew_field *f)
{
    if (f->metavar || f->type == EW_FIELD_BOOL)
        return f->metavar;
    switch (f->type) {
    case EW_FIELD_ENUM:
        return "WORD";
    case EW_FIELD_STR:
        return "TEXT";
    case EW_FIELD_SIZE:
        return "BYTES";
    default:
        return "N";
    }
}

bool ew_help_is_on(const struct ew_field *f)
{
    return f->type == EW_FIELD_BOOL && f->def && strcmp(f->def, "true") == 0;
}

/* "-o, --output FILE", "--[no-]shuffle" */
static void flag_text(const struct ew_field *f, char *buf, size_t size)
{
    char letter[8] = "";
    if (f->letter)
        snprintf(letter, sizeof(letter), "-%c, ", f->letter);
    const char *value = ew_help_value(f);
    snprintf(buf, size, "%s--%s%s%s%s", letter, ew_help_is_on(f) ? "[no-]" : "", f->name,
             value ? " " : "", value ? value : "");
}

/* Width of a piece that is not broken: a word, or an option with its value. */
static int piece(const char *p)
{
    const int n = (int)strcspn(p, " ");
    const bool with_value = *p == '-' && p[n] == ' ' && p[n + 1] != '-';
    return with_value ? n + 1 + (int)strcspn(p + n + 1, " ") : n;
}

/* Prints `text` from column `at`, wrapped at spaces: `end` is appended to each broken line, further
 * lines are indented by `indent`. */
static void print_wrapped(const char *text, int at, int indent, const char *end)
{
    const int columns = line_columns() - (int)strlen(end);
    for (const char *p = text; *p;) {
        const int n = end[0] ? piece(p) : (int)strcspn(p, " ");
        if (at > indent && at + n > columns) {
            printf("%s\n%*s", end, indent, "");
            at = indent;
        }
        printf("%.*s", n, p);
        at += n;
        p += n;
        if (*p == ' ') {
            /* the space itself is dropped where the next word goes to a new line */
            const int next = end[0] ? piece(p + 1) : (int)strcspn(p + 1, " ");
            if (at + 1 + next <= columns && p[1])
                putchar(' ');
            at++;
            p++;
        }
    }
    putchar('\n');
}

void ew_help_wrapped(const char *text, int at, int indent)
{
    print_wrapped(text, at, indent, "");
}

void ew_help_text(const struct ew_field *f, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", f->verbs ? f->verbs : "", f->verbs ? ": " : "",
             f->help ? f->help : "");
}

static void print_option(const struct ew_field *f)
{
    char flag[96], text[1024];
    flag_text(f, flag, sizeof(flag));
    ew_help_text(f, text, sizeof(text));
    size_t used = strlen(text);
    for (int i = 0; f->type == EW_FIELD_ENUM && f->choices[i] && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? ", " : ": ",
                                 f->choices[i]);
    if (f->def && f->def[0] && strcmp(f->def, "default") != 0 && used < sizeof(text))
        snprintf(text + used, sizeof(text) - used, " (default %s)",
                 ew_help_is_on(f) ? "on" : f->def);
    const int width = FLAG_WIDTH + 3;
    if (strlen(flag) <= FLAG_WIDTH)
        printf("  %-*s ", FLAG_WIDTH, flag);
    else /* the help text starts on the next line */
        printf("  %s\n%*s", flag, width, "");
    print_wrapped(text, width, width, "");
}

static void print_options(const struct ew_field *table)
{
    for (const struct ew_field *f = table; f && f->name; f++)
        print_option(f);
}

/* Prints each line of `text` after `before`; see print_wrapped. */
static void print_lines(const char *before, const char *text, int indent, const char *end)
{
    for (const char *p = text; *p;) {
        char line[1024];
        const size_t n = strcspn(p, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)n, p);
        print_wrapped(line, printf("%s", before), indent, end);
        p += n + (p[n] == '\n');
    }
}

/* Joins lines that do not end a sentence with the next one. */
static void print_about(const char *about)
{
    char text[2048];
    snprintf(text, sizeof(text), "%s", about);
    for (char *p = text; *p; p++)
        if (*p == '\n' && p > text && !strchr(".:;", p[-1]))
            *p = ' ';
    print_lines("", text, 0, "");
}

void ew_help_cmd(const struct ew_cmd *cmd)
{
    printf("Usage: edgewise %s [options]%s%s\n\n", cmd->name, cmd->args ? " " : "",
           cmd->args ? cmd->args : "");
    if (cmd->about)
        print_about(cmd->about);
    else
        printf("%c%s.\n", toupper((unsigned char)cmd->summary[0]), cmd->summary + 1);
    printf("\nOptions:\n");
    print_options(cmd->opts);
    print_options(ew_cmd_common);
    if (cmd->examples) {
        printf("\nExamples:\n");
        print_lines("  edgewise ", cmd->examples, 6, " \\");
    }
}

void ew_help_all(void)
{
    print_lines(
        "",
        "Edgewise trains, shrinks, compiles, runs and measures convolutional networks on the "
        "board itself.",
        0, "");
    printf("\nUsage: edgewise COMMAND [options] [arguments]\n");
    for (int g = 0; g < EW_CMD_GROUP_COUNT; g++) {
        bool titled = false;
        for (int i = 0; i < ew_cmd_count(); i++) {
            const struct ew_cmd *cmd = ew_cmd_at(i);
            if ((int)cmd->group != g)
                continue;
            if (!titled)
                printf("\n%s:\n", ew_cmd_group_title(cmd->group));
            titled = true;
            print_wrapped(cmd->summary, printf("  %-10s ", cmd->name), NAME_WIDTH, "");
        }
    }
    printf("\n");
    print_lines("",
                "Results go to standard output (as JSON with --json), everything else to standard "
                "error.\n"
                "Exit status: 0 done, 1 failed, 2 wrong usage, 3 some jobs skipped.\n"
                "'edgewise help COMMAND' shows the options of one command.",
                0, "");
}
