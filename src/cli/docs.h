/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands' tables turn into: help on the terminal, man page, completion.  To stdout. */
#ifndef EW_CLI_DOCS_H
#define EW_CLI_DOCS_H

#include "cli/cmd.h"

/* What an option's value is called in help: "FILE"; NULL where it takes none. */
const char *ew_help_value(const struct ew_field *f);

/* True for a flag that is on unless "--no-NAME" says otherwise. */
bool ew_help_is_on(const struct ew_field *f);

/* The sections of all commands in roff; docs/edgewise.1.in is the page around them. */
void ew_docs_man(void);

/* The bash completion, whole. */
void ew_docs_bash(void);

#endif
