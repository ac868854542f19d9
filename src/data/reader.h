/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a reader of data sets: one file data_<name>.c that ends in the descriptor `const
 * struct ew_reader ew_data_<name>`.  The build collects them. */
#ifndef EW_DATA_READER_H
#define EW_DATA_READER_H

#include "base/mem.h"
#include "data/data.h"

struct ew_dataset {
    struct ew_dataset_info info; /* name and path are set before open, the rest by it */
    const struct ew_reader *reader;
    const char *const *class_names; /* NULL: numbers */
    const char *spec;               /* text after "name:", or "" */
    void *state;                    /* the reader's */
    struct ew_arena arena;          /* for all of the above */
};

struct ew_reader {
    const char *name;   /* never changes */
    const char *layout; /* description of the layout, for `data list` and messages */

    /* True if the path (a folder or file) looks like this layout.  NULL: opened by the reader's
     * name only. */
    bool (*knows)(const char *path);
    bool last; /* try after all other readers */

    /* Fills info and state from d->info.path, with memory from d->arena; checks what can be checked
     * without reading every sample.  After a failure `close` is not called. */
    ew_err (*open)(struct ew_dataset *d);

    /* Reads sample i, already checked against the count, into s->raw; sets label, position,
     * bytes_read and ops_read, and either `encoded` or the pixels' geometry.  Any thread. */
    ew_err (*fetch)(const struct ew_dataset *d, enum ew_split split, int64_t i,
                    struct ew_sample *s);

    /* Decodes other formats than plain arrays, PNG and JPEG; NULL: not needed. */
    ew_err (*decode)(const struct ew_dataset *d, struct ew_sample *s);

    /* File k (from 0) of a split, for page cache statistics; false: no more.  `path` has
     * EW_DATA_PATH bytes.  NULL: nothing on disk. */
    bool (*file)(const struct ew_dataset *d, enum ew_split split, int64_t k, char *path);

    void (*close)(struct ew_dataset *d); /* NULL: nothing to close */
};

/* ---- For readers ----------------------------------------------------------------------------- */

/* Sets the geometry of a plain array in s->raw: [h, w, c] or, if `planar`, [c, h, w]. */
void ew_sample_plain(struct ew_sample *s, const int64_t size[3], bool planar);

/* Sets info.classes, and d->class_names to a copy of the names. */
ew_err ew_dataset_name_classes(struct ew_dataset *d, const char *const *names, int64_t n);

/* Names classes by their numbers. */
void ew_dataset_number_classes(struct ew_dataset *d);

/* Reads class names from a text file, one per line; *found = false: no such file. */
ew_err ew_dataset_read_names(struct ew_dataset *d, const char *path, bool *found);

#define EW_DATA_PATH 4096

/* path = "dir/name"; false: too long. */
bool ew_data_join(char path[EW_DATA_PATH], const char *dir, const char *name);

/* Finds the first of `dirs` (NULL-terminated, relative to `path`; "": `path` itself) with a file
 * `name`; false: none. */
bool ew_data_find_dir(const char *path, const char *const *dirs, const char *name,
                      char dir[EW_DATA_PATH]);

#endif
