/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning a network: what matters least goes, in one cut or in several with fine-tuning between
 * them, until the target is met.  Choosing the channels of one cut is prune/prune.h's. */
#ifndef EW_PRUNE_PRUNE_RUN_H
#define EW_PRUNE_PRUNE_RUN_H

#include <stdio.h>

#include "graph/facts.h"
#include "prune/prune.h"
#include "train/options.h"

struct ew_prune_run_opts {
    enum ew_prune_by by;
    double target; /* of the units (KEEP) or of the whole network: a share below 1 where `share`,
                    * else an amount */
    bool share;
    enum ew_importance importance;
    bool global;           /* all layers compete, instead of each losing the same share */
    int64_t align;         /* layers keep multiples of so many channels; 0: 1 */
    int64_t steps;         /* cuts in which the target is reached; 0: 1 */
    int64_t score_batches; /* TAYLOR: that it is taken over; 0: 16 */
    int64_t batch, threads;
    uint64_t seed;
};

struct ew_prune_run_job {
    struct ew_graph *net;               /* cut in place, its batch becomes 1 */
    const struct ew_loader_opts *train; /* for TAYLOR; NULL: none */
    const struct ew_loader_opts *test;  /* accuracy is measured on; NULL: it is not known */
    struct ew_prune_run_opts opts;
    const struct ew_train_opts *fine_tune; /* after each cut; NULL: not */
    FILE *talk;                            /* lines of progress; NULL: silent */
};

/* A layer that makes channels, before and after. */
struct ew_pruned_layer {
    const char *name; /* the graph's */
    int64_t before, after;
};

struct ew_pruned {
    struct ew_pruned_layer *layers; /* owned */
    int n_layers;
    struct ew_cost cost_before, cost_after;
    double ms_before, ms_after;             /* of one image; timed in turns */
    double ratio;                           /* of them, by turns */
    double accuracy_before, accuracy_after; /* nan: not known */
    double accuracy_cut;                    /* before the last fine-tuning; nan: there was none */
};

/* Release with ew_pruned_fini, also after a failure. */
ew_err ew_prune_run(const struct ew_prune_run_job *job, struct ew_pruned *out);
void ew_pruned_fini(struct ew_pruned *p);

/* Times one image before and after, in turns; fills ms and ratio. */
ew_err ew_prune_compare(struct ew_graph *before, struct ew_graph *after, int threads,
                        struct ew_pruned *out);

#endif
