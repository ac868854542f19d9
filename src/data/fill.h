/* SPDX-License-Identifier: Apache-2.0 */
/* Filling one batch: the work of a worker.  Threads and order are in loader.c. */
#ifndef EW_DATA_FILL_H
#define EW_DATA_FILL_H

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
struct ew_fill {
    struct ew_loader_opts o; /* with sizes set and subset copied */
    int64_t *order;          /* [n]: sample numbers in the epoch's order */
    const int64_t *members;  /* [n]: the same, unshuffled */
    int64_t n, epoch;
    struct ew_medium *medium; /* NULL: none */
    struct ew_bad_list bad;
};

/* State of a worker. */
struct ew_filler {
    struct ew_fill *shared;
    struct ew_sample samples[EW_IMAGE_JOBS]; /* decoded together */
    int alone; /* number of next samples to decode one by one, since one of them is bad */
    struct ew_augmenter *augmenter;
    /* with several threads: times of its samples, and whether one is bad */
    struct ew_batch cost;
    bool failed;
};

ew_err ew_filler_init(struct ew_filler *f, struct ew_fill *shared);
void ew_filler_fini(struct ew_filler *f);

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
void ew_filler_run(struct ew_filler *f, int64_t number, struct ew_batch_slot *s);

/* The same with all threads of o.pool, each with its own filler. */
void ew_fillers_run(struct ew_filler *fillers, int64_t number, struct ew_batch_slot *s);

#endif
