/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a reader: one file data_<name>.c, whose descriptor `const struct ew_reader
 * ew_data_<name>` is the last thing in it.  The build collects them. */
#ifndef EW_DATA_READER_H
#define EW_DATA_READER_H

#include "base/mem.h"
#include "data/data.h"

struct ew_dataset {
    struct ew_dataset_info info; /* name and path are filled before open, the rest by it */
    const struct ew_reader *reader;
    const char *const *class_names; /* NULL after the reader's open: numbers */
    const char *spec;               /* what follows "name:"; "" where nothing does */
    void *state;                    /* the reader's */
    struct ew_arena arena;          /* for all of the above */
};

struct ew_reader {
    const char *name;   /* never changes */
    const char *layout; /* what it reads, for `data list` and messages */

    /* The path (a folder or a file) looks like this layout.  Nothing is kept open.  NULL: the data
     * set is opened by the reader's name alone. */
    bool (*knows)(const char *path);
    bool last; /* asked when no other reader knows the path */

    /* Fills info and state from d->info.path, memory from d->arena; checks all that can be checked
     * without reading every sample.  Where it fails `close` is not called. */
    ew_err (*open)(struct ew_dataset *d);

    /* Reads sample i, already checked against the count, into s->raw; sets label, position,
     * bytes_read and ops_read, and either `encoded` or the pixels' geometry.  Any thread. */
    ew_err (*fetch)(const struct ew_dataset *d, enum ew_split split, int64_t i,
                    struct ew_sample *s);

    /* Pixels that are neither a plain array nor PNG or JPEG; NULL: they are. */
    ew_err (*decode)(const struct ew_dataset *d, struct ew_sample *s);

    /* The next of the files (from 0) that a split lies in, for the page cache; false: no more.
     * `path` has EW_DATA_PATH bytes.  NULL: nothing on disk. */
    bool (*file)(const struct ew_dataset *d, enum ew_split split, int64_t k, char *path);

    void (*close)(struct ew_dataset *d); /* files; NULL: nothing to close */
};

/* ---- For readers ----------------------------------------------------------------------------- */

/* s->raw holds one plain array: [h, w, c] or, `planar`, [c, h, w]. */
void ew_sample_plain(struct ew_sample *s, const int64_t size[3], bool planar);

/* info.classes and d->class_names = a copy of these. */
ew_err ew_dataset_name_classes(struct ew_dataset *d, const char *const *names, int64_t n);

/* Classes without names are called by their numbers. */
void ew_dataset_number_classes(struct ew_dataset *d);

/* Names from a text file, one name a line; *found = false where there is none. */
ew_err ew_dataset_read_names(struct ew_dataset *d, const char *path, bool *found);

#define EW_DATA_PATH 4096

/* "dir/name" into path; false where it is too long. */
bool ew_data_join(char path[EW_DATA_PATH], const char *dir, const char *name);

/* The first of `dirs` (NULL-terminated, below `path`; "" is itself) that has a file `name`; its
 * path with that folder.  False: none has. */
bool ew_data_find_dir(const char *path, const char *const *dirs, const char *name,
                      char dir[EW_DATA_PATH]);

#endif
