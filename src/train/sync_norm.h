/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm over the samples of several ranks: what each has found of its own, made into what one
 * process with all samples would have found.  Who sends it is left to the exchange. */
#ifndef EW_TRAIN_SYNC_NORM_H
#define EW_TRAIN_SYNC_NORM_H

#include "plan/plan.h"

/* What one rank tells the others at a stop (EW_STOP_STATISTICS, EW_STOP_SUMS): two numbers a
 * channel. */
size_t ew_norm_message_bytes(int64_t channels);
float *ew_norm_message(const struct ew_stop *stop, size_t *bytes);

/* All ranks' messages, one after the other, and the share of the samples that each has. */
struct ew_norm_messages {
    const float *all;
    const double *weights;
    int ranks, rank; /* how many; whose stop it is */
};

/* Puts what all have found together in place of the rank's own, and into its running variance. */
void ew_norm_merge(const struct ew_stop *stop, const struct ew_norm_messages *m);

#endif
