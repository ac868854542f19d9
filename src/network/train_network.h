/* SPDX-License-Identifier: Apache-2.0 */
/* The network to be trained on a data set: of the zoo at the images' size, or a file's with its
 * weights and a head for the classes; and the teacher for distillation. */
#ifndef EW_NETWORK_TRAIN_NETWORK_H
#define EW_NETWORK_TRAIN_NETWORK_H

#include "data/data.h"
#include "network/network.h"

/* Texts are borrowed. */
struct ew_train_network_opts {
    const char *what;
    const char *init;           /* file whose weights it begins with; NULL: its own */
    struct ew_network_opts net; /* classes 0: the data's; input empty: the data's, or its own */
    uint64_t seed;
    const char *freeze; /* as of ew_adapt_freeze; NULL: nothing */
};

struct ew_train_network {
    struct ew_graph *graph;    /* batch 1, images to scores; the caller's */
    struct ew_preprocess prep; /* what its weights expect of images; not normalised: nothing */
    int copied, frozen;        /* tensors of weights */
    int64_t classes_were; /* classes of a file whose last layer is reinitialised; 0: it is kept */
    bool unlike; /* with a failure: `init` could be read, and is another network than `what` */
};

/* The caller frees the graph, which is NULL after a failure. */
ew_err ew_train_network_open(const struct ew_train_network_opts *how, const struct ew_dataset *data,
                             struct ew_train_network *out);

/* A file's network, whose images are made as the learner's are, to learn from.  The caller frees
 * *out. */
ew_err ew_teacher_open(const char *what, struct ew_graph **out);

#endif
