/* SPDX-License-Identifier: Apache-2.0 */
/* Folders in the making that may be removed again, because a marker inside says who made them.
 *
 * Nothing else is ever removed as a whole: what a file, an option or a name pattern points to may
 * be somebody's.  The marker names the process, so that one at work is not disturbed, and what a
 * killed one left is cleared away by the next. */
#ifndef EW_BASE_OWNED_H
#define EW_BASE_OWNED_H

#include <stdbool.h>

#include "base/err.h"

#define EW_OWNED_MARK ".edgewise-owned"

/* Makes the folders that `path` lies in, as mkdir -p of its parent. */
ew_err ew_folder_make_parents(const char *path);
/* The same with `path` itself. */
ew_err ew_folder_make(const char *path);

/* Fails where one of these files of a folder is a link, a pipe or a folder: what is written to it
 * would go elsewhere.  The names end with NULL. */
ew_err ew_folder_has_plain(const char *folder, const char *const *names);

/* Holds a folder until *fd is closed; fails where another process does.  Where the file system has
 * no locks nothing is held. */
ew_err ew_folder_lock(const char *path, int *fd);

/* Makes `path` an empty folder of ours.  One that a dead process has left is emptied first; one of
 * a process at work, or one that has no marker and is not empty, is refused. */
ew_err ew_owned_make(const char *path);

/* Removes a folder that ew_owned_make has made, with all that is in it; links are not followed.
 * Leaves everything else as it is: false. */
bool ew_owned_remove(const char *path);

/* Gives what is complete its name; refuses where there is something of that name. */
ew_err ew_owned_publish(const char *from, const char *to);

#endif
