/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: read with a limit, written so that a reader sees the old one or the new one, never
 * half. Messages name the path.  Files under a board's root are read by base/rootfs.h. */
#ifndef EW_BASE_FILE_H
#define EW_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Opens a regular file to read; pipes, devices and folders are refused, and nothing waits for them.
 * Whatever a user or a folder names is opened so. */
ew_err ew_file_open(const char *path, int *fd);

/* The first bytes of a regular file, up to `room`: how many there are, 0 where it cannot be read.
 */
size_t ew_file_head(const char *path, void *to, size_t room);

/* Reads all of `path`, at most `limit` bytes, and adds a NUL that *size does not count.  Release
 * with free().  EW_ERR_NOT_FOUND, EW_ERR_LIMIT, EW_ERR_IO. */
ew_err ew_file_read(const char *path, size_t limit, char **data, size_t *size);

/* The same from an open descriptor, which stays the caller's; `name` is for messages. */
ew_err ew_file_read_fd(int fd, const char *name, size_t limit, char **data, size_t *size);

/* Writes a whole file as below. */
ew_err ew_file_write(const char *path, const void *data, size_t size);

/* A file in the making: written under another name in the same folder, synced and renamed by
 * commit. What is no plain file (a pipe, /dev/null) is written directly. */
struct ew_file_out {
    FILE *f;
    char *path, *temp; /* temp: NULL where written directly */
};

/* Removes what a killed process left of the same file under the name that it tries. */
ew_err ew_file_out_open(const char *path, struct ew_file_out *o);

/* The same in a folder of the program's own (a run's): a link of this name, or a pipe, is replaced.
 * Whoever may write there could otherwise have us write whatever file of ours he likes. */
ew_err ew_file_out_replace(const char *path, struct ew_file_out *o);
ew_err ew_file_replace(const char *path, const void *data, size_t size);
ew_err ew_file_out_commit(struct ew_file_out *o); /* always releases everything */
void ew_file_out_abort(struct ew_file_out *o);    /* leaves no trace; fine after commit */

/* Fails where a file of this name could not be written: asked before long work, which it would
 * end. */
ew_err ew_file_out_check(const char *path);

/* Removes all that killed processes have left of files in the making of this name, and nothing
 * else: those of processes at work are locked. */
void ew_file_sweep(const char *path);

/* Closes a stream of open_memstream: false where memory was short, and then *text is NULL. (glibc's
 * fclose succeeds even where it could not make the text.) */
bool ew_memstream_close(FILE *f, char **text);

#endif
