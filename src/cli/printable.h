/* SPDX-License-Identifier: Apache-2.0 */
/* What the program prints passes here: names from files may hold terminal control sequences.
 *
 * Bytes of controls and of what is not UTF-8 come out as \xNN, on standard output and error, for
 * every command and whatever reads them.  The program's own sequences go around it: lines that are
 * drawn again (ew_term_clear_line), and the screen of `monitor`. */
#ifndef EW_CLI_PRINTABLE_H
#define EW_CLI_PRINTABLE_H

#include <stdbool.h>

/* From here on stdout and stderr are filtered. */
void ew_printable_begin(void);

/* Lets stdout through as it is, or no longer: for a screen all of whose text is our own. */
void ew_printable_raw(bool raw);

#endif
