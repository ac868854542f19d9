/* SPDX-License-Identifier: Apache-2.0 */
/* Structured pruning: which units of channels to remove to meet a target. */
#ifndef EW_PRUNE_PRUNE_H
#define EW_PRUNE_PRUNE_H

#include "prune/importance.h"

/* The quantity to reduce. */
enum ew_prune_by {
    EW_PRUNE_KEEP, /* share of the units, 0 to 1 */
    EW_PRUNE_MACS, /* multiply-accumulates of one image */
    EW_PRUNE_PARAMS,
    EW_PRUNE_BYTES,   /* of the inference plan: weights and activations */
    EW_PRUNE_LATENCY, /* milliseconds of one image on this device, measured */
    EW_PRUNE_BYS
};

extern const char *const ew_prune_by_names[]; /* of EW_PRUNE_BYS */

/* Decimals to print: none for counts. */
static inline int ew_prune_digits(enum ew_prune_by by)
{
    return by == EW_PRUNE_LATENCY || by == EW_PRUNE_KEEP ? 4 : 15;
}

struct ew_prune_rule {
    bool global; /* one ranking over all groups; else each loses the same share */
    int align;   /* a group keeps a multiple of this many units, or all; 0: 8 in groups of 64 and
                  * more, else 1 */
    int threads; /* for timed runs */
};

/* The network's present value of the quantity; KEEP: 1. */
ew_err ew_prune_measure(struct ew_graph *g, enum ew_prune_by by, int threads, double *out);

/* Chooses units to remove so that about the share `keep` remains; every group keeps some. */
ew_err ew_prune_choose(const struct ew_channels *c, const double *scores, double keep,
                       const struct ew_prune_rule *rule, bool *gone);

struct ew_prune_found {
    double keep, value; /* share of units, and the resulting value of the quantity */
    int tried;
};

struct ew_prune_job {
    struct ew_graph *g; /* unchanged */
    const struct ew_channels *channels;
    const double *scores; /* by unit */
    enum ew_prune_by by;
    double target;
    struct ew_prune_rule rule;
};

/* The smallest possible value; EW_ERR_LIMIT, naming it, if the target is below. */
ew_err ew_prune_reach(const struct ew_prune_job *j, bool *gone, double *value);

/* The most units that can remain for `by` to be at most the target.  Fails as above. */
ew_err ew_prune_search(const struct ew_prune_job *j, bool *gone, struct ew_prune_found *out);

#endif
