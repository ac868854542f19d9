/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the trainer's files. */
#ifndef EW_TRAIN_TRAINER_IMPL_H
#define EW_TRAIN_TRAINER_IMPL_H

#include "train/evaluate.h"
#include "train/features.h"
#include "train/learner.h"
#include "train/trainer.h"

enum ew_train_phase { EW_DOING_TRAINING, EW_DOING_VALIDATION, EW_DOING_TEST, EW_DOING_NOTHING };

/* A batch in flight. */
struct ew_flight {
    const struct ew_batch *batch;
    struct ew_batch cached; /* backing of `batch` with cached features */
};

#define EW_TRAIN_DEPTH 2 /* most batches in flight */

struct ew_trainer {
    struct ew_train_job job;
    struct ew_graph *net;       /* the job's */
    const struct ew_loss *loss; /* reconstruction loss; NULL: a classifier */
    struct ew_learner learner;
    struct ew_exchange *exchange;            /* NULL: single process */
    int64_t slice_first, slice;              /* this rank's samples of each batch */
    bool stops, saves;                       /* decisions of all ranks after this batch */
    struct ew_flight flight[EW_TRAIN_DEPTH]; /* oldest first */
    int n_flight, depth;                     /* number in flight, and limit */
    struct ew_loader *loader;                /* NULL with cached features */
    bool cached;
    struct ew_features features, validation_features;
    struct ew_graph *head;                /* from features to scores */
    size_t planned_bytes;                 /* at their peak: with the plan that computes features */
    double features_s;                    /* time to compute features */
    struct ew_evaluator validation, test; /* test: only with a validation set */
    bool has_test;
    int64_t *order; /* of the training split: validation samples, then training samples */
    int64_t n_validation, n_training;
    struct ew_schedule schedule;
    int64_t batches; /* per epoch */
    enum ew_train_phase phase;
    struct ew_train_position at;
    struct ew_rundir dir;
    struct ew_epoch_row row; /* of the last epoch */
    int64_t epoch_ns;        /* when the epoch began */
    bool whole;              /* this process ran the epoch from its start */
    struct ew_scores test_scores;
    struct ew_checkpoint best; /* read back for the test */
    struct ew_checkpoint_state *states;
    int n_states;
    const char **classes;
    double recent_loss; /* moving average over batches */
    int64_t mark_ns;    /* start of the current interval */
    int64_t saved_ns;   /* time of the last checkpoint */
    int64_t eval_ns;    /* start of the evaluation */
    double cache_before;
    bool emulated; /* emulated storage medium */
};

/* epoch.c */
ew_err ew_trainer_begin_epoch(struct ew_trainer *t);
ew_err ew_trainer_batch(struct ew_trainer *t, bool *over);
/* Finishes and counts the batches in flight. */
ew_err ew_trainer_drain(struct ew_trainer *t);
/* True if a checkpoint within the epoch is due. */
bool ew_trainer_save_due(const struct ew_trainer *t);
/* Ends the epoch: writes its row, and checkpoints if it was validated (`s` not NULL) or one is due.
 */
ew_err ew_trainer_end_epoch(struct ew_trainer *t, const struct ew_scores *s);

/* rank_rows.c: fails, naming the rank, if ranks differ in weights, data or options. */
ew_err ew_trainer_agree(struct ew_trainer *t);
/* Sums the last batch's loss and counts over ranks; *comm_ns is the time for this and the
 * gradients. */
ew_err ew_trainer_sum_batch(struct ew_trainer *t, double *loss, int64_t *right, int64_t *counted,
                            int64_t *comm_ns);
/* Sums an evaluator's counts over ranks. */
ew_err ew_trainer_add_scores(const struct ew_trainer *t, struct ew_evaluator *e);
/* Broadcasts rank 0's weights. */
ew_err ew_trainer_broadcast_weights(const struct ew_trainer *t, struct ew_graph *g);
/* Writes every rank's times of the epoch to ranks.csv. */
ew_err ew_trainer_rank_rows(struct ew_trainer *t);

/* sources.c */
ew_err ew_trainer_divide(struct ew_trainer *t);
ew_err ew_trainer_open_sources(struct ew_trainer *t);

/* save.c */
ew_err ew_trainer_collect_states(struct ew_trainer *t);
/* Reads a checkpoint's progress, before anything is opened. */
ew_err ew_trainer_read_position(struct ew_trainer *t, const struct ew_checkpoint *c);
ew_err ew_trainer_restore(struct ew_trainer *t, const struct ew_checkpoint *c);
/* Writes a checkpoint; true if it succeeded. */
bool ew_trainer_write(struct ew_trainer *t, const char *name);

#endif
