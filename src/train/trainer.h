/* SPDX-License-Identifier: Apache-2.0 */
/* Training, one step at a time: batches, validation after each epoch, rows, checkpoints.
 *
 *   EW_TRY(ew_trainer_open(&job, &t));
 *   while (e == EW_OK && event != EW_TRAIN_DONE) {
 *       e = ew_trainer_step(t, &event);
 *       ... show ew_trainer_status(t); stop where the user wants it ...
 *   }
 *   ew_trainer_save(t);
 *   ew_trainer_close(t);
 *
 * The caller may stop after any step; a run resumed from ew_trainer_save's checkpoint is bitwise
 * equal to one that was not stopped.  One thread calls. */
#ifndef EW_TRAIN_TRAINER_H
#define EW_TRAIN_TRAINER_H

#include "data/loader.h"
#include "device/watch.h"
#include "plan/plan.h"
#include "train/learner.h"
#include "train/options.h"
#include "train/ranks.h"
#include "train/rundir.h"
#include "train/scores.h"

struct ew_train_job {
    struct ew_graph *net; /* from images or clips to scores, or an autoencoder; trained in place */
    const struct ew_dataset *data;
    struct ew_train_opts opts;
    const char *options;                /* as text, for files; "" is fine */
    const char *machine;                /* the machine, as JSON; NULL: unknown */
    struct ew_preprocess prep;          /* resize follows from opts */
    struct ew_teacher teacher;          /* net NULL: no distillation */
    struct ew_watch *watch;             /* sensor readings; NULL: none */
    double base_power_w;                /* idle power before the run; 0: unknown */
    const char *folder;                 /* NULL: nothing is written */
    const struct ew_checkpoint *resume; /* checkpoint to resume, whose graph is `net`; NULL: a new
                                         * run */
    FILE *talk;                         /* progress messages before the first batch; NULL: none */
    struct ew_ranks *ranks; /* data-parallel ranks, each with a part of every batch; NULL: single
                             * process */
    struct ew_exchange_opts exchange; /* of the ranks' gradients */
    const volatile int *stop;         /* with ranks: set when this one should stop; NULL: never */
    /* Records an epoch before the checkpoint that has it: a killed run then loses none.  With ranks
     * it is called on the first; NULL: none. */
    ew_err (*record)(void *ctx, const struct ew_epoch_row *row);
    void *record_ctx;
};

enum ew_train_event {
    EW_TRAIN_BATCH, /* an optimiser step was done */
    EW_TRAIN_EVAL,  /* a batch was evaluated */
    EW_TRAIN_EPOCH, /* an epoch ended: validated, row and checkpoint written */
    EW_TRAIN_DONE   /* training and test have ended */
};

/* Progress, for display. */
struct ew_train_status {
    bool evaluating;
    int64_t epoch, epochs;  /* epoch: the current one, from 1 */
    int64_t batch, batches; /* done and in all, of the epoch or the evaluation that is running */
    double loss;            /* moving average over batches */
    double accuracy;        /* on the training data over the epoch so far; NAN: no classes */
    double images_per_s;    /* of the epoch so far */
    double stall_share;
    double left_s; /* estimate for the run; negative: not known yet */
    double lr;
};

struct ew_train_result {
    int64_t epochs, epochs_asked, best_epoch;
    int64_t validations;         /* validated epochs, among which the best was chosen */
    struct ew_train_times times; /* of all epochs */
    double epoch_s;              /* mean */
    double eval_s, checkpoint_s; /* validations; rows and checkpoints between epochs */
    double images_per_s;
    int64_t images, bad;
    bool validated_on_test; /* without a validation set the best epoch is by test score */
    struct ew_scores test;  /* of the best epoch's weights; NAN without samples */
    struct ew_scores last;  /* of the last epoch, on the validation data; NAN without samples */
    int64_t peak_rss_bytes, planned_bytes;
    double energy_j;         /* of the training of all epochs; negative: unknown */
    double cache_features_s; /* time to compute cached features; 0: none */
    bool checkpoint_failed;  /* the last checkpoint could not be written */
};

struct ew_trainer;

/* Numbers of training and validation samples. */
void ew_train_divide(const struct ew_dataset_info *info, const struct ew_train_opts *o,
                     int64_t *training, int64_t *validation);
/* Fails if the training samples are less than a batch. */
ew_err ew_train_check_batch(const struct ew_dataset_info *info, const struct ew_train_opts *o);

/* Sets `reserved` and the guest plan in the learner's options: memory of the loader's batches and
 * of evaluation. */
ew_err ew_train_reserve(struct ew_graph *net, const struct ew_train_opts *o,
                        struct ew_learner_opts *l);

ew_err ew_trainer_open(const struct ew_train_job *job, struct ew_trainer **out);
void ew_trainer_close(struct ew_trainer *t); /* NULL is fine */

ew_err ew_trainer_step(struct ew_trainer *t, enum ew_train_event *event);

struct ew_train_status ew_trainer_status(const struct ew_trainer *t);
/* The row of the last completed epoch; valid until the next is completed. */
const struct ew_epoch_row *ew_trainer_epoch(const struct ew_trainer *t);
struct ew_train_result ew_trainer_result(const struct ew_trainer *t);
/* Of the last evaluation; NULL without classes. */
const struct ew_confusion *ew_trainer_confusion(const struct ew_trainer *t);

/* With ranks: true if a rank asked to stop; all ranks see it at the same batch. */
bool ew_trainer_stops(const struct ew_trainer *t);

/* Writes last.ckpt now.  Failures are in the result. */
void ew_trainer_save(struct ew_trainer *t);

/* How the memory limit was met. */
void ew_trainer_plan_stats(const struct ew_trainer *t, struct ew_plan_stats *out);

#endif
