/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation of a network on a split of a data set, batch by batch, into a confusion matrix. */
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
    struct ew_features *features; /* cached features instead of the loader; borrowed; NULL: none */
    struct ew_graph *head;        /* the network from features to scores; borrowed */
    int64_t batch, done, samples;
    bool idle; /* other ranks have all samples: runs and counts nothing */
    int threads;
    const struct ew_plan *lender; /* plan whose memory it uses while that does not run; borrowed;
                                   * NULL: none */
    const struct ew_loss *loss;   /* reconstruction loss; NULL: a classifier */
    double loss_sum;              /* over `compared` samples */
    int64_t compared;
    struct ew_confusion confusion; /* of classes */
};

/* `loader` gives samples, batch and normalisation; augmentation, order and h, w, c are set here. */
ew_err ew_evaluator_open(const struct ew_loader_opts *loader, const struct ew_graph *net,
                         int threads, struct ew_evaluator *out);
/* The same for an autoencoder: evaluates the reconstruction loss. */
ew_err ew_evaluator_open_loss(const struct ew_loader_opts *loader, const struct ew_graph *net,
                              int threads, const struct ew_loss *loss, struct ew_evaluator *out);
void ew_evaluator_close(struct ew_evaluator *e);

/* From now on evaluates `head` on cached features instead of the whole network. */
void ew_evaluator_use(struct ew_evaluator *e, struct ew_features *features, struct ew_graph *head);

/* Starts an evaluation: compiles the network with its present weights, at the evaluator's batch. */
ew_err ew_evaluator_begin(struct ew_evaluator *e, struct ew_graph *net);
/* Evaluates one batch; *more is false after the last, when the plan is freed. */
ew_err ew_evaluator_step(struct ew_evaluator *e, bool *more);

/* Scores since begin; without classes only the loss, else NAN. */
struct ew_scores ew_evaluator_scores(const struct ew_evaluator *e);

/* A whole evaluation. */
ew_err ew_evaluator_run(struct ew_evaluator *e, struct ew_graph *net, struct ew_scores *out);

#endif
