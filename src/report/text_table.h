/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and numbers for the terminal.
 *
 *   struct ew_table t;
 *   ew_table_init(&t, "lr");              one letter per column: left or right
 *   ew_table_cell(&t, "name");            the first row is the heading
 *   ew_table_cell(&t, "parameters");
 *   ...
 *   return ew_table_print(&t, stdout);
 *
 * Failures stick and are reported by print, which also releases all. */
#ifndef EW_REPORT_TEXT_TABLE_H
#define EW_REPORT_TEXT_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "base/mem.h"

struct ew_table {
    struct ew_arena arena;
    const char *align; /* borrowed */
    const char **cells;
    int n_cells, cap_cells;
    ew_err err;
};

void ew_table_init(struct ew_table *t, const char *align);
/* The next cell, row by row. */
void ew_table_cell(struct ew_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ew_table_count(struct ew_table *t, int64_t n); /* as ew_text_count; 0 is left empty */
/* Fits the table to a terminal's width; other outputs get all columns side by side. */
ew_err ew_table_print(struct ew_table *t, FILE *out);
/* The same for so many columns of a terminal, 0: any number.  A table that is too wide gets its
 * texts cut ("…"), then goes on below itself with the first column repeated: no column is left out.
 */
ew_err ew_table_print_fit(struct ew_table *t, FILE *out, int columns);

#define EW_TEXT_CHARS 32
/* "25,557,032"; returns buf. */
const char *ew_text_count(int64_t n, char buf[EW_TEXT_CHARS]);
/* "97.7 MiB" in powers of 1024; returns buf. */
const char *ew_text_bytes(int64_t n, char buf[EW_TEXT_CHARS]);
/* Milliseconds with more decimals for short times: "7.518", "0.1542", "0.01542"; returns buf. */
const char *ew_text_ms(double ms, char buf[EW_TEXT_CHARS]);
/* The word for samples: clips for data sets with frames and networks with input [N, T, H, W, C],
 * else images. */
static inline const char *ew_text_samples(bool clips)
{
    return clips ? "clips" : "images";
}

#endif
