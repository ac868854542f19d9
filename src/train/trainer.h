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
 * The caller may stop after any step; what ew_trainer_save wrote then goes on bit for bit as if it
 * had not stopped.  One thread calls. */
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
    struct ew_graph *net; /* images or clips to scores or to what it took; its weights learn */
    const struct ew_dataset *data;
    struct ew_train_opts opts;
    const char *options;                /* as text, for files; "" is fine */
    const char *machine;                /* where it runs, as JSON; NULL: not said */
    struct ew_preprocess prep;          /* its resize is by opts */
    struct ew_teacher teacher;          /* net NULL: labels alone */
    struct ew_watch *watch;             /* the board's readings; NULL: none */
    double base_power_w;                /* at rest, before the run; 0: not known */
    const char *folder;                 /* NULL: nothing is written */
    const struct ew_checkpoint *resume; /* whose graph is `net`; NULL: from the beginning */
    FILE *talk;                         /* progress before the first batch; NULL: nowhere */
    struct ew_ranks *ranks;           /* that train together, each a part of a batch; NULL: none */
    struct ew_exchange_opts exchange; /* of their gradients */
    const volatile int *stop;         /* with ranks: this one would like to stop; NULL: never */
};

enum ew_train_event {
    EW_TRAIN_BATCH, /* a batch was learnt */
    EW_TRAIN_EVAL,  /* a batch was evaluated */
    EW_TRAIN_EPOCH, /* an epoch is over: validated, its row and checkpoint written */
    EW_TRAIN_DONE   /* all epochs are over; the test has been made */
};

/* For a line of progress. */
struct ew_train_status {
    bool evaluating;
    int64_t epoch, epochs;  /* the one under way, from 1 */
    int64_t batch, batches; /* done of the epoch; of the evaluation where that is under way */
    double loss;            /* mean of the last batches */
    double accuracy;        /* of the epoch so far, on the training data; NAN: no classes */
    double images_per_s;    /* of the epoch so far */
    double stall_share;
    double left_s; /* of the whole run; negative: not known yet */
    double lr;
};

struct ew_train_result {
    int64_t epochs, epochs_asked, best_epoch;
    int64_t validations;         /* epochs among which the best was chosen */
    struct ew_train_times times; /* of all epochs */
    double epoch_s;              /* mean */
    double eval_s;
    double images_per_s;
    int64_t images, bad;
    bool validated_on_test; /* there was no validation set: the best epoch is the test's best */
    struct ew_scores test;  /* of the best epoch's weights */
    struct ew_scores last;  /* of the last epoch, on the validation data */
    int64_t peak_rss_bytes, planned_bytes;
    double energy_j;         /* of all epochs' training; negative: not known */
    double cache_features_s; /* of computing features once; 0: not done */
    bool checkpoint_failed;  /* the last checkpoint could not be written */
};

struct ew_trainer;

/* How many samples are for training and for validation. */
void ew_train_divide(const struct ew_dataset_info *info, const struct ew_train_opts *o,
                     int64_t *training, int64_t *validation);
/* Fails where there is no whole batch of samples for training. */
ew_err ew_train_check_batch(const struct ew_dataset_info *info, const struct ew_train_opts *o);

/* Bytes that a run needs beside its learner, into the learner's options: the loader's batches, and
 * evaluation. */
ew_err ew_train_reserve(struct ew_graph *net, const struct ew_train_opts *o,
                        struct ew_learner_opts *l);

ew_err ew_trainer_open(const struct ew_train_job *job, struct ew_trainer **out);
void ew_trainer_close(struct ew_trainer *t); /* NULL is fine */

ew_err ew_trainer_step(struct ew_trainer *t, enum ew_train_event *event);

struct ew_train_status ew_trainer_status(const struct ew_trainer *t);
/* The row of the last epoch that ended; valid until the next one does. */
const struct ew_epoch_row *ew_trainer_epoch(const struct ew_trainer *t);
struct ew_train_result ew_trainer_result(const struct ew_trainer *t);
/* Of the last evaluation; NULL where the network tells no classes apart. */
const struct ew_confusion *ew_trainer_confusion(const struct ew_trainer *t);

/* With ranks: one of them would like to stop, and all have heard of it at the same batch. */
bool ew_trainer_stops(const struct ew_trainer *t);

/* A checkpoint of this moment, as last.ckpt.  Failures are in the result. */
void ew_trainer_save(struct ew_trainer *t);

/* What was done to meet the memory limit. */
void ew_trainer_plan_stats(const struct ew_trainer *t, struct ew_plan_stats *out);

#endif
