/* SPDX-License-Identifier: Apache-2.0 */
/* A plan over a split of a data set, sample by sample: what eval and bench --eval share. */
#ifndef EW_MEASURE_EVAL_RUN_H
#define EW_MEASURE_EVAL_RUN_H

#include <stdio.h>

#include "measure/classifier.h"
#include "plan/plan.h"
#include "train/scores.h"

#define EW_EVAL_TOP 5

/* What a network said of one sample. */
struct ew_eval_sample {
    int64_t index; /* in its split */
    int64_t label;
    int32_t top[EW_EVAL_TOP]; /* classes, the likeliest first; -1: no more, or no answer */
    float share[EW_EVAL_TOP]; /* of the softmax */
    float truth_share;        /* NaN: no answer */
};

/* How far from one sample a network that gives back its input came, by the loss. */
struct ew_eval_error {
    int64_t index, label;
    double error;
};

struct ew_eval_run {
    const struct ew_loss *loss;     /* by which it is evaluated */
    struct ew_confusion confusion;  /* of a classifier */
    struct ew_eval_error *errors;   /* of a network that gives back its input; n of them */
    struct ew_eval_sample *samples; /* where they were asked for */
    int64_t n;                      /* of either */
    int64_t in_top;                 /* samples whose class is among the first EW_EVAL_TOP */
    int64_t bad;                    /* that could not be read */
};

/* What is evaluated: a plan and the graph that it runs. */
struct ew_eval_target {
    const char *name;
    struct ew_plan *plan;
    const struct ew_graph *graph;
    int64_t batch;
    const struct ew_loss *loss; /* that it was trained for; NULL: not known, then the loss that
                                 * "auto" means */
};

/* Runs the split that `set` names; its batch, order, augmentation and size are set here.  `keep`:
 * samples are kept.  `talk`: where progress is shown, NULL: nowhere.  Release with fini, also after
 * a failure. */
ew_err ew_eval_run(const struct ew_eval_target *t, const struct ew_loader_opts *set, bool keep,
                   FILE *talk, struct ew_eval_run *out);
void ew_eval_run_fini(struct ew_eval_run *r);

#endif
