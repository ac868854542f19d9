/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary folders that may be removed, since a marker inside records their owner.
 *
 * No other folder is ever removed recursively: a path from a file, an option or a pattern may be a
 * user's.  The marker names the process, so that a running one is not disturbed, and the leftovers
 * of a killed one are removed by the next. */
#ifndef EW_BASE_OWNED_H
#define EW_BASE_OWNED_H

#include <stdbool.h>

#include "base/err.h"

#define EW_OWNED_MARK ".edgewise-owned"

/* mkdir -p of the parent of `path`. */
ew_err ew_folder_make_parents(const char *path);
/* mkdir -p of `path`. */
ew_err ew_folder_make(const char *path);

/* Fails if one of these files of a folder is a symbolic link, a pipe or a folder, which would
 * redirect writes.  The names are NULL-terminated. */
ew_err ew_folder_has_plain(const char *folder, const char *const *names);

/* Locks a folder until *fd is closed; fails if another process holds the lock.  Does nothing if the
 * file system has no locks. */
ew_err ew_folder_lock(const char *path, int *fd);

/* Makes `path` an empty owned folder.  One left by a dead process is emptied; one in use, or
 * non-empty without a marker, is an error. */
ew_err ew_owned_make(const char *path);

/* Recursively removes a folder made by ew_owned_make, without following links.  False: not owned,
 * and left unchanged. */
bool ew_owned_remove(const char *path);

/* Removes a folder whose process was killed before the marker was in place, or after it was
 * removed. False: it contains more than an unfinished marker, and is left unchanged. */
bool ew_owned_remove_unmarked(const char *path);

/* Marks a new or empty folder of the user's while it is filled; what an interrupted process has
 * left there is removed first.  A non-empty folder without a marker is an error. */
ew_err ew_owned_fill(const char *path);

/* Removes the marker, and if the contents are not whole, those too. */
void ew_owned_filled(const char *path, bool whole);

/* Renames a completed folder; fails if the target exists. */
ew_err ew_owned_publish(const char *from, const char *to);

#endif
