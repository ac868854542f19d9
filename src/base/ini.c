/* SPDX-License-Identifier: Apache-2.0 */
/* Reading INI text. */
#include "base/ini.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

/* The text without the white space around it. */
static char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n > 0 && isspace((unsigned char)s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

void ew_ini_init(struct ew_ini *ini, char *text, const char *name)
{
    const size_t mark = strncmp(text, EW_BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
    *ini = (struct ew_ini){.name = name, .section = "", .rest = text + mark};
}

static bool bad_line(struct ew_ini *ini, const char *line)
{
    ini->err = ew_fail(EW_ERR_FORMAT, "%s:%d: '%.60s' is neither [section] nor key = value",
                       ini->name, ini->line, line);
    return false;
}

static bool read_section(struct ew_ini *ini, char *line)
{
    const size_t n = strlen(line);
    if (n < 3 || line[n - 1] != ']')
        return bad_line(ini, line);
    line[n - 1] = '\0';
    ini->section = trim(line + 1);
    ini->key = NULL;
    ini->value = NULL;
    return true;
}

static void cut_note(char *value)
{
    bool quoted = false;
    for (char *p = value; *p; p++) {
        quoted ^= *p == '"';
        if (!quoted && *p == '#' && p > value && isspace((unsigned char)p[-1])) {
            *p = '\0';
            return;
        }
    }
}

bool ew_ini_next(struct ew_ini *ini)
{
    while (ini->err == EW_OK && *ini->rest) {
        char *line = ini->rest;
        ini->rest += strcspn(ini->rest, "\n");
        if (*ini->rest)
            *ini->rest++ = '\0';
        ini->line++;
        line = trim(line);
        if (!*line || *line == '#' || *line == ';')
            continue;
        if (*line == '[')
            return read_section(ini, line);
        char *equals = strchr(line, '=');
        if (!equals || equals == line)
            return bad_line(ini, line);
        *equals = '\0';
        if (ini->notes)
            cut_note(equals + 1);
        ini->key = trim(line);
        ini->value = trim(equals + 1);
        return true;
    }
    return false;
}
