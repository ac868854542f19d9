/* SPDX-License-Identifier: Apache-2.0 */
/* Options that say how images become a network's input, and names of its classes. */
#ifndef EW_CLI_IMAGE_OPTS_H
#define EW_CLI_IMAGE_OPTS_H

#include "base/field.h"
#include "base/mem.h"
#include "format/image_input.h"

struct ew_image_opts {
    const char *mean, *std; /* as given; NULL: 0 and 1 */
    int64_t resize;
    const char *labels; /* file; NULL: none */
};

/* clang-format off */
/* Rows of a command's option table for `part`, a struct ew_image_opts in struct `owner`. */
#define EW_IMAGE_FIELDS(owner, part)                                                               \
    {.name = "labels", .type = EW_FIELD_STR, .offset = offsetof(owner, part.labels),               \
     .metavar = "FILE", .help = "names of the classes, one a line"},                               \
    {.name = "mean", .type = EW_FIELD_STR, .offset = offsetof(owner, part.mean),                   \
     .metavar = "M,M,M",                                                                           \
     .help = "images: subtracted, by channel; \"imagenet\" sets mean and std"},                    \
    {.name = "std", .type = EW_FIELD_STR, .offset = offsetof(owner, part.std),                     \
     .metavar = "D,D,D", .help = "images: divided by, by channel"},                                \
    {.name = "resize", .type = EW_FIELD_INT, .offset = offsetof(owner, part.resize), .def = "0",   \
     .min = 0, .max = 65536, .metavar = "PIXELS",                                                  \
     .help = "images: the shorter side before the middle is taken; 0: as it is"}
/* clang-format on */

/* Fills in what is given; the rest of `out` (scale and layout too) stays as it is. */
ew_err ew_image_opts_read(const struct ew_image_opts *o, struct ew_image_prep *out);

/* The lines of the file, in the arena; none where there is no file. */
ew_err ew_labels_read(const char *path, struct ew_arena *a, const char *const **list, int *n);

#endif
