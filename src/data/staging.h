/* SPDX-License-Identifier: Apache-2.0 */
/* Folders where something is made before it is renamed into place, and programs that help. */
#ifndef EW_DATA_STAGING_H
#define EW_DATA_STAGING_H

#include "data/reader.h"

/* Makes an empty folder in one of ours (base/owned.h), ".name.kind.PID" beside `to`, and the
 * folders above.  Those that ended programs have left are removed. */
ew_err ew_staging_new(const char *to, const char *kind, char path[EW_DATA_PATH]);

/* Removes what ew_staging_new has made; "" and what is not there are fine. */
void ew_staging_remove(const char *path);

/* The path of a download of this set, for which folders are made. */
ew_err ew_staging_downloads(const char *set, const char *name, char path[EW_DATA_PATH]);

/* Removes the set's downloads, or only their folders where they are empty. */
void ew_staging_end_downloads(const char *set, bool keep);

/* Runs a program in `dir` and waits for it; its output goes to the file `out` (NULL: nowhere).
 * Where it fails the message has the last line that it said. */
ew_err ew_staging_run(const char *const *argv, const char *dir, const char *out);

/* The file of `dir` whose name ends so. */
ew_err ew_staging_only(const char *dir, const char *end, char path[EW_DATA_PATH]);

#endif
