/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a trainer, shared by the files of this folder. */
#ifndef EW_TRAIN_TRAINER_IMPL_H
#define EW_TRAIN_TRAINER_IMPL_H

#include "train/evaluate.h"
#include "train/features.h"
#include "train/learner.h"
#include "train/trainer.h"

enum ew_train_phase { EW_DOING_TRAINING, EW_DOING_VALIDATION, EW_DOING_TEST, EW_DOING_NOTHING };

/* A batch that is being learnt. */
struct ew_flight {
    const struct ew_batch *batch;
    struct ew_batch cached; /* what it points to where features are cached */
};

#define EW_TRAIN_DEPTH 2 /* batches under way, at most */

struct ew_trainer {
    struct ew_train_job job;
    struct ew_graph *net;       /* the job's */
    const struct ew_loss *loss; /* between output and input; NULL: it tells classes apart */
    struct ew_learner learner;
    struct ew_exchange *exchange;            /* NULL: there is one rank */
    int64_t slice_first, slice;              /* of each batch: this rank's samples */
    bool stops, saves;                       /* what all ranks do after this batch */
    struct ew_flight flight[EW_TRAIN_DEPTH]; /* oldest first */
    int n_flight, depth;                     /* there are, and may be */
    struct ew_loader *loader;                /* NULL where features are cached */
    bool cached;
    struct ew_features features, validation_features;
    struct ew_graph *head;                /* what is left to compute from them */
    double features_s;                    /* it took */
    struct ew_evaluator validation, test; /* test: only where there is a validation set */
    bool has_test;
    int64_t *order; /* of training samples: validation first, then training */
    int64_t n_validation, n_training;
    struct ew_schedule schedule;
    int64_t batches; /* in an epoch */
    enum ew_train_phase phase;
    struct ew_train_position at;
    struct ew_rundir dir;
    struct ew_epoch_row row; /* of the last epoch */
    int64_t epoch_ns;        /* when the epoch began */
    bool whole;              /* this process began the epoch */
    struct ew_scores test_scores;
    struct ew_checkpoint best; /* read back for the test */
    struct ew_checkpoint_state *states;
    int n_states;
    const char **classes;
    double recent_loss; /* mean of the last batches */
    int64_t mark_ns;    /* where the present interval of time began */
    int64_t saved_ns;   /* of the last checkpoint */
    int64_t eval_ns;    /* when the evaluation began */
    double cache_before;
    bool emulated; /* the medium is */
};

/* epoch.c */
ew_err ew_trainer_begin_epoch(struct ew_trainer *t);
ew_err ew_trainer_batch(struct ew_trainer *t, bool *over);
/* Waits for the batches that are under way, and counts them. */
ew_err ew_trainer_drain(struct ew_trainer *t);
/* The time for a checkpoint within an epoch has come. */
bool ew_trainer_save_due(const struct ew_trainer *t);
/* Writes its row, and its checkpoints where it was validated (`s` NULL: it was not) or one is due.
 */
ew_err ew_trainer_end_epoch(struct ew_trainer *t, const struct ew_scores *s);

/* rank_rows.c: ranks have the same weights, data and options, or the message says who differs. */
ew_err ew_trainer_agree(struct ew_trainer *t);
/* Adds up what ranks know of the last batch: loss and counts; comm_ns is what that and gradients
 * took.
 */
ew_err ew_trainer_share(struct ew_trainer *t, double *loss, int64_t *right, int64_t *counted,
                        int64_t *comm_ns);
/* An evaluator's counts become those of all ranks, each of which has had its share of samples. */
ew_err ew_trainer_add_scores(const struct ew_trainer *t, struct ew_evaluator *e);
/* All ranks get rank 0's weights. */
ew_err ew_trainer_spread_weights(const struct ew_trainer *t, struct ew_graph *g);
/* Every rank's times of the epoch, to ranks.csv. */
ew_err ew_trainer_rank_rows(struct ew_trainer *t);

/* sources.c */
ew_err ew_trainer_divide(struct ew_trainer *t);
ew_err ew_trainer_open_sources(struct ew_trainer *t);

/* save.c */
ew_err ew_trainer_collect_states(struct ew_trainer *t);
/* Where a checkpoint was, before anything is opened by it. */
ew_err ew_trainer_read_position(struct ew_trainer *t, const struct ew_checkpoint *c);
ew_err ew_trainer_restore(struct ew_trainer *t, const struct ew_checkpoint *c);
/* True where the folder has it now. */
bool ew_trainer_write(struct ew_trainer *t, const char *name);

#endif
