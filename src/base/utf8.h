/* SPDX-License-Identifier: Apache-2.0 */
/* Text from files: whether bytes are UTF-8, and whether a terminal may see them. */
#ifndef EW_BASE_UTF8_H
#define EW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the UTF-8 sequence at the first of n > 0 bytes (table 3-7 of the Unicode standard); 0
 * where it is not one, -1 where it may become one with more bytes. */
int ew_utf8_length(const unsigned char *s, size_t n);

/* A sequence of this length that does something to a terminal instead of standing there: controls
 * (C0 but for new line and tab, DEL, C1), line separators, and marks that turn the direction of
 * text. */
bool ew_utf8_is_control(const unsigned char *s, int length);

/* Columns of a terminal that the text takes: 2 for East Asian wide characters and emoji, 0 for
 * combining marks, 4 for each byte that is printed as \xNN (cli/printable.h). */
int ew_utf8_width(const char *text);

/* Bytes of the longest beginning of the text that takes at most `columns`. */
size_t ew_utf8_fit(const char *text, int columns);

/* Puts '?' in the place of controls, new lines included, and of what is not UTF-8: for names of
 * things that a board's files tell. */
void ew_utf8_tame(char *text);

#endif
