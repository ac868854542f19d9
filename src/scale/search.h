/* SPDX-License-Identifier: Apache-2.0 */
/* NeuralScale's architecture descent: train, prune gate by gate, fit the laws, take the shape that
 * they give at the same size, and again.
 *
 * The folder gets iteration-00.csv, iteration-01.csv, ... (filters that are left, a row a pruning
 * step).  An iteration depends on the widths before it, the options and the seed alone: one that
 * was interrupted is done again, those that have their file are taken from it. */
#ifndef EW_SCALE_SEARCH_H
#define EW_SCALE_SEARCH_H

#include <stdio.h>

#include "data/loader.h"
#include "scale/gates.h"

struct ew_search_opts {
    int64_t iterations;
    int64_t warmup, max_epochs; /* epochs without pruning; in all */
    struct ew_pruner_opts prune;
    double lr, momentum, weight_decay;
    uint64_t seed;
    int threads;
};

struct ew_search_job {
    const struct ew_scaling *net;
    struct ew_loader_opts loader; /* training samples, batch, augmentation; order is set here */
    struct ew_search_opts opts;
    const char *folder;
    const char *options; /* that decide the records, lines of text; kept in the folder */
    FILE *talk;          /* a line an epoch; NULL: silent */
};

/* What to train on, as options have it. */
struct ew_search_images {
    const struct ew_dataset *data;
    int64_t batch, samples; /* samples 0: all; else so many, spread evenly */
    const char *augment;    /* as of ew_augment_parse */
    const char *mean, *std; /* as of ew_preprocess_parse; NULL: measured */
};

/* Fills the job's loader; its network is there already, and must have gates and as many classes as
 * the data.  *subset is for free(), after the search. */
ew_err ew_search_images(const struct ew_search_images *im, struct ew_search_job *job,
                        int64_t **subset);

struct ew_search_result {
    int done;                     /* iterations, those found included */
    int32_t widths[EW_MAX_GATES]; /* that the last law gives at the network's own size */
    char last[4096];              /* its records */
};

ew_err ew_search_run(const struct ew_search_job *job, struct ew_search_result *out);

#endif
