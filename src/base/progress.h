/* SPDX-License-Identifier: Apache-2.0 */
/* A progress line with estimated time left, updated in place; silent without a terminal. */
#ifndef EW_BASE_PROGRESS_H
#define EW_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ew_progress {
    FILE *out; /* NULL: silent */
    const char *what;
    int64_t total, start_ns, shown_ns;
};

/* `out` is usually stderr; nothing is shown unless it is a terminal.  `what` is borrowed. */
void ew_progress_begin(struct ew_progress *p, FILE *out, const char *what, int64_t total);

/* Sets the amount done.  Redraws at most ten times a second. */
void ew_progress_update(struct ew_progress *p, int64_t done);

/* Wipes the line. */
void ew_progress_end(struct ew_progress *p);

/* Columns of the terminal; 80 if unknown. */
int ew_terminal_columns(FILE *out);

/* The line itself: "conformance  40% 428/1072, 0:12 left".  For tests and logs. */
void ew_progress_text(const struct ew_progress *p, int64_t done, int64_t elapsed_ns, char *buf,
                      size_t size);

/* Replaces the terminal's last line by this one, truncated to the present width, since a wrapped
 * line could not be replaced. */
void ew_term_rewrite(FILE *out, const char *text);

/* The descriptor of a stream, also if stdout and stderr are filtered (cli/printable.h). */
int ew_term_fd(FILE *out);

/* Wipes the terminal's line, past such a filter. */
void ew_term_clear_line(FILE *out);

#endif
