/* SPDX-License-Identifier: Apache-2.0 */
/* The largest batch that fits. */
#include "train/find_batch.h"

#include "train/learner.h"

static ew_err bytes_at(struct ew_graph *net, const struct ew_train_opts *o, int64_t batch,
                       size_t *out)
{
    struct ew_learner_opts dry = {.optimizer = ew_train_optimizer(o),
                                  .batch = batch,
                                  .threads = (int)o->threads,
                                  .dry = true};
    struct ew_train_opts at = *o;
    struct ew_learner l;
    at.batch = batch;
    EW_TRY(ew_train_reserve(net, &at, &dry));
    EW_TRY(ew_learner_open(net, &dry, &l));
    *out = ew_learner_bytes(&l);
    ew_learner_close(&l);
    return EW_OK;
}

ew_err ew_find_batch(struct ew_graph *net, const struct ew_train_opts *o, size_t limit,
                     int64_t most, struct ew_batch_found *out)
{
    *out = (struct ew_batch_found){.limit = limit};
    for (int64_t batch = 1; batch <= most; batch *= 2) {
        size_t bytes;
        EW_TRY(bytes_at(net, o, batch, &bytes));
        out->next_bytes = bytes > limit ? bytes : 0;
        if (bytes > limit)
            break;
        out->batch = batch;
        out->bytes = bytes;
    }
    EW_CHECK(out->batch > 0, EW_ERR_LIMIT,
             "%s: a batch of 1 needs %zu bytes, %zu more than the limit of %zu; --memory-limit "
             "without --find-batch may still make it fit",
             net->name, out->next_bytes, out->next_bytes - limit, limit);
    return EW_OK;
}
