/* SPDX-License-Identifier: Apache-2.0 */
/* Importance of units of channels: the least important are pruned first. */
#ifndef EW_PRUNE_IMPORTANCE_H
#define EW_PRUNE_IMPORTANCE_H

#include "compress/channels.h"
#include "data/loader.h"

enum ew_importance {
    EW_IMPORTANCE_L1,     /* L1 norm of a filter, relative to its layer's mean */
    EW_IMPORTANCE_L2,     /* the same with the L2 norm */
    EW_IMPORTANCE_BN,     /* |scale| of batch norms (network slimming, Liu 2017) */
    EW_IMPORTANCE_TAYLOR, /* first-order change of the loss (Molchanov 2019) */
    EW_IMPORTANCE_RANDOM  /* the control */
};

extern const char *const ew_importance_names[]; /* NULL-terminated */

/* All but TAYLOR; `scores` has one entry per unit.  Fails if weights have no data, or BN is asked
 * for and there is no batch norm. */
ew_err ew_importance_of_weights(const struct ew_graph *g, const struct ew_channels *c,
                                enum ew_importance kind, uint64_t seed, double *scores);

struct ew_taylor_opts {
    struct ew_loader_opts loader; /* labelled samples; its batch is the plan's */
    int64_t batches;
    int threads;
};

/* TAYLOR, over batches in training mode: per unit the mean over batches of (sum of weight x
 * gradient)^2, over scale and shift of its batch norms or, without these, its filters and biases.
 * `g` ends in scores [N, classes] and keeps its batch and all values. */
ew_err ew_importance_taylor(struct ew_graph *g, const struct ew_channels *c,
                            const struct ew_taylor_opts *o, double *scores);

#endif
