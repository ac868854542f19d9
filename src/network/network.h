/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a network by its name on the command line: NAME of the zoo, FILE.onnx, FILE.xmodel, a
 * checkpoint or an engine, with its image preprocessing and classes. */
#ifndef EW_NETWORK_NETWORK_H
#define EW_NETWORK_NETWORK_H

#include "base/field.h"
#include "edgewise.h"
#include "format/image_card.h"
#include "graph/graph.h"
#include "model/loss_table.h"

/* ---- Options ---- */

struct ew_network_opts {
    struct ew_ints input; /* H, W, C; empty: the network's own */
    int64_t classes;      /* 0: the network's own */
    double width;         /* 0: 1 */
    const char *widths;   /* file of filter counts by gate; NULL: by `width` */
    int64_t batch;        /* 0: 1 */
};

/* clang-format off */
/* Rows of a command's option table for `part`, a struct ew_network_opts in struct `owner`; the
 * first is for commands that have a batch of their own. */
#define EW_NETWORK_SIZE_FIELDS(owner, part)                                                        \
    {.name = "input", .type = EW_FIELD_INTS, .offset = offsetof(owner, part.input), .min = 1,      \
     .max = 65536, .metavar = "HxWxC", .help = "input size; default: the network's own"},          \
    {.name = "classes", .type = EW_FIELD_INT, .offset = offsetof(owner, part.classes), .min = 1,   \
     .max = 1048576, .metavar = "K", .help = "number of classes; default: the network's own"},     \
    {.name = "width", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.width), .def = "1",   \
     .min = 0.001, .max = 1000, .metavar = "R",                                                    \
     .help = "width multiplier: every filter count becomes trunc(count x R)"},                     \
    {.name = "width-list", .type = EW_FIELD_STR, .offset = offsetof(owner, part.widths),           \
     .metavar = "FILE",                                                                            \
     .help = "filter counts of a zoo network, layer by layer, as written by `scale generate`"}
#define EW_NETWORK_FIELDS(owner, part)                                                             \
    EW_NETWORK_SIZE_FIELDS(owner, part),                                                           \
    {.name = "batch", .type = EW_FIELD_INT, .offset = offsetof(owner, part.batch), .def = "1",     \
     .min = 1, .max = 1048576, .metavar = "B", .help = "batch size"}
/* clang-format on */

/* How a network is opened. */
struct ew_network_open_opts {
    struct ew_network_opts opts;
    const struct ew_onnx_input *inputs; /* what is known of an ONNX file's inputs; borrowed */
    int n_inputs;
    uint64_t seed; /* of the first weights of a network of the zoo */
    bool shapes;   /* leave a network of the zoo without values in its parameters */
    bool engines;  /* take engines too; else they are refused */
    int threads;   /* of an engine's context; 0: as it says */
};

/* ---- Networks ---- */

enum ew_network_kind {
    EW_NETWORK_ZOO,
    EW_NETWORK_ONNX,
    EW_NETWORK_XIR, /* .xmodel: AMD's, for its DPU */
    EW_NETWORK_CHECKPOINT,
    EW_NETWORK_ENGINE,
};

struct ew_network {
    const char *what; /* as given, borrowed */
    enum ew_network_kind kind;
    struct ew_graph *graph; /* at the batch asked for; an engine's is its context's */
    struct ew_image_card card;
    const struct ew_loss *loss; /* that a checkpoint was trained for; NULL: not known */
    bool random;                /* its weights are random: scores mean nothing */
    int64_t file_bytes;         /* 0: there is no file */
    struct ew_engine *engine;   /* where it is one, with a context that runs it; else NULL */
    struct ew_context *context; /* the same */
    struct ew_arena arena;      /* names of classes */
};

/* Builds, reads or loads it.  Release with close, also after a failure. */
ew_err ew_network_open(const char *what, const struct ew_network_open_opts *how,
                       struct ew_network *out);
void ew_network_close(struct ew_network *n);

/* The graph, which is the caller's from then on; for networks that are not engines. */
struct ew_graph *ew_network_take_graph(struct ew_network *n);

/* True where `what` names a file rather than a network of the zoo. */
bool ew_network_is_file(const char *what);
/* True for the name of an XIR file: FILE.xmodel. */
bool ew_network_is_xir(const char *what);
/* True for a file, and for a trained network by name (network/trained.h): it has its own weights.
 */
bool ew_network_has_weights(const char *what);

/* Filter counts of a network of the zoo, as ew_model_filters gives them. */
ew_err ew_network_filters(const char *name, const struct ew_network_opts *o, int32_t *filters,
                          int max, int *n);

#endif
