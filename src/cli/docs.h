/* SPDX-License-Identifier: Apache-2.0 */
/* Output generated from the commands' tables, to stdout: help, man page, completion. */
#ifndef EW_CLI_DOCS_H
#define EW_CLI_DOCS_H

#include "cli/cmd.h"

/* The placeholder of an option's value in help: "FILE"; NULL: it takes none. */
const char *ew_help_value(const struct ew_field *f);
/* The option's help text, with the verbs that it applies to in front. */
void ew_help_text(const struct ew_field *f, char *buf, size_t size);

/* Prints `text` from column `at`, wrapped to the terminal's width; further lines are indented by
 * `indent`. */
void ew_help_wrapped(const char *text, int at, int indent);

/* True for a flag that is on by default: "--no-NAME" turns it off. */
bool ew_help_is_on(const struct ew_field *f);

/* The sections of all commands in roff, for docs/edgewise.1.in. */
void ew_docs_man(void);

/* The complete completion scripts. */
void ew_docs_bash(void);
void ew_docs_zsh(void);
void ew_docs_fish(void);

/* Prints the candidates for the last of these words, which follow "edgewise", one per line;
 * EW_COMPLETE_FILES if file names are possible. */
#define EW_COMPLETE_FILES "<files>"
void ew_complete(int n, const char *const *words);

/* The help of one command, or of all (NULL), as JSON. */
ew_err ew_docs_json(const struct ew_cmd *only);

#endif
