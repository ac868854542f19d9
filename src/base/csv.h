/* SPDX-License-Identifier: Apache-2.0 */
/* Reading CSV text (RFC 4180): cells between commas, quoted where they hold commas, quotes or line
 * ends; LF or CRLF; blank lines and lines that begin with '#' are skipped.
 *
 *   struct ew_csv csv;
 *   ew_csv_init(&csv, text, "modes.csv");
 *   while (ew_csv_next(&csv))
 *       use(csv.cells, csv.n);
 *   return csv.err;
 */
#ifndef EW_BASE_CSV_H
#define EW_BASE_CSV_H

#include <stdbool.h>

#include "base/err.h"

#define EW_CSV_CELLS 64

struct ew_csv {
    const char *name;          /* for messages; borrowed */
    char *cells[EW_CSV_CELLS]; /* of this row, without quotes and surrounding blanks */
    int n;
    int line; /* first line of this row, from 1 */
    char *rest;
    int next_line;
    char separator; /* ',' unless ew_csv_guess_separator found another */
    ew_err err;     /* unterminated quote, or too many cells */
};

/* Tokenises `text` in place; it must outlive the cells. */
void ew_csv_init(struct ew_csv *csv, char *text, const char *name);

/* Call before the first row: guesses the separator from the header, semicolon or tab if it has no
 * comma. */
void ew_csv_guess_separator(struct ew_csv *csv);

/* Reads the next row; false at the end and on an error. */
bool ew_csv_next(struct ew_csv *csv);

/* The column called `name` in the current row (the header); -1: none. */
int ew_csv_column(const struct ew_csv *csv, const char *name);

#endif
