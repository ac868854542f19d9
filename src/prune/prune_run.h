/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning a network in one or several cuts, with fine-tuning between them, until the target is met.
 * The choice of channels is in prune/prune.h. */
#ifndef EW_PRUNE_PRUNE_RUN_H
#define EW_PRUNE_PRUNE_RUN_H

#include <stdio.h>

#include "graph/facts.h"
#include "prune/prune.h"
#include "train/options.h"

struct ew_prune_run_opts {
    enum ew_prune_by by;
    double target; /* of the units (KEEP) or of the network: a share below 1 if `share`, else an
                    * absolute value */
    bool share;
    enum ew_importance importance;
    bool global;           /* one ranking over all layers; else each loses the same share */
    int64_t align;         /* as in struct ew_prune_rule */
    int64_t steps;         /* number of cuts; 0: 1 */
    int64_t score_batches; /* TAYLOR: batches; 0: 16 */
    int64_t batch, threads;
    uint64_t seed;
};

struct ew_prune_run_job {
    struct ew_graph *net;               /* pruned in place; its batch becomes 1 */
    const struct ew_loader_opts *train; /* for TAYLOR; NULL: none */
    const struct ew_loader_opts *test;  /* to measure accuracy; NULL: not measured */
    struct ew_prune_run_opts opts;
    const struct ew_train_opts *fine_tune; /* after each cut; NULL: no fine-tuning */
    FILE *talk;                            /* progress; NULL: silent */
};

/* Width of a layer before and after. */
struct ew_pruned_layer {
    const char *name; /* the graph's */
    int64_t before, after;
};

struct ew_pruned {
    struct ew_pruned_layer *layers; /* owned */
    int n_layers;
    struct ew_cost cost_before, cost_after;
    double ms_before, ms_after;             /* of one image, timed alternately */
    double ratio;                           /* their ratio, median over turns */
    double accuracy_before, accuracy_after; /* nan: not known */
    double accuracy_cut;                    /* before the last fine-tuning; nan: none */
};

/* Free with ew_pruned_fini, also after a failure. */
ew_err ew_prune_run(const struct ew_prune_run_job *job, struct ew_pruned *out);
void ew_pruned_fini(struct ew_pruned *p);

/* Times both networks on one image, alternately; fills ms and ratio. */
ew_err ew_prune_compare(struct ew_graph *before, struct ew_graph *after, int threads,
                        struct ew_pruned *out);

#endif
