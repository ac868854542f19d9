/* SPDX-License-Identifier: Apache-2.0 */
/* Staging folders, which are renamed into place when complete, and running helper programs. */
#ifndef EW_DATA_STAGING_H
#define EW_DATA_STAGING_H

#include "data/reader.h"

/* Creates an empty owned folder (base/owned.h), ".name.kind.PID" beside `to`, and its parents.
 * Removes leftovers of processes that have ended. */
ew_err ew_staging_new(const char *to, const char *kind, char path[EW_DATA_PATH]);

/* Removes a folder of ew_staging_new; "" and a missing one are fine. */
void ew_staging_remove(const char *path);

/* The path of a download for this set; creates its folders. */
ew_err ew_staging_downloads(const char *set, const char *name, char path[EW_DATA_PATH]);

/* Removes the set's downloads, or with `keep` only empty folders. */
void ew_staging_end_downloads(const char *set, bool keep);

/* Runs a program in `dir` and waits for it; its output goes to the file `out` (NULL: nowhere).  The
 * error contains its last line. */
ew_err ew_staging_run(const char *const *argv, const char *dir, const char *out);

/* The only file in `dir` whose name ends in `end`. */
ew_err ew_staging_only(const char *dir, const char *end, char path[EW_DATA_PATH]);

#endif
