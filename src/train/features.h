/* SPDX-License-Identifier: Apache-2.0 */
/* Cached features: the outputs of a network's frozen part for every sample, computed once. */
#ifndef EW_TRAIN_FEATURES_H
#define EW_TRAIN_FEATURES_H

#include <stdio.h>

#include "data/loader.h"
#include "train/learner.h"

struct ew_features {
    int n;                           /* values per sample */
    size_t bytes[EW_LEARNER_INPUTS]; /* of one sample */
    char *rows[EW_LEARNER_INPUTS];   /* [count, bytes] */
    void *batch[EW_LEARNER_INPUTS];  /* one batch, gathered */
    int64_t *labels, *batch_labels;
    int64_t *order; /* of the epoch */
    int64_t count, batch_size;
    uint64_t seed;
    bool shuffle;
};

/* Computes the features of all samples of `loader`, which must neither shuffle nor augment and have
 * the learner's batch.  Fails if they would exceed `limit` bytes.  Progress goes to `talk` (NULL:
 * nowhere). */
ew_err ew_features_make(struct ew_learner *l, const struct ew_loader_opts *loader, size_t limit,
                        FILE *talk, struct ew_features *out);
void ew_features_fini(struct ew_features *f);
/* Memory of the cache and of the gathered batch. */
size_t ew_features_bytes(const struct ew_features *f);

/* Shuffles for an epoch, as a function of (seed, epoch). */
void ew_features_start(struct ew_features *f, int64_t epoch);
/* Gathers batch `number` of the epoch into f->batch and f->batch_labels; *n samples, 0 after the
 * last. */
void ew_features_gather(struct ew_features *f, int64_t number, int64_t *n);

#endif
