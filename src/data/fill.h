/* SPDX-License-Identifier: Apache-2.0 */
/* Filling one batch: what a worker does.  Threads and order are left to loader.c. */
#ifndef EW_DATA_FILL_H
#define EW_DATA_FILL_H

#include <pthread.h>

#include "data/image_decoder.h"
#include "data/loader.h"

#define EW_BAD_KEPT 100 /* messages about bad samples */

/* Bad samples of all workers. */
struct ew_bad_list {
    pthread_mutex_t lock; /* guards all below */
    int n;
    int64_t index[EW_BAD_KEPT];
    char *text[EW_BAD_KEPT];
};

void ew_bad_list_init(struct ew_bad_list *b);
void ew_bad_list_fini(struct ew_bad_list *b);

/* What all workers share; constant while they work but for what has a lock of its own. */
struct ew_fill {
    struct ew_loader_opts o; /* resolved: sizes set, subset copied */
    int64_t *order;          /* [n]: numbers of the samples, in the epoch's order */
    const int64_t *members;  /* [n]: the same, never shuffled */
    int64_t n, epoch;
    struct ew_medium *medium; /* NULL: none */
    struct ew_bad_list bad;
};

/* One worker's own. */
struct ew_filler {
    struct ew_fill *shared;
    struct ew_sample samples[EW_IMAGE_JOBS]; /* that are decoded together */
    int alone; /* samples to come that are decoded each by itself: one of them is bad */
    struct ew_augmenter *augmenter;
    /* By several threads: what its samples of the batch took, and whether one of them is bad. */
    struct ew_batch cost;
    bool failed;
};

ew_err ew_filler_init(struct ew_filler *f, struct ew_fill *shared);
void ew_filler_fini(struct ew_filler *f);

/* A batch's memory. */
struct ew_batch_slot {
    struct ew_batch batch;
    float *images;
    int64_t *labels, *index;
    int64_t emulated_ns;
    ew_err err;
    char message[512]; /* of err */
    bool ready;
};

/* Makes batch `number` of the epoch; a failure is left in the slot. */
void ew_filler_run(struct ew_filler *f, int64_t number, struct ew_batch_slot *s);

/* The same by all threads of o.pool, each with a filler of its own. */
void ew_fillers_run(struct ew_filler *fillers, int64_t number, struct ew_batch_slot *s);

#endif
