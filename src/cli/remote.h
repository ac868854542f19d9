/* SPDX-License-Identifier: Apache-2.0 */
/* A board reached by ssh: running commands, copying files.  The board only needs a POSIX shell. */
#ifndef EW_CLI_REMOTE_H
#define EW_CLI_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct ew_remote {
    const char *host;   /* as ssh takes it: user@board */
    const char *ssh;    /* the program; NULL: $EW_SSH or "ssh" */
    const char *folder; /* on the board, relative to the home folder */
};

/* Runs a shell command in the home folder; its standard output, up to size - 1 bytes, goes to
 * `out`, without trailing white space; its standard error is ours.  Fails if ssh or the command
 * fails. */
ew_err ew_remote_run(const struct ew_remote *r, const char *command, char *out, size_t size);

/* Copies a file into the board's folder under this name, executable if `program`.  An identical
 * file is not sent again; an interrupted copy continues where it stopped.  *sent, if not NULL, gets
 * the bytes sent. */
ew_err ew_remote_send(const struct ew_remote *r, const char *path, const char *name, bool program,
                      int64_t *sent);

/* Copies a file of the board's folder to `path`, atomically. */
ew_err ew_remote_fetch(const struct ew_remote *r, const char *name, const char *path);

/* Quotes the text as one word of the shell; fails if it does not fit. */
ew_err ew_remote_quote(const char *text, char *out, size_t size);

#endif
