/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a network in training, with all that it takes to go on as if nothing had happened.
 *
 *   magic, version, reserved                    8 bytes each
 *   options, progress                           texts
 *   classes: count, names
 *   normalisation: mean and std, 4 bit patterns of a double each
 *   graph                                       format/graph_file.h
 *   state: count, then parameter, slot, tensor
 *   checksum of all before it                   8 bytes
 *
 * The file is written under another name, synced and renamed: whoever reads sees the old one or the
 * whole new one. */
#ifndef EW_FORMAT_CHECKPOINT_H
#define EW_FORMAT_CHECKPOINT_H

#include "data/preprocess.h"
#include "graph/graph.h"

/* A tensor that the optimiser keeps for a parameter. */
struct ew_checkpoint_state {
    const char *param;
    int64_t slot;
    struct ew_tensor t;
};

struct ew_checkpoint {
    struct ew_graph *graph; /* the network alone, without its objective */
    const char *options;    /* lines "name = value": what the run was asked for; never NULL */
    const char *progress;   /* the same: how far it has come; never NULL */
    const char *const *classes;
    int n_classes;
    struct ew_preprocess prep; /* mean and std are written; resize is by the options */
    const struct ew_checkpoint_state *states;
    int n_states;
    struct ew_arena arena; /* after a read: texts and lists */
    char *bytes;           /* after a read: the file, in which the states' data lies */
};

/* Writes everything; nothing is changed or kept. */
ew_err ew_checkpoint_write(const char *path, const struct ew_checkpoint *c);

/* Bytes that the file will have, about. */
int64_t ew_checkpoint_size(const struct ew_checkpoint *c);

/* Reads a file; one that is damaged, cut off or of a newer version is refused.  Release with fini,
 * which frees the graph too unless it has been taken (set to NULL). */
ew_err ew_checkpoint_read(const char *path, struct ew_checkpoint *out);
void ew_checkpoint_fini(struct ew_checkpoint *c);

/* The same from bytes, which must outlive it; `what` is for messages. */
ew_err ew_checkpoint_parse(const void *bytes, size_t size, const char *what,
                           struct ew_checkpoint *out);

/* True where the file begins like a checkpoint. */
bool ew_checkpoint_is(const char *path);

#endif
