/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that a study makes and removes. */
#ifndef EW_STUDY_PATHS_H
#define EW_STUDY_PATHS_H

#include "base/err.h"

/* Makes the folders that `path` lies in. */
ew_err ew_path_make_folders(const char *path);

/* Removes a file, or a folder with all that is in it; links are not followed.  Nothing there is
 * fine. */
void ew_path_remove(const char *path);

#endif
