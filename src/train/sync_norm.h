/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronised batch norm: merges the ranks' statistics into those of all samples.  The exchange
 * sends the messages. */
#ifndef EW_TRAIN_SYNC_NORM_H
#define EW_TRAIN_SYNC_NORM_H

#include "plan/plan.h"

/* Bytes of a rank's message at a stop (EW_STOP_STATISTICS, EW_STOP_SUMS): two numbers per channel.
 */
size_t ew_norm_message_bytes(int64_t channels);
float *ew_norm_message(const struct ew_stop *stop, size_t *bytes);

/* All ranks' messages in rank order, and each rank's share of the samples. */
struct ew_norm_messages {
    const float *all;
    const double *weights;
    int ranks, rank; /* number of ranks; this rank */
};

/* Replaces the rank's statistics or sums by those of all ranks, and updates its running variance.
 */
void ew_norm_merge(const struct ew_stop *stop, const struct ew_norm_messages *m);

#endif
