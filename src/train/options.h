/* SPDX-License-Identifier: Apache-2.0 */
/* Options and progress of a training run: structs with field tables, from which flags, help,
 * checkpoints and run folders are made. */
#ifndef EW_TRAIN_OPTIONS_H
#define EW_TRAIN_OPTIONS_H

#include "data/load_args.h"
#include "model/loss_table.h"
#include "op/optimizer.h"
#include "train/rundir.h"
#include "train/schedule.h"
#include "train/scores.h"

struct ew_train_opts {
    const char *data; /* NULL: none given */
    int64_t epochs, batch;
    double lr, momentum, weight_decay, label_smoothing;
    int loss;      /* index in ew_loss_names */
    int optimizer; /* enum ew_optimizer_kind */
    int schedule;  /* enum ew_schedule_kind */
    double warmup, gamma;
    int64_t step_epochs;
    struct ew_ints milestones;
    struct ew_load_args load;
    const char *mean, *std, *freeze;
    double val_split;
    int64_t samples, eval_samples; /* 0: all */
    int64_t eval_every;            /* epochs */
    int64_t seed, threads;
    int64_t memory_limit; /* 0: none */
    bool shuffle, cache_features;
    double checkpoint_every; /* seconds */
};

/* clang-format off */
/* Rows of an option table for `part`, a struct ew_train_opts in struct `owner`. */
#define EW_TRAIN_FIELDS(owner, part)                                                               \
    {.name = "data", .type = EW_FIELD_STR, .offset = offsetof(owner, part.data),                   \
     .metavar = "DIR|NAME", .letter = 'd',                                                         \
     .help = "data set: a folder or file, a name stored by `data get`, or \"synthetic\""},         \
    {.name = "epochs", .type = EW_FIELD_INT, .offset = offsetof(owner, part.epochs), .def = "10",  \
     .min = 1, .max = 1000000, .metavar = "N", .help = "number of epochs", .letter = 'e'},         \
    {.name = "batch", .type = EW_FIELD_INT, .offset = offsetof(owner, part.batch), .def = "64",    \
     .min = 1, .max = 1048576, .metavar = "B",                                                     \
     .help = "batch size; an incomplete last batch is dropped", .letter = 'b'},                    \
    {.name = "lr", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.lr), .def = "0.01",      \
     .min = 0, .max = 1000, .metavar = "R", .help = "initial learning rate"},                      \
    {.name = "optimizer", .type = EW_FIELD_ENUM, .offset = offsetof(owner, part.optimizer),        \
     .def = "sgd", .choices = ew_optimizer_names, .metavar = "NAME",                               \
     .help = "optimizer, as PyTorch defines it"},                                                  \
    {.name = "momentum", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.momentum),         \
     .def = "0.9", .min = 0, .max = 1, .metavar = "M", .help = "momentum of sgd and nesterov"},    \
    {.name = "weight-decay", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.weight_decay), \
     .def = "0", .min = 0, .max = 100, .metavar = "D",                                             \
     .help = "weight decay, applied to all weights"},                                              \
    {.name = "schedule", .type = EW_FIELD_ENUM, .offset = offsetof(owner, part.schedule),          \
     .def = "cosine", .choices = ew_schedule_names, .metavar = "NAME",                           \
     .help = "learning rate schedule"},                                                            \
    {.name = "warmup", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.warmup),             \
     .def = "0", .min = 0, .max = 1000, .metavar = "EPOCHS",                                       \
     .help = "epochs of linear learning rate warm-up"},                                            \
    {.name = "step-epochs", .type = EW_FIELD_INT, .offset = offsetof(owner, part.step_epochs),     \
     .def = "30", .min = 1, .max = 1000000, .metavar = "N",                                        \
     .help = "step schedule: epochs between decays"},                                              \
    {.name = "milestones", .type = EW_FIELD_INTS, .offset = offsetof(owner, part.milestones),      \
     .min = 0, .max = 1000000, .metavar = "N,N",                                                   \
     .help = "multistep schedule: epochs at which the rate decays"},                               \
    {.name = "gamma", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.gamma),               \
     .def = "0.1", .min = 0, .max = 1, .metavar = "G",                                             \
     .help = "factor of each decay of the step and multistep schedules"},                          \
    {.name = "loss", .type = EW_FIELD_ENUM, .offset = offsetof(owner, part.loss), .def = "auto",    \
     .choices = ew_loss_names, .metavar = "NAME",                                                  \
     .help = "loss function; auto: cross-entropy, or mse for autoencoders"},                       \
    {.name = "label-smoothing", .type = EW_FIELD_FLOAT,                                            \
     .offset = offsetof(owner, part.label_smoothing), .def = "0", .min = 0, .max = 1,              \
     .metavar = "E", .help = "label smoothing: fraction of the target spread over all classes"},   \
    EW_LOAD_FIELDS(owner, part.load),                                                              \
    {.name = "mean", .type = EW_FIELD_STR, .offset = offsetof(owner, part.mean),                   \
     .metavar = "M,M,M",                                                                           \
     .help = "mean to subtract from pixels in [0, 1]; \"imagenet\" sets mean and std; default: "   \
     "the checkpoint's, or measured on the data set"},                                             \
    {.name = "std", .type = EW_FIELD_STR, .offset = offsetof(owner, part.std),                     \
     .metavar = "D,D,D", .help = "standard deviation to divide pixels by, for each channel"},      \
    {.name = "val-split", .type = EW_FIELD_FLOAT, .offset = offsetof(owner, part.val_split),       \
     .def = "0.1", .min = 0, .max = 0.9, .metavar = "SHARE",                                       \
     .help = "fraction of the training data held out for validation, on which the best epoch is "  \
     "chosen; 0: none held out, the test split chooses"},                                          \
    {.name = "shuffle", .type = EW_FIELD_BOOL, .offset = offsetof(owner, part.shuffle),            \
     .def = "true", .help = "shuffle the samples in each epoch; --no-shuffle: in stored order"},   \
    {.name = "samples", .type = EW_FIELD_INT, .offset = offsetof(owner, part.samples),             \
     .def = "0", .min = 0, .max = 1e15, .metavar = "N",                                            \
     .help = "train on a random subset of N samples; 0: all"},                                     \
    {.name = "eval-samples", .type = EW_FIELD_INT, .offset = offsetof(owner, part.eval_samples),   \
     .def = "0", .min = 0, .max = 1e15, .metavar = "N",                                            \
     .help = "validate and test on N samples, one of each Nth of the split; 0: all"},              \
    {.name = "eval-every", .type = EW_FIELD_INT, .offset = offsetof(owner, part.eval_every),       \
     .def = "1", .min = 1, .max = 1000000, .metavar = "N",                                         \
     .help = "validate, and consider for best.ckpt, every Nth epoch and the last"},                \
    {.name = "freeze", .type = EW_FIELD_STR, .offset = offsetof(owner, part.freeze),               \
     .metavar = "backbone|PATTERN",                                                                \
     .help = "weights to freeze: all but the last layer's (backbone), or those whose names match " \
     "PATTERN"},                                                                                   \
    {.name = "cache-features", .type = EW_FIELD_BOOL,                                              \
     .offset = offsetof(owner, part.cache_features),                                               \
     .help = "compute the output of the frozen layers once and train on that"},                    \
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(owner, part.seed), .def = "1",       \
     .min = 0, .max = 9e15, .metavar = "N",                                                        \
     .help = "random seed of weights, sample order, augmentation and dropout"},                    \
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(owner, part.threads),             \
     .def = "0", .min = 0, .max = 256, .metavar = "N",                                             \
     .help = "compute threads; 0: one per CPU"},                                                   \
    {.name = "memory-limit", .type = EW_FIELD_SIZE, .offset = offsetof(owner, part.memory_limit),  \
     .min = 0, .max = 1e15, .metavar = "BYTES",                                                    \
     .help = "recompute or split the step so that it fits, and print how"},                        \
    {.name = "checkpoint-every", .type = EW_FIELD_FLOAT,                                           \
     .offset = offsetof(owner, part.checkpoint_every), .def = "60", .min = 0, .max = 1e9,          \
     .metavar = "SECONDS",                                                                         \
     .help = "also write a checkpoint this often within an epoch; 0: after every batch"}
