/* SPDX-License-Identifier: Apache-2.0 */
/* A board that is reached by ssh: commands there, files to it and back.  Nothing but a POSIX shell
 * is asked of the board. */
#ifndef EW_CLI_REMOTE_H
#define EW_CLI_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ew_remote {
    const char *host;   /* as ssh takes it: user@board */
    const char *ssh;    /* the program; NULL: $EW_SSH or "ssh" */
    const char *folder; /* on the board, from the home folder */
};

/* Runs a command of the shell there, in the home folder; what it writes to standard output, up to
 * size - 1 bytes, goes to `out`, without white space at its end; its standard error is ours.  Fails
 * where ssh or the command does. */
ew_err ew_remote_run(const struct ew_remote *r, const char *command, char *out, size_t size);

/* Copies a file into the board's folder under this name, marked as a program where `program`.  A
 * file with the same bytes stays; one that was cut off goes on where it was.  *sent, if not NULL,
 * gets the bytes that went. */
ew_err ew_remote_send(const struct ew_remote *r, const char *path, const char *name, bool program,
                      int64_t *sent);

/* Copies a file of the board's folder to `path`, whole or not at all. */
ew_err ew_remote_fetch(const struct ew_remote *r, const char *name, const char *path);

/* The text as one word of a shell, quoted; fails where it does not fit. */
ew_err ew_remote_quote(const char *text, char *out, size_t size);

#endif
