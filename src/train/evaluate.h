/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation: a split of a data set through a network, batch by batch, into a confusion matrix. */
#ifndef EW_TRAIN_EVALUATE_H
#define EW_TRAIN_EVALUATE_H

#include "data/loader.h"
#include "model/loss_table.h"
#include "plan/plan.h"
#include "train/features.h"
#include "train/scores.h"

struct ew_evaluator {
    struct ew_loader *loader;
    struct ew_plan *plan;         /* between begin and end */
    struct ew_features *features; /* in place of the loader; borrowed; NULL: none */
    struct ew_graph *head;        /* what computes from them; borrowed */
    int64_t batch, done, samples;
    bool idle; /* other ranks have all samples: nothing is run, and nothing counted */
    int threads;
    const struct ew_plan *lender; /* whose memory it uses, and which does not run in the meantime;
                                   * borrowed; NULL: none */
    const struct ew_loss *loss;   /* between output and input; NULL: classes are told apart */
    double loss_sum;              /* over `compared` samples */
    int64_t compared;
    struct ew_confusion confusion; /* of classes */
};

/* `loader` says which samples, batch and normalisation; its augmentation, order and h, w, c are set
 * here, by the network's input. */
ew_err ew_evaluator_open(const struct ew_loader_opts *loader, const struct ew_graph *net,
                         int threads, struct ew_evaluator *out);
/* Of a network that gives back its input: how near it comes by `loss`, which is not of labels. */
ew_err ew_evaluator_open_loss(const struct ew_loader_opts *loader, const struct ew_graph *net,
                              int threads, const struct ew_loss *loss, struct ew_evaluator *out);
void ew_evaluator_close(struct ew_evaluator *e);

/* From now on begins with these features, and runs `head` instead of the whole network. */
void ew_evaluator_use(struct ew_evaluator *e, struct ew_features *features, struct ew_graph *head);

/* Compiles the network with the weights that it has now; `net` gets the evaluator's batch. */
ew_err ew_evaluator_begin(struct ew_evaluator *e, struct ew_graph *net);
/* One batch; *more is false after the last, and then the plan is released. */
ew_err ew_evaluator_step(struct ew_evaluator *e, bool *more);

/* Of what was run since begin; without classes the loss alone, the rest is NAN. */
struct ew_scores ew_evaluator_scores(const struct ew_evaluator *e);

/* All at once. */
ew_err ew_evaluator_run(struct ew_evaluator *e, struct ew_graph *net, struct ew_scores *out);

#endif
