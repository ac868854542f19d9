/* SPDX-License-Identifier: Apache-2.0 */
/* The network that a command works on: NAME of the zoo, FILE.onnx or a checkpoint, and the options
 * that shape it. */
#ifndef EW_CLI_NETWORK_H
#define EW_CLI_NETWORK_H

#include "base/field.h"
#include "graph/graph.h"

struct ew_network_opts {
    struct ew_ints input; /* H, W, C; empty: the network's own */
    int64_t classes;      /* 0: the network's own */
    double width;
    int64_t batch;
};

/* clang-format off */
/* Rows of a command's option table for `part`, a struct ew_network_opts in struct `owner`; the
 * first is for commands that have a batch of their own. */
#define EW_NETWORK_SIZE_FIELDS(owner, part)                                                        \
    {.name = "input", .type = EW_FIELD_INTS, .offset = offsetof(owner, part.input), .min = 1,      \
     .max = 65536, .metavar = "HxWxC", .help = "size of the input; default: the network's own"},   \
    {.name = "classes", .type = EW_FIELD_INT, .offset = offsetof(owner, part.classes), .min = 1,   \
     .max = 1048576, .metavar = "K", .help = "number of classes; default: the network's own"},     \
    {.name = "width", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.width), .def = "1",   \
     .min = 0.001, .max = 1000, .metavar = "R",                                                    \
     .help = "every filter count becomes trunc(count x R)"}
#define EW_NETWORK_FIELDS(owner, part)                                                             \
    EW_NETWORK_SIZE_FIELDS(owner, part),                                                           \
    {.name = "batch", .type = EW_FIELD_INT, .offset = offsetof(owner, part.batch), .def = "1",     \
     .min = 1, .max = 1048576, .metavar = "B", .help = "images at a time"}
/* clang-format on */

/* True where `what` names a file rather than a network of the zoo. */
bool ew_network_is_file(const char *what);

/* Fails where the file is not there, or not what its name says. */
ew_err ew_network_check_file(const char *path);

/* Builds or reads it, at the batch asked for; release with ew_graph_free.  Networks of the zoo have
 * no values in their parameters yet. */
ew_err ew_network_load(const char *what, const struct ew_network_opts *o, struct ew_graph **out);

/* Filter counts of a network of the zoo, as ew_model_filters gives them. */
ew_err ew_network_filters(const char *name, const struct ew_network_opts *o, int32_t *filters,
                          int max, int *n);

#endif
