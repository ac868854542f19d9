/* SPDX-License-Identifier: Apache-2.0 */
/* Reading CSV text. */
#include "base/csv.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

void ew_csv_init(struct ew_csv *csv, char *text, const char *name)
{
    *csv = (struct ew_csv){.name = name, .rest = text, .next_line = 1, .separator = ','};
    if (strncmp(text, EW_BYTE_ORDER_MARK, 3) == 0)
        csv->rest += 3;
}

/* The blanks around cells. */
static const char *blanks(const struct ew_csv *csv)
{
    return csv->separator == '\t' ? " " : " \t";
}

static bool fail(struct ew_csv *csv, const char *why)
{
    csv->err = ew_fail(EW_ERR_FORMAT, "%s:%d: %s", csv->name, csv->line, why);
    return false;
}

/* Unquotes a cell in place; leaves `rest` after the closing quote. */
static bool quoted(struct ew_csv *csv, char **cell)
{
    char *from = csv->rest + 1, *to = from;
    *cell = from;
    for (; *from; from++) {
        if (*from == '"' && from[1] == '"')
            from++;
        else if (*from == '"')
            break;
        if (*from == '\n')
            csv->next_line++;
        *to++ = *from;
    }
    if (*from != '"')
        return fail(csv, "a quote is not closed");
    csv->rest = from + 1;
    *to = '\0';
    return true;
}

/* A cell up to a separator or the end of the line, without the blanks around it. */
static char *plain(struct ew_csv *csv, char **end)
{
    char *cell = csv->rest + strspn(csv->rest, blanks(csv));
    char *stop = cell + strcspn(cell, (const char[]){csv->separator, '\n', '\0'});
    csv->rest = stop;
    while (stop > cell && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
        stop--;
    *end = stop;
    return cell;
}

/* Reads one cell; true if another follows in this row. */
static bool take(struct ew_csv *csv)
{
    char *cell, *end = NULL;
    if (csv->n == EW_CSV_CELLS)
        return fail(csv, "more than 64 columns");
    if (csv->rest[strspn(csv->rest, blanks(csv))] == '"') {
        csv->rest += strspn(csv->rest, blanks(csv));
        if (!quoted(csv, &cell))
            return false;
        csv->rest += strspn(csv->rest, blanks(csv));
        csv->rest += *csv->rest == '\r';
        if (*csv->rest && *csv->rest != csv->separator && *csv->rest != '\n')
            return fail(csv, "text after a closing quote");
    } else {
        cell = plain(csv, &end);
    }
    const char separator = *csv->rest;
    if (separator)
        *csv->rest++ = '\0';
    if (end)
        *end = '\0';
    if (separator == '\n')
        csv->next_line++;
    csv->cells[csv->n++] = cell;
    return separator == csv->separator;
}

static bool skip_line(struct ew_csv *csv)
{
    const char *text = csv->rest + strspn(csv->rest, " \t\r");
    if (*text && *text != '\n' && *text != '#')
        return false;
    csv->rest += strcspn(csv->rest, "\n");
    if (*csv->rest == '\n') {
        csv->rest++;
        csv->next_line++;
    }
    return true;
}

void ew_csv_guess_separator(struct ew_csv *csv)
{
    while (*csv->rest && skip_line(csv))
        ;
    const size_t line = strcspn(csv->rest, "\n");
    if (memchr(csv->rest, ',', line))
        return;
    if (memchr(csv->rest, ';', line))
        csv->separator = ';';
    else if (memchr(csv->rest, '\t', line))
        csv->separator = '\t';
}

bool ew_csv_next(struct ew_csv *csv)
{
    csv->n = 0;
    if (csv->err != EW_OK)
        return false;
    while (*csv->rest && skip_line(csv))
        ;
    if (!*csv->rest)
        return false;
    csv->line = csv->next_line;
    while (take(csv))
        ;
    return csv->err == EW_OK;
}

int ew_csv_column(const struct ew_csv *csv, const char *name)
{
    for (int i = 0; i < csv->n; i++)
        if (strcasecmp(csv->cells[i], name) == 0)
            return i;
    return -1;
}
