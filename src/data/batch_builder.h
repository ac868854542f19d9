/* SPDX-License-Identifier: Apache-2.0 */
/* Building one batch: the work of a worker.  Threads and order are in loader.c. */
#ifndef EW_DATA_BATCH_BUILDER_H
#define EW_DATA_BATCH_BUILDER_H

#include <pthread.h>

#include "data/image_decoder.h"
#include "data/loader.h"

#define EW_BAD_LOGGED 100 /* bad samples that the log names; more are only counted */

/* Bad samples that the log has named, of all workers. */
struct ew_bad_list {
    pthread_mutex_t lock; /* guards all below */
    int n;
    int64_t index[EW_BAD_LOGGED];
};

/* Shared by all workers; constant while they work, except what has its own lock. */
struct ew_batch_shared {
    struct ew_loader_opts o; /* with sizes set and subset copied */
    int64_t *order;          /* [n]: sample numbers in the epoch's order */
    const int64_t *members;  /* [n]: the same, unshuffled */
    int64_t n, epoch;
    struct ew_medium *medium; /* NULL: none */
    struct ew_bad_list bad;
};

/* State of a worker. */
struct ew_batch_builder {
    struct ew_batch_shared *shared;
    struct ew_sample samples[EW_IMAGE_JOBS]; /* decoded together */
    int alone; /* number of next samples to decode one by one, since one of them is bad */
    struct ew_augmenter *augmenter;
    /* with several threads: times of its samples, and whether one is bad */
    struct ew_batch cost;
    bool failed;
};

ew_err ew_batch_builder_init(struct ew_batch_builder *f, struct ew_batch_shared *shared);
void ew_batch_builder_fini(struct ew_batch_builder *f);

/* Memory of a batch. */
struct ew_batch_slot {
    struct ew_batch batch;
    float *images;
    int64_t *labels, *index;
    int64_t emulated_ns;
    ew_err err;
    char message[512]; /* of err */
    bool ready;
};

/* Makes batch `number` of the epoch; errors are stored in the slot. */
void ew_batch_build(struct ew_batch_builder *f, int64_t number, struct ew_batch_slot *s);

/* The same with all threads of o.pool, each with its own builder. */
void ew_batch_build_parallel(struct ew_batch_builder *builders, int64_t number,
                             struct ew_batch_slot *s);

#endif
