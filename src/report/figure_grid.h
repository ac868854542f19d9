/* SPDX-License-Identifier: Apache-2.0 */
/* A figure's table as text, and the ways to write it. */
#ifndef EW_REPORT_FIGURE_GRID_H
#define EW_REPORT_FIGURE_GRID_H

#include <stdio.h>

#include "report/figure.h"

/* Rows of cells, the heading first; texts are the arena's or the figure's. */
struct ew_grid {
    struct ew_arena arena;
    const char **cells;
    int cols, n, cap; /* n: cells */
    bool number[80];  /* the column is set to the right */
};

void ew_grid_init(struct ew_grid *g);
void ew_grid_fini(struct ew_grid *g);
/* Headings come first; `number` sets the column to the right. */
ew_err ew_grid_head(struct ew_grid *g, bool number, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
ew_err ew_grid_cell(struct ew_grid *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
ew_err ew_grid_put(struct ew_grid *g, const char *text); /* borrowed */

void ew_grid_csv(const struct ew_grid *g, FILE *out); /* RFC 4180 */
void ew_grid_markdown(const struct ew_grid *g, FILE *out);
void ew_grid_html(const struct ew_grid *g, FILE *out);
/* For the terminal; `bars` has a text for each row, NULL: none. */
ew_err ew_grid_text(const struct ew_grid *g, const char *const *bars, FILE *out);

/* Text without control characters, and so that Markdown takes it as text. */
void ew_text_plain(const char *text, FILE *out);
void ew_text_markdown(const char *text, FILE *out);

/* For people ("12.5 ± 0.3"), or `exact`: for other programs, every number in a column of its own
 * with all its digits.  Release with fini. */
ew_err ew_figure_grid(const struct ew_figure *f, bool exact, struct ew_grid *g);

/* The exact one. */
ew_err ew_figure_csv(const struct ew_figure *f, FILE *out);

/* The one for people: a heading, a table with small bars, what is to be known beside it. */
ew_err ew_figure_text(const struct ew_figure *f, FILE *out);
ew_err ew_figure_markdown(const struct ew_figure *f, FILE *out);

/* "3 runs, 1 of them noisy; whiskers: one standard deviation" and the like, in full sentences; with
 * the quality, where it is the same for all, unless it stands elsewhere. */
void ew_figure_note(const struct ew_figure *f, bool quality, FILE *out);

#endif
