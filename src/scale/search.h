/* SPDX-License-Identifier: Apache-2.0 */
/* NeuralScale's architecture descent: train, prune, fit the laws, take the widths that they give at
 * the same size, and repeat.
 *
 * The folder gets iteration-00.csv, iteration-01.csv, ... (remaining filters, a row per pruning
 * step). An iteration depends on the previous widths, the options and the seed alone: finished ones
 * are read from their files, an interrupted one is repeated. */
#ifndef EW_SCALE_SEARCH_H
#define EW_SCALE_SEARCH_H

#include <stdio.h>

#include "data/loader.h"
#include "scale/gates.h"

struct ew_search_opts {
    int64_t iterations;
    int64_t warmup, max_epochs; /* epochs before pruning; epochs in total */
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
    const char *options; /* options that determine the records, as lines of text; stored in the
                          * folder */
    FILE *talk;          /* a line per epoch; NULL: silent */
};

/* Training data, as options. */
struct ew_search_images {
    const struct ew_dataset *data;
    int64_t batch, samples; /* samples: evenly spaced subset; 0: all */
    const char *augment;    /* syntax of ew_augment_parse */
    const char *mean, *std; /* syntax of ew_preprocess_parse; NULL: measured */
};

/* Fills the job's loader; the job's network must be set, have gates and as many classes as the
 * data.  The caller frees *subset after the search. */
ew_err ew_search_images(const struct ew_search_images *im, struct ew_search_job *job,
                        int64_t **subset);

struct ew_search_result {
    int done;                     /* finished iterations, including those found in the folder */
    int32_t widths[EW_MAX_GATES]; /* of the last law at the network's own size */
    char last[4096];              /* path of its records */
};

ew_err ew_search_run(const struct ew_search_job *job, struct ew_search_result *out);

#endif
