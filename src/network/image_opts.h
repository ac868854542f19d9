/* SPDX-License-Identifier: Apache-2.0 */
/* Options that say how images become a network's input, and names of its classes. */
#ifndef EW_NETWORK_IMAGE_OPTS_H
#define EW_NETWORK_IMAGE_OPTS_H

#include "base/field.h"
#include "base/mem.h"
#include "format/image_card.h"

struct ew_image_opts {
    const char *mean, *std; /* as given; NULL: the network's */
    int64_t resize;         /* 0: the network's */
    double scale;           /* factor of pixels before mean and std; 0: 1 / 255 */
    const char *names;      /* of classes: a file or "imagenet"; NULL: the network's */
};

/* clang-format off */
/* Rows of a command's option table for `part`, a struct ew_image_opts in struct `owner`. */
#define EW_PREPROCESS_FIELDS(owner, part)                                                          \
    {.name = "mean", .type = EW_FIELD_STR, .offset = offsetof(owner, part.mean),                   \
     .metavar = "M,M,M",                                                                           \
     .help = "mean to subtract from pixels in [0, 1], for each channel; \"imagenet\" sets mean "   \
     "and std; default: stored in the file"},                                                      \
    {.name = "std", .type = EW_FIELD_STR, .offset = offsetof(owner, part.std),                     \
     .metavar = "D,D,D",                                                                           \
     .help = "standard deviation to divide pixels by, for each channel; default: stored in the "   \
     "file"},                                                                                      \
    {.name = "resize", .type = EW_FIELD_INT, .offset = offsetof(owner, part.resize), .min = 1,     \
     .max = EW_RESIZE_MAX, .metavar = "PIXELS",                                                    \
     .help = "resize the shorter side to this before the centre crop; default: stored in the "     \
     "file, else the input's side / 0.875"},                                                       \
    {.name = "scale", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.scale), .min = 1e-9,  \
     .max = 1e9, .metavar = "S",                                                                   \
     .help = "factor for pixel values (0 to 255) before mean and std; default: 1/255; 1 for "      \
     "networks that take 0 to 255"}
#define EW_CLASS_NAMES_FIELD(owner, part)                                                          \
    {.name = "class-names", .also = "labels", .type = EW_FIELD_STR,                                \
     .offset = offsetof(owner, part.names), .metavar = "FILE|imagenet",                            \
     .help = "names of the classes, one per line, or the 1,000 of ImageNet; default: stored in "   \
     "the file"}
/* clang-format on */

struct ew_graph;

/* Entries of the network's first output for each image, if they are a row of scores; else 0. */
int64_t ew_image_opts_classes(const struct ew_graph *g);
/* Overrides the network's own preprocessing by the given options. */
ew_err ew_image_opts_preprocess(const struct ew_image_opts *o, struct ew_preprocess *p);
/* Overrides the network's own preprocessing and classes by the given options; names go to the
 * arena, and are as many as the graph's classes, if there is one. */
ew_err ew_image_opts_apply(const struct ew_image_opts *o, const struct ew_graph *g,
                           struct ew_arena *a, struct ew_image_card *card);

#endif
