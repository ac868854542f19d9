/* SPDX-License-Identifier: Apache-2.0 */
/* What the frozen part of a network gives for each sample, computed once and kept in memory. */
#ifndef EW_TRAIN_FEATURES_H
#define EW_TRAIN_FEATURES_H

#include <stdio.h>

#include "data/loader.h"
#include "train/learner.h"

struct ew_features {
    int n;                           /* values a sample */
    size_t bytes[EW_LEARNER_INPUTS]; /* of one sample */
    char *rows[EW_LEARNER_INPUTS];   /* [count, bytes] */
    void *batch[EW_LEARNER_INPUTS];  /* one batch, gathered */
    int64_t *labels, *batch_labels;
    int64_t *order; /* of the epoch */
    int64_t count, batch_size;
    uint64_t seed;
    bool shuffle;
};

/* Runs all samples of `loader` (neither shuffled nor augmented; its batch is the learner's) through
 * the frozen part.  Fails where the result would take more than `limit` bytes.  Progress goes to
 * `talk` (NULL: nowhere). */
ew_err ew_features_make(struct ew_learner *l, const struct ew_loader_opts *loader, size_t limit,
                        FILE *talk, struct ew_features *out);
void ew_features_fini(struct ew_features *f);

/* The order of an epoch, fixed by (seed, epoch). */
void ew_features_start(struct ew_features *f, int64_t epoch);
/* Gathers batch `number` of the epoch into f->batch and f->batch_labels; *n samples, 0 after the
 * last. */
void ew_features_gather(struct ew_features *f, int64_t number, int64_t *n);

#endif
