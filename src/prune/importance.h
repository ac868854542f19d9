/* SPDX-License-Identifier: Apache-2.0 */
/* How much each unit of channels matters: the least important ones leave the network first. */
#ifndef EW_PRUNE_IMPORTANCE_H
#define EW_PRUNE_IMPORTANCE_H

#include "compress/channels.h"
#include "data/loader.h"

enum ew_importance {
    EW_IMPORTANCE_L1,     /* sum of a filter's magnitudes, over the mean of its layer */
    EW_IMPORTANCE_L2,     /* the same of its length */
    EW_IMPORTANCE_BN,     /* magnitude of the batch norms' scales (network slimming, Liu 2017) */
    EW_IMPORTANCE_TAYLOR, /* what the loss would change by, to first order (Molchanov 2019) */
    EW_IMPORTANCE_RANDOM  /* the control */
};

extern const char *const ew_importance_names[]; /* NULL-terminated */

/* All but TAYLOR; `scores` has one entry a unit.  Fails where weights are missing, or BN is asked
 * for and there is no batch norm. */
ew_err ew_importance_of_weights(const struct ew_graph *g, const struct ew_channels *c,
                                enum ew_importance kind, uint64_t seed, double *scores);

struct ew_taylor_opts {
    struct ew_loader_opts loader; /* labelled samples; its batch is the plan's */
    int64_t batches;
    int threads;
};

/* TAYLOR, over batches in training mode: for each unit the mean square of the sum of weight times
 * gradient, over scale and shift of its batch norms or, where it has none, its filters and biases.
 * `g` ends in scores [N, classes] and keeps its batch and all of its values. */
ew_err ew_importance_taylor(struct ew_graph *g, const struct ew_channels *c,
                            const struct ew_taylor_opts *o, double *scores);

#endif
