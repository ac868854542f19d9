/* SPDX-License-Identifier: Apache-2.0 */
/* Making and removing folders. */
#include "study/paths.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_CHARS 1024

ew_err ew_path_make_folders(const char *path)
{
    char part[PATH_CHARS];
    EW_CHECK(strlen(path) < sizeof(part), EW_ERR_LIMIT, "%.60s...: the path is too long", path);
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        EW_CHECK(mkdir(part, 0777) == 0 || errno == EEXIST, EW_ERR_IO, "%s: %s", part,
                 strerror(errno));
    }
    return EW_OK;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    return remove(path);
}

void ew_path_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
