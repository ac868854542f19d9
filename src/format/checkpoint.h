/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a network in training, with all state that an exact resume needs.
 *
 *   magic, version, reserved                    8 bytes each
 *   options, progress                           texts
 *   classes: count, names
 *   normalisation: mean and std, 4 bit patterns of a double each
 *   graph                                       format/graph_file.h
 *   state: count, then parameter, slot, tensor
 *   checksum of all before it                   8 bytes
 *
 * The file is written under a temporary name, synced and renamed: a reader sees the old one or the
 * whole new one. */
#ifndef EW_FORMAT_CHECKPOINT_H
#define EW_FORMAT_CHECKPOINT_H

#include "data/preprocess.h"
#include "graph/graph.h"

/* A state tensor of the optimiser for a parameter. */
struct ew_checkpoint_state {
    const char *param;
    int64_t slot;
    struct ew_tensor t;
};

struct ew_checkpoint {
    struct ew_graph *graph; /* the network alone, without its objective */
    const char *options;    /* options of the run, lines "name = value"; never NULL */
    const char *progress;   /* progress of the run, likewise; never NULL */
    const char *const *classes;
    int n_classes;
    struct ew_preprocess prep; /* mean and std are written; resize follows from the options */
    const struct ew_checkpoint_state *states;
    int n_states;
    struct ew_arena arena; /* after a read: owns strings and lists */
    char *bytes;           /* after a read: the file, which holds the states' data */
};

/* Writes a checkpoint; borrows its contents during the call. */
ew_err ew_checkpoint_write(const char *path, const struct ew_checkpoint *c);

/* Estimated size of the file. */
int64_t ew_checkpoint_size(const struct ew_checkpoint *c);

/* Reads a checkpoint; fails if it is damaged, truncated or of a newer version.  Free with fini,
 * which also frees the graph unless it has been taken (set to NULL). */
ew_err ew_checkpoint_read(const char *path, struct ew_checkpoint *out);
void ew_checkpoint_fini(struct ew_checkpoint *c);

/* The same from bytes, which must outlive it; `what` is for messages. */
ew_err ew_checkpoint_parse(const void *bytes, size_t size, const char *what,
                           struct ew_checkpoint *out);

/* True if the file has a checkpoint's magic. */
bool ew_checkpoint_is(const char *path);

#endif
