/* SPDX-License-Identifier: Apache-2.0 */
/* Lines read without blocking: from a command's output, a pipe, a growing file, standard input, or
 * a recorded log. */
#ifndef EW_DEVICE_FEED_H
#define EW_DEVICE_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/spawn.h"

#define EW_FEED_BYTES   4096
#define EW_FEED_AT_ONCE ((size_t)1 << 20) /* more than a pipe holds */

struct ew_feed {
    int fd;
    struct ew_spawned command; /* pid 0: none */
    bool ended;
    size_t left; /* that may still be read for this reading */
    size_t used;
    char buf[EW_FEED_BYTES];
};

/* `from`: "-", the name of something that exists, else a command for /bin/sh.  A plain file is read
 * from its end (`whole`: from its beginning). */
ew_err ew_feed_open(const char *from, bool whole, struct ew_feed *f);

/* Begins a reading: EW_FEED_AT_ONCE bytes at most, so that what never pauses does not hold it up.
 */
void ew_feed_begin(struct ew_feed *f);

/* The next whole line without its newline; false if none is available.  Lines longer than the
 * buffer are dropped. */
bool ew_feed_line(struct ew_feed *f, char *line, size_t size);

/* Waits until there is something to read, at most `ms` milliseconds. */
void ew_feed_wait(const struct ew_feed *f, int ms);

void ew_feed_close(struct ew_feed *f); /* ends the command */

#endif
