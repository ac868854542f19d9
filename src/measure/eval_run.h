/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates a plan on a split of a data set, sample by sample; shared by eval and bench --eval. */
#ifndef EW_MEASURE_EVAL_RUN_H
#define EW_MEASURE_EVAL_RUN_H

#include <stdio.h>

#include "measure/classifier.h"
#include "plan/plan.h"
#include "train/scores.h"

#define EW_EVAL_TOP 5

/* The prediction for one sample. */
struct ew_eval_sample {
    int64_t index; /* index in the split */
    int64_t label;
    int32_t top[EW_EVAL_TOP]; /* top classes; -1: no more, or no valid output */
    float share[EW_EVAL_TOP]; /* probabilities */
    float truth_share;        /* probability of the true class; NaN: no valid output */
};

/* The reconstruction error of one sample, by the loss. */
struct ew_eval_error {
    int64_t index, label;
    double error;
};

struct ew_eval_run {
    const struct ew_loss *loss;     /* the loss used for evaluation */
    struct ew_confusion confusion;  /* classifiers */
    struct ew_eval_error *errors;   /* autoencoders: n errors */
    struct ew_eval_sample *samples; /* if requested */
    int64_t n;                      /* number of errors or samples */
    int64_t in_top;                 /* samples whose class is in the top EW_EVAL_TOP */
    int64_t bad;                    /* unreadable samples */
};

/* A plan to evaluate, and its graph. */
struct ew_eval_target {
    const char *name;
    struct ew_plan *plan;
    const struct ew_graph *graph;
    int64_t batch;
    const struct ew_loss *loss; /* training loss; NULL: not known, as "auto" */
};

/* Evaluates the split in `set`; batch, order, augmentation and size are set here.  `keep`: keeps
 * all samples.  `talk`: for progress, or NULL.  Release with fini, also after a failure. */
ew_err ew_eval_run(const struct ew_eval_target *t, const struct ew_loader_opts *set, bool keep,
                   FILE *talk, struct ew_eval_run *out);
void ew_eval_run_fini(struct ew_eval_run *r);

#endif
