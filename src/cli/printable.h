/* SPDX-License-Identifier: Apache-2.0 */
/* Filter of all output: names from files may contain terminal control sequences.
 *
 * Control characters and invalid UTF-8 are printed as \xNN on standard output and error, for all
 * commands, whether or not the output is a terminal.  The program's own sequences bypass the
 * filter: redrawn lines (ew_term_clear_line), and the screen of `monitor`. */
#ifndef EW_CLI_PRINTABLE_H
#define EW_CLI_PRINTABLE_H

#include <stdbool.h>

/* Installs the filters on stdout and stderr. */
void ew_printable_begin(void);

/* Turns the filter of stdout off, or on again: for a screen with our own text only. */
void ew_printable_raw(bool raw);

#endif
