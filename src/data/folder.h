/* SPDX-License-Identifier: Apache-2.0 */
/* The folder reader's file lists; shared by data_folder.c and folder_list.c. */
#ifndef EW_DATA_FOLDER_H
#define EW_DATA_FOLDER_H

#include "data/reader.h"

struct ew_folder_file {
    const char *path; /* below the part's dir */
    int64_t label;
};

struct ew_folder_part {
    const char *dir;
    struct ew_folder_file *files; /* in the data set's arena */
    int64_t n, room;
};

struct ew_folder {
    struct ew_folder_part part[EW_SPLIT_COUNT];
    const char **classes; /* names of the folders or of the list; sorted unless `fixed` */
    int n_classes;
    bool fixed;                       /* classes are from a list: other names are errors */
    int64_t max_label;                /* of numbered lists; -1: none */
    bool (*wanted)(const char *name); /* accepts file names */
    int64_t left_out;                 /* images of formats that are not read */
    const char *left_out_path;        /* one of them */
};

/* Reads classes.txt or tinyImageNet's wnids.txt, if present. */
ew_err ew_folder_read_names(struct ew_dataset *d, struct ew_folder *f);

/* Adds the files of a part: from a folder per class; labels.txt; val_annotations.txt. */
ew_err ew_folder_add_classes(struct ew_dataset *d, struct ew_folder *f, enum ew_split split);
ew_err ew_folder_add_numbered(struct ew_dataset *d, struct ew_folder *f, enum ew_split split);
ew_err ew_folder_add_annotated(struct ew_dataset *d, struct ew_folder *f, enum ew_split split);

/* Adds the images that lie in `dir` itself, without classes. */
ew_err ew_folder_add_unlabelled(struct ew_dataset *d, struct ew_folder *f, const char *dir);

/* Finds the files of all parts below `path`, and counts them in d->info. */
ew_err ew_folder_open_parts(struct ew_dataset *d, struct ew_folder *f, const char *path);

/* Sets the data set's classes, after all parts. */
ew_err ew_folder_name_classes(struct ew_dataset *d, struct ew_folder *f);

#endif
