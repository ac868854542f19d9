/* SPDX-License-Identifier: Apache-2.0 */
/* The computing side of training: a network, its frozen part run as inference, the rest as a
 * training plan.  Where batches come from and what is kept of them is left to the trainer. */
#ifndef EW_TRAIN_LEARNER_H
#define EW_TRAIN_LEARNER_H

#include "plan/plan.h"
#include "train/exchange.h"

#define EW_LEARNER_INPUTS 8 /* values that the frozen part may hand to the rest */

/* A network whose scores another one learns from. */
struct ew_teacher {
    struct ew_graph *net; /* the same images to as many scores; NULL: there is none */
    double share, temperature;
};

struct ew_learner_opts {
    struct ew_optimizer optimizer;
    int loss;         /* one of ew_loss_names */
    double smoothing; /* of labels */
    struct ew_teacher teacher;
    int64_t batch;
    int threads;
    size_t memory_limit; /* of plans, weights and what is reserved; 0: none */
    int parts;           /* in which a limit has the batch run; 0: as few as fit */
    size_t reserved;     /* bytes that others need: batches on their way, for example */
    size_t guest;        /* bytes of a plan that is lent this one's block between runs */
    size_t unpacked;     /* bytes of weights that it has until it has packed them into the block */
    size_t largest;      /* of them, which is there while it is packed */
    uint64_t seed;       /* of dropout */
    size_t bucket_bytes; /* gradients are exchanged in such buckets; 0: they are not */
    bool sync_norms;     /* and batch norms' statistics too */
    bool dry;            /* only to know sizes */
};

struct ew_learner {
    struct ew_graph *frozen, *rest; /* frozen NULL: nothing is */
    struct ew_plan *features, *train;
    struct ew_plan *teacher;          /* NULL: there is none */
    struct ew_rounded_value *rounded; /* weights and biases that steps see rounded */
    int n_rounded;
    struct ew_exchange *exchange; /* with other ranks, the caller's; NULL: there are none */
    int n_features;               /* inputs of `rest` before the labels */
    int64_t batch;
    int64_t classes; /* 0: the network gives back its input, and labels do not matter */
    int parts;       /* in which the batch is run */
    size_t beside;   /* bytes that others need */
    int64_t step_ns; /* of the last step, where the host has a part in it */
};

/* Compiles `net`, which takes images [N, H, W, C] or clips and ends in scores [N, classes] or in
 * what it took; its weights are the ones that learn, and it must outlive the learner. */
ew_err ew_learner_open(const struct ew_graph *net, const struct ew_learner_opts *o,
                       struct ew_learner *out);
void ew_learner_close(struct ew_learner *l);

/* The frozen part's outputs for a batch of images: one pointer for each of l->n_features, valid
 * until the next call.  Without a frozen part: the images themselves. */
ew_err ew_learner_features(struct ew_learner *l, const float *images, const void **out);

/* Asks the teacher, where there is one, about the images of the next step. */
ew_err ew_learner_teach(struct ew_learner *l, const float *images);

/* Gives back the frozen part's memory, once all its outputs have been computed. */
void ew_learner_drop_features(struct ew_learner *l);

/* One step: forward, backward and update at the rate `lr`; step `step` fixes what dropout draws. */
ew_err ew_learner_step(struct ew_learner *l, const void *const *features, const int64_t *labels,
                       double lr, int64_t step);

/* The same without waiting, where the device can: up to ew_learner_depth steps may be under way,
 * whose features and labels stay as they are until they are finished; finish is for the oldest, of
 * which loss and counts then are.  *device_ns: the device's time for it. */
int ew_learner_depth(const struct ew_learner *l);
ew_err ew_learner_start(struct ew_learner *l, const void *const *features, const int64_t *labels,
                        double lr, int64_t step);
ew_err ew_learner_finish(struct ew_learner *l, int64_t *device_ns);

/* Of the step that was finished last: its loss, and how many of *n samples were right.  Where the
 * batch is run in parts, the last part is counted; without classes *n is 0. */
double ew_learner_loss(const struct ew_learner *l);
int64_t ew_learner_correct(const struct ew_learner *l, const int64_t *labels, int64_t *n);

/* Bytes of plans, weights and what others need beside them. */
size_t ew_learner_bytes(const struct ew_learner *l);

#endif
