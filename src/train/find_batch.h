/* SPDX-License-Identifier: Apache-2.0 */
/* The largest batch that can be trained in given memory. */
#ifndef EW_TRAIN_FIND_BATCH_H
#define EW_TRAIN_FIND_BATCH_H

#include "train/trainer.h"

struct ew_batch_found {
    int64_t batch;
    size_t bytes;      /* at that batch, including evaluation and prefetched batches */
    size_t next_bytes; /* at twice the batch; 0: more than the samples */
    size_t limit;
};

/* The largest power of two, up to `most`, whose training step fits `limit` bytes without
 * recomputation or micro-batches.  Only compiles dry plans.  EW_ERR_LIMIT if not even 1 fits. */
ew_err ew_find_batch(struct ew_graph *net, const struct ew_train_opts *o, size_t limit,
                     int64_t most, struct ew_batch_found *out);

#endif
