/* SPDX-License-Identifier: Apache-2.0 */
/* Engine files: a network after all passes, with its kernels chosen and their weights packed.
 *
 *   page 0    magic, version, size of the file, number of sections   8 bytes each
 *             offset, size, checksum of each section                 8 bytes each
 *             checksum of all before it; zeros to the end of the page
 *   PLAN      who made it and for what, the graph without its large weights, kernels by batch and
 *             node, where packed and plain weights lie
 *   PACKED    weights as kernels want them: mapped and used as they are
 *   WEIGHTS   the large weights as the graph has them, for a machine that packs in another way
 *
 * Sections begin at multiples of EW_ENGINE_PAGE, and what lies in the last two at multiples of
 * EW_ALIGN; gaps are zero.  Numbers are little-endian, as the weights are: a machine of the other
 * kind is another architecture.  What kernels mean and whether they are available is left to
 * engine/. */
#ifndef EW_FORMAT_ENGINE_FILE_H
#define EW_FORMAT_ENGINE_FILE_H

#include "data/preprocess.h"
#include "graph/facts.h"
#include "graph/graph.h"

#define EW_ENGINE_PAGE    4096
#define EW_ENGINE_BATCHES 256 /* most batches in a range */

/* What is known of an engine before its weights are looked at.  Texts are never NULL. */
struct ew_engine_card {
    const char *name;       /* of the network */
    const char *program;    /* version of Edgewise */
    const char *arch, *isa; /* "x86_64", "avx512" */
    const char *kernels;    /* which edition of the kernels packed: another one packs again */
    const char *precision;  /* "fp32", "int8" */
    int64_t batch_min, batch_max;
    int64_t threads;           /* for contexts that do not say; 0: one for each CPU */
    struct ew_facts facts;     /* of the network before any pass, at batch 1 */
    int64_t block_bytes;       /* activations and scratch at batch_max, on that machine */
    struct ew_preprocess prep; /* of images; all of std 0 in the file where nothing was said */
    const char *const *classes;
    int n_classes;
};

/* A node's weights as one kernel wants them. */
struct ew_engine_packed {
    int node;
    const char *kernel;
    size_t bytes;
    const void *data;
};

struct ew_engine_file {
    struct ew_engine_card card;
    struct ew_graph *graph; /* at batch_min; swept, so that nodes keep their numbers */
    /* By batch - batch_min and node: the kernel, NULL where the node has no step. */
    const char *const *choices;
    const struct ew_engine_packed *packed; /* by node, then kernel */
    int n_packed;
    const bool *absent; /* by value: the weights are not in the file; NULL: all are */

    /* After a read: */
    struct ew_arena arena;
    void *map; /* the file; the graph's weights lie in it */
    size_t size;
    void *zeros; /* what absent weights point to: it can be read, and holds nothing */
    size_t zeros_bytes;
};

/* Writes everything; the same contents give the same bytes.  *size gets the size of the file. */
ew_err ew_engine_file_write(const char *path, const struct ew_engine_file *e, int64_t *size);

/* Maps a file and checks all of it, but the plain weights: ew_engine_file_check_weights is for who
 * reads those.  One that is damaged, cut off, no engine or of a newer version is refused.  Release
 * with close. */
ew_err ew_engine_file_open(const char *path, struct ew_engine_file *out);
void ew_engine_file_close(struct ew_engine_file *e);
ew_err ew_engine_file_check_weights(const struct ew_engine_file *e, const char *what);

/* The same from bytes at a multiple of EW_ALIGN, which must outlive it; `what` is for messages. */
ew_err ew_engine_file_parse(const void *bytes, size_t size, const char *what,
                            struct ew_engine_file *out);

/* True where the file begins like an engine. */
bool ew_engine_file_is(const char *path);

#endif
