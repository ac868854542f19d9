/* SPDX-License-Identifier: Apache-2.0 */
/* Structured pruning: which units of channels leave a network so that it meets a target. */
#ifndef EW_PRUNE_PRUNE_H
#define EW_PRUNE_PRUNE_H

#include "prune/importance.h"

/* What is to become small. */
enum ew_prune_by {
    EW_PRUNE_KEEP, /* share of the units, 0 to 1 */
    EW_PRUNE_MACS, /* multiply-accumulates of one image */
    EW_PRUNE_PARAMS,
    EW_PRUNE_BYTES,   /* of the inference plan: weights and activations */
    EW_PRUNE_LATENCY, /* milliseconds of one image on this device, measured */
    EW_PRUNE_BYS
};

extern const char *const ew_prune_by_names[]; /* of EW_PRUNE_BYS */

/* Digits to print of a number of it: counts whole, times rounded. */
static inline int ew_prune_digits(enum ew_prune_by by)
{
    return by == EW_PRUNE_LATENCY || by == EW_PRUNE_KEEP ? 4 : 15;
}

struct ew_prune_rule {
    bool global; /* all groups compete; else each loses the same share */
    int align;   /* units that stay in a group are a multiple of this, or all */
    int threads; /* of measured runs */
};

/* What the network has of it now; KEEP: 1. */
ew_err ew_prune_measure(struct ew_graph *g, enum ew_prune_by by, int threads, double *out);

/* Units to remove so that about `keep` of them stay; a group never loses all. */
ew_err ew_prune_choose(const struct ew_channels *c, const double *scores, double keep,
                       const struct ew_prune_rule *rule, bool *gone);

struct ew_prune_found {
    double keep, value; /* share asked for, and what the network then has of the target */
    int tried;
};

struct ew_prune_job {
    struct ew_graph *g; /* left as it is */
    const struct ew_channels *channels;
    const double *scores; /* by unit */
    enum ew_prune_by by;
    double target;
    struct ew_prune_rule rule;
};

/* The least that is possible: fails with EW_ERR_LIMIT, naming it, where the target is below. */
ew_err ew_prune_reach(const struct ew_prune_job *j, bool *gone, double *value);

/* The most units that may stay for `by` to be at most the target.  Fails as
 * above. */
ew_err ew_prune_search(const struct ew_prune_job *j, bool *gone, struct ew_prune_found *out);

#endif