/* clang-format on */

struct ew_optimizer ew_train_optimizer(const struct ew_train_opts *o);
struct ew_schedule ew_train_schedule(const struct ew_train_opts *o, int64_t steps_per_epoch);

/* ---- Position ---- */

/* Seconds of an interval: wall = compute + stall + overhead + comm. */
struct ew_train_times {
    double wall_s, compute_s, stall_s, overhead_s;
    double comm_s;                       /* communication with other ranks */
    double hidden_s;                     /* part of compute_s overlapped with communication */
    double fetch_s, decode_s, augment_s; /* CPU time of the loader, over all threads */
};

/* Progress of a run, which a checkpoint stores beside the weights. */
struct ew_train_position {
    int64_t epoch, batch, step; /* completed epochs; batches done of the current one; updates */
    struct ew_train_times now;  /* of the epoch so far */
    struct ew_train_times all;  /* of the epochs before */
    double loss_sum;            /* over the epoch's batches so far */
    int64_t right, counted;     /* of those batches */
    int64_t images, images_all;
    int64_t read_bytes, read_ops, bad;
    double eval_s;       /* of all validations */
    double checkpoint_s; /* of writing rows and checkpoints between epochs */
    double energy_j;     /* over energy_epochs epochs */
    int64_t energy_epochs;
    int64_t best_epoch;                /* from 1; 0: none yet */
    int64_t validations;               /* validated epochs so far */
    struct ew_scores best, last;       /* on the validation set */
    double loss_scale;                 /* of mixed-precision training; 0: none */
    int64_t loss_scale_good;           /* steps since loss_scale changed */
    int64_t parts;                     /* micro-batches; 0: unknown, or with ranks */
    int64_t data_samples;              /* of the data set's training split; 0: unknown */
    int64_t rows_bytes[EW_ROWS_COUNT]; /* sizes of the row files at the checkpoint */
};

extern const struct ew_field ew_train_position_fields[];

/* Formats an object as lines "name = value" in the table's order, without unset fields.  Free with
 * free(). */
ew_err ew_fields_text(const struct ew_field *table, const void *object, char **out);
/* Parses such lines, ignoring unknown names.  `text` is modified and must outlive the object. */
ew_err ew_fields_from_text(const struct ew_field *table, char *text, const char *what,
                           void *object);

#endif
