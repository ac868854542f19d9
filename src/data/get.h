/* SPDX-License-Identifier: Apache-2.0 */
/* Public data sets by name: their files and sources, and fetching them. */
#ifndef EW_DATA_GET_H
#define EW_DATA_GET_H

#include "data/data.h"

struct ew_known_file {
    const char *name;
    int64_t size;       /* bytes; 0: unknown */
    const char *sha256; /* NULL: unknown */
    bool optional;
};

struct ew_known_set {
    const char *name, *what;
    int64_t train, test, classes;
    const struct ew_known_file *files; /* terminated by an entry without a name */
    const char *const *urls;           /* base URLs, NULL-terminated, in order of preference */
    const char *archive;               /* archive with all files; NULL: each as name.gz */
    const char *npm;                   /* package and version; NULL: none */
    const char *deb, *deb_dir;         /* Debian package and its folder; NULL: none */
    bool sheets;                       /* the npm package has image sheets (unpack.h) */
};

int ew_known_count(void);
const struct ew_known_set *ew_known_at(int i);
const struct ew_known_set *ew_known_find(const char *name); /* NULL: none */

#define EW_GET_TEXT 160

struct ew_get_result {
    char *path;             /* free() it */
    char from[EW_GET_TEXT]; /* source, as text */
    bool already;           /* it was installed already */
    bool checked;           /* checksums verified; else sizes and structure only */
};

/* Fetches the set into the folder `to` (NULL: its name in ew_dataset_home) from `from`: a folder,
 * an archive, a URL, "package", or NULL: the official source, else the package of its name.  The
 * folder appears complete and checked, or not at all. */
ew_err ew_dataset_get(const char *name, const char *from, const char *to,
                      struct ew_get_result *out);

#endif
