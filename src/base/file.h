/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole files, with a size limit, and replacing files atomically.  Messages contain the
 * path.  Files under a board's root are read by base/rootfs.h. */
#ifndef EW_BASE_FILE_H
#define EW_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Opens a regular file for reading; refuses pipes, devices and folders, without blocking.  For all
 * paths given by users or found in folders. */
ew_err ew_file_open(const char *path, int *fd);

/* Reads the first bytes of a regular file, up to `room`; returns their number, 0 if it cannot be
 * read. */
size_t ew_file_head(const char *path, void *to, size_t room);

/* Reads all of `path`, at most `limit` bytes, and appends a NUL, which *size does not include. Free
 * with free().  EW_ERR_NOT_FOUND, EW_ERR_LIMIT, EW_ERR_IO; EW_ERR_MEMORY also for lack of
 * descriptors. */
ew_err ew_file_read(const char *path, size_t limit, char **data, size_t *size);

/* The same from an open descriptor, owned by the caller; `name` is for messages. */
ew_err ew_file_read_fd(int fd, const char *name, size_t limit, char **data, size_t *size);

/* Writes a whole file atomically. */
ew_err ew_file_write(const char *path, const void *data, size_t size);

/* An atomic write: to a temporary file in the same folder, which commit syncs and renames.  Special
 * files (a pipe, /dev/null) are written directly. */
struct ew_file_out {
    FILE *f;
    char *path, *temp; /* temp: NULL: written directly */
};

/* Opens a file for an atomic write.  Removes temporary files of killed processes that have the name
 * it tries. */
ew_err ew_file_out_open(const char *path, struct ew_file_out *o);

/* The same in a run's folder: a symbolic link or pipe of this name is replaced, not followed:
 * others may be able to write to the folder and redirect our writes. */
ew_err ew_file_out_replace(const char *path, struct ew_file_out *o);
ew_err ew_file_replace(const char *path, const void *data, size_t size);
ew_err ew_file_out_commit(struct ew_file_out *o); /* frees everything, also on failure */
/* Commits a file and the one that it refers to.  The old file is removed before the new `beside`
 * appears, so that it is never read with that; if one cannot be written, both stay as they were. */
ew_err ew_file_out_commit_both(struct ew_file_out *beside, struct ew_file_out *o);
void ew_file_out_abort(struct ew_file_out *o); /* removes the temporary file; fine after commit */

/* Fails if the file could not be written; to be called before long work. */
ew_err ew_file_out_check(const char *path);

/* Removes all temporary files of killed processes for this file; those in use are locked. */
void ew_file_sweep(const char *path);

/* Closes a stream of open_memstream; false, with *text NULL, if memory ran out (which glibc's
 * fclose does not report). */
bool ew_memstream_close(FILE *f, char **text);

#endif
