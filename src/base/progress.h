/* SPDX-License-Identifier: Apache-2.0 */
/* One line of progress with the time left, rewritten in place; silent where there is no terminal.
 */
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

/* So many of the total are done.  Redraws ten times a second at most. */
void ew_progress_update(struct ew_progress *p, int64_t done);

/* Wipes the line. */
void ew_progress_end(struct ew_progress *p);

/* Columns of the terminal, 80 where that is not known. */
int ew_terminal_columns(FILE *out);

/* The line itself: "conformance  40% 428/1072, 0:12 left".  For tests and logs. */
void ew_progress_text(const struct ew_progress *p, int64_t done, int64_t elapsed_ns, char *buf,
                      size_t size);

/* Puts one line in the place of the terminal's last one, cut to its width as it is now: a line that
 * wraps could not be rewritten. */
void ew_term_rewrite(FILE *out, const char *text);

/* The descriptor behind a stream, also where stdout and stderr are filtered (cli/printable.h). */
int ew_term_fd(FILE *out);

/* Wipes the terminal's line, past such a filter. */
void ew_term_clear_line(FILE *out);

#endif
