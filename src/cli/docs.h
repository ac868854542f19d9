/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands' tables turn into: help on the terminal, man page, completion.  To stdout. */
#ifndef EW_CLI_DOCS_H
#define EW_CLI_DOCS_H

#include "cli/cmd.h"

/* What an option's value is called in help: "FILE"; NULL where it takes none. */
const char *ew_help_value(const struct ew_field *f);
/* Its help, with the verbs that it is for in front. */
void ew_help_text(const struct ew_field *f, char *buf, size_t size);

/* Prints `text` from column `at` on, broken at spaces to the terminal's width; further lines are
 * indented by `indent`. */
void ew_help_wrapped(const char *text, int at, int indent);

/* True for a flag that is on unless "--no-NAME" says otherwise. */
bool ew_help_is_on(const struct ew_field *f);

/* The sections of all commands in roff; docs/edgewise.1.in is the page around them. */
void ew_docs_man(void);

/* The completions, whole. */
void ew_docs_bash(void);
void ew_docs_zsh(void);
void ew_docs_fish(void);

/* What may stand in the place of the last of these words, which follow "edgewise": one a line;
 * EW_COMPLETE_FILES where files may too. */
#define EW_COMPLETE_FILES "<files>"
void ew_complete(int n, const char *const *words);

/* One command, or all of them (NULL). */
ew_err ew_docs_json(const struct ew_cmd *only);

#endif
