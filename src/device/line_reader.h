/* SPDX-License-Identifier: Apache-2.0 */
/* Lines read without blocking: from a command's output, a pipe, a growing file, standard input, or
 * a recorded log. */
#ifndef EW_DEVICE_LINE_READER_H
#define EW_DEVICE_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/spawn.h"

#define EW_LINE_READER_BYTES 4096
#define EW_LINE_READER_MOST  ((size_t)1 << 20) /* more than a pipe holds */

struct ew_line_reader {
    int fd;
    struct ew_spawned command; /* pid 0: none */
    bool ended;
    size_t left; /* that may still be read for this reading */
    size_t used;
    char buf[EW_LINE_READER_BYTES];
};

/* `from`: "-", the name of something that exists, else a command for /bin/sh.  A plain file is read
 * from its end (`whole`: from its beginning). */
ew_err ew_line_reader_open(const char *from, bool whole, struct ew_line_reader *f);

/* Begins a reading: EW_LINE_READER_MOST bytes at most, so that what never pauses does not hold it
 * up.
 */
void ew_line_reader_begin(struct ew_line_reader *f);

/* The next whole line without its newline; false if none is available.  Lines longer than the
 * buffer are dropped. */
bool ew_line_reader_next(struct ew_line_reader *f, char *line, size_t size);

/* Waits until there is something to read, at most `ms` milliseconds. */
void ew_line_reader_wait(const struct ew_line_reader *f, int ms);

void ew_line_reader_close(struct ew_line_reader *f); /* ends the command */

#endif
