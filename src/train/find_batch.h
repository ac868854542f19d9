/* SPDX-License-Identifier: Apache-2.0 */
/* The largest batch that can be trained in a given memory. */
#ifndef EW_TRAIN_FIND_BATCH_H
#define EW_TRAIN_FIND_BATCH_H

#include "train/trainer.h"

struct ew_batch_found {
    int64_t batch;
    size_t bytes;      /* at it, evaluation and batches on their way included */
    size_t next_bytes; /* at the next size; 0: there are not that many samples */
    size_t limit;
};

/* The largest power of two, up to `most`, whose training step with all that it keeps fits `limit`
 * bytes as it is: nothing computed again, no batch in parts.  Plans are only made, not run.  Fails
 * with EW_ERR_LIMIT where not even 1 fits. */
ew_err ew_find_batch(struct ew_graph *net, const struct ew_train_opts *o, size_t limit,
                     int64_t most, struct ew_batch_found *out);

#endif
