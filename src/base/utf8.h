/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of UTF-8 text from files, and terminal width. */
#ifndef EW_BASE_UTF8_H
#define EW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the UTF-8 sequence at the first of n > 0 bytes (table 3-7 of the Unicode standard); 0
 * where it is not one, -1 where it may become one with more bytes. */
int ew_utf8_length(const unsigned char *s, size_t n);

/* True for a sequence that could control a terminal: control characters (C0 except newline and tab,
 * DEL, C1), line separators, and bidirectional marks. */
bool ew_utf8_is_control(const unsigned char *s, int length);

/* Terminal columns of the text: 2 for East Asian wide characters and emoji, 0 for combining marks,
 * 4 for each byte that is printed as \xNN (cli/printable.h). */
int ew_utf8_width(const char *text);

/* Bytes of the longest prefix of at most `columns` columns. */
size_t ew_utf8_fit(const char *text, int columns);

/* Replaces control characters (including newlines) and invalid UTF-8 by '?', for names from a
 * board's files. */
void ew_utf8_sanitize(char *text);

#endif
