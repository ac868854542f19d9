/* SPDX-License-Identifier: Apache-2.0 */
/* The report as one self-contained page: charts, tables, CSV, machines, runs. */
#ifndef EW_REPORT_PAGE_H
#define EW_REPORT_PAGE_H

#include <stdio.h>

#include "report/figure_grid.h"

/* A table of its own before the figures, or after them. */
struct ew_page_table {
    const char *id, *title, *about;
    const struct ew_grid *grid;
    bool after;
};

struct ew_page_opts {
    const char *title;
    const char *about;                  /* NULL: none */
    bool still;                         /* without scripts: static charts */
    const struct ew_grid *compared;     /* a table after the figures; NULL: none */
    const char *sides[2];               /* names of the two sides */
    const struct ew_page_table *tables; /* those without rows are left out */
    int n_tables;
};

/* Writes the page; whether `out` took all is the caller's to check. */
ew_err ew_page_write(const struct ew_results *r, const struct ew_figures *f,
                     const struct ew_page_opts *o, FILE *out);

/* From the doctype to <body>.  Scripts are ours alone: the page's rules name this page's `nonce`,
 * which no text in the results can know. */
void ew_page_head(const char *title, const char *nonce, FILE *out);

/* Parts of it, for a live page: elements to go into <main>. */
ew_err ew_page_figures(const struct ew_figures *f, bool still, FILE *out);
void ew_page_studies(const struct ew_results *r, FILE *out);
void ew_page_machines(const struct ew_results *r, FILE *out);
void ew_page_runs(const struct ew_results *r, FILE *out);

/* The pictures of `eval --mistakes`, as far as they lie below the current folder. */
bool ew_page_has_mistakes(const struct ew_results *r);
void ew_page_mistakes(const struct ew_results *r, FILE *out);

/* The figures as a JSON array for the page's script, in a <script> of its own. */
ew_err ew_page_data(const struct ew_figures *f, FILE *out);

#endif
