/* SPDX-License-Identifier: Apache-2.0 */
/* Reading INI text: [section] lines, `key = value` lines, comments after '#' or ';' at the start of
 * a line and, optionally, after values.
 *
 *   struct ew_ini ini;
 *   ew_ini_init(&ini, text, "nano.ini");
 *   while (ew_ini_next(&ini))
 *       use(ini.section, ini.key, ini.value);
 *   return ini.err; */
#ifndef EW_BASE_INI_H
#define EW_BASE_INI_H

#include <stdbool.h>

#include "base/err.h"

struct ew_ini {
    const char *name;    /* for messages; borrowed */
    const char *section; /* "" before the first [section]; all three point into the text */
    const char *key;     /* NULL: start of the section */
    char *value;
    int line;
    char *rest;
    bool notes; /* set after init: white space and '#' after a value start a comment, except inside
                 * "" */
    ew_err err; /* a malformed line */
};

/* Tokenises `text` in place; it must outlive the results. */
void ew_ini_init(struct ew_ini *ini, char *text, const char *name);

/* Reads the next section or key; false at the end and on an error. */
bool ew_ini_next(struct ew_ini *ini);

#endif
