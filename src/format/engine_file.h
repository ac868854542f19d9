/* SPDX-License-Identifier: Apache-2.0 */
/* Engine files: a network after all passes, with kernels chosen and weights packed.
 *
 *   page 0    magic, version, size of the file, number of sections   8 bytes each
 *             offset, size, checksum of each section                 8 bytes each
 *             checksum of all before it; zeros to the end of the page
 *   PLAN      card, the graph without its large weights, kernels by batch and node, offsets of
 *             packed and plain weights
 *   PACKED    weights as kernels read them, used from the mapping
 *   WEIGHTS   the large weights as in the graph, for a machine whose kernels pack differently
 *
 * Sections begin at multiples of EW_ENGINE_PAGE, entries of the last two at multiples of EW_ALIGN;
 * gaps are zero.  Numbers and weights are little-endian; a big-endian machine is another
 * architecture.  What kernels mean, and whether they are available, is checked in engine/. */
#ifndef EW_FORMAT_ENGINE_FILE_H
#define EW_FORMAT_ENGINE_FILE_H

#include "data/preprocess.h"
#include "graph/facts.h"
#include "graph/graph.h"

#define EW_ENGINE_PAGE    4096
#define EW_ENGINE_BATCHES 256 /* largest number of batch sizes */

/* Facts about an engine, readable without its weights.  Strings are never NULL. */
struct ew_engine_card {
    const char *name;       /* of the network */
    const char *program;    /* version of Edgewise */
    const char *arch, *isa; /* "x86_64", "avx512" */
    const char *kernels;    /* version of the kernels that packed; any other repacks */
    const char *precision;  /* "fp32", "int8" */
    int64_t batch_min, batch_max;
    int64_t threads;           /* default for contexts; 0: one for each CPU */
    struct ew_facts facts;     /* of the network before any pass, at batch 1 */
    int64_t block_bytes;       /* activations and scratch at batch_max, on the compiling machine */
    struct ew_preprocess prep; /* of images; std all 0: unknown */
    const char *const *classes;
    int n_classes;
};

/* Packed weights of a node for one kernel. */
struct ew_engine_packed {
    int node;
    const char *kernel;
    size_t bytes;
    const void *data;
};

struct ew_engine_file {
    struct ew_engine_card card;
    struct ew_graph *graph; /* at batch_min; without dead nodes, so that reading it back keeps node
                             * numbers */
    /* [batch - batch_min][node]: the kernel, NULL if the node has no step */
    const char *const *choices;
    const struct ew_engine_packed *packed; /* sorted by node, then kernel */
    int n_packed;
    const bool *absent; /* by value: weights left out of the file (compact); NULL: none */

    /* After a read: */
    struct ew_arena arena;
    const void *bytes; /* the file's contents, which hold the graph's weights */
    size_t size;
    bool mapped; /* by ew_engine_file_open */
    void *zeros; /* zero pages that absent weights point to */
    size_t zeros_bytes;
};

/* Writes an engine, deterministically.  *size gets the size of the file. */
ew_err ew_engine_file_write(const char *path, const struct ew_engine_file *e, int64_t *size);

/* Maps a file and checks everything but the WEIGHTS section, which ew_engine_file_check_weights
 * checks.  Fails if it is damaged, truncated, no engine or of a newer version.  Free with close. */
ew_err ew_engine_file_open(const char *path, struct ew_engine_file *out);
void ew_engine_file_close(struct ew_engine_file *e);
ew_err ew_engine_file_check_weights(const struct ew_engine_file *e, const char *what);

/* The same from bytes at a multiple of EW_ALIGN, which must outlive it; `what` is for messages. */
ew_err ew_engine_file_parse(const void *bytes, size_t size, const char *what,
                            struct ew_engine_file *out);

/* True if the file has an engine's magic. */
bool ew_engine_file_is(const char *path);

#endif
