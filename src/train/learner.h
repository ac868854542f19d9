/* SPDX-License-Identifier: Apache-2.0 */
/* The compute side of training: the frozen part of a network as an inference plan, the trainable
 * part as a training plan.  Batches and checkpoints are the trainer's. */
#ifndef EW_TRAIN_LEARNER_H
#define EW_TRAIN_LEARNER_H

#include "plan/plan.h"
#include "train/exchange.h"

#define EW_LEARNER_INPUTS 8 /* most values between the frozen part and the trainable one */

/* The teacher of knowledge distillation. */
struct ew_teacher {
    struct ew_graph *net; /* from the same images to as many scores; NULL: none */
    double share, temperature;
};

struct ew_learner_opts {
    struct ew_optimizer optimizer;
    int loss;         /* index in ew_loss_names */
    double smoothing; /* of labels */
    struct ew_teacher teacher;
    int64_t batch;
    int threads;
    size_t memory_limit; /* of plans, weights and `reserved`; 0: none */
    int micro_batches;   /* micro-batches, with a limit; 0: as few as fit */
    size_t reserved;     /* bytes that others need, such as prefetched batches */
    size_t guest;        /* bytes of a plan that borrows this one's block between runs */
    size_t unpacked;     /* bytes of that plan's weights before they are packed into the block */
    size_t largest;      /* largest of these weights, which coexists with its packed form */
    uint64_t seed;       /* of dropout */
    size_t bucket_bytes; /* size of gradient buckets; 0: single process */
    bool sync_norms;     /* synchronised batch norm */
    bool dry;            /* compile dry plans only */
};

struct ew_learner {
    struct ew_graph *frozen, *trainable; /* frozen NULL: nothing is frozen */
    struct ew_plan *features, *train;
    struct ew_plan *teacher;              /* NULL: there is none */
    struct ew_fake_quant_weight *rounded; /* weights and biases that steps read rounded */
    int n_rounded;
    struct ew_exchange *exchange; /* with other ranks; the caller's; NULL: single process */
    int n_features;               /* inputs of `trainable` before the labels */
    int64_t batch;
    int64_t classes;   /* 0: an autoencoder, labels are ignored */
    int micro_batches; /* micro-batches */
    size_t beside;     /* bytes that others need */
    int64_t step_ns;   /* duration of the last step, if it is synchronous */
};

/* Compiles `net`, from images [N, H, W, C] or clips to scores [N, classes] or (an autoencoder) to
 * its input's shape.  Its weights are trained in place, and it must outlive the learner. */
ew_err ew_learner_open(const struct ew_graph *net, const struct ew_learner_opts *o,
                       struct ew_learner *out);
void ew_learner_close(struct ew_learner *l);

/* Runs the frozen part on a batch of images: l->n_features pointers, valid until the next call;
 * without a frozen part the images themselves. */
ew_err ew_learner_features(struct ew_learner *l, const float *images, const void **out);

/* Runs the teacher, if any, on the images of the next step. */
ew_err ew_learner_teach(struct ew_learner *l, const float *images);

/* Frees the frozen part's plan, when all features have been computed. */
void ew_learner_drop_features(struct ew_learner *l);

/* One step: forward, backward and update with learning rate `lr`; `step` seeds dropout. */
ew_err ew_learner_step(struct ew_learner *l, const void *const *features, const int64_t *labels,
                       double lr, int64_t step);

/* The same asynchronously, if the device can: up to ew_learner_depth steps may be in flight, whose
 * features and labels must not change until they are finished.  Finish waits for the oldest, and
 * sets loss and counts.  *device_ns: its time on the device. */
int ew_learner_depth(const struct ew_learner *l);
ew_err ew_learner_start(struct ew_learner *l, const void *const *features, const int64_t *labels,
                        double lr, int64_t step);
ew_err ew_learner_finish(struct ew_learner *l, int64_t *device_ns);

/* Loss of the step finished last, and how many of its *n samples were right; with micro-batches of
 * the last of them; without classes *n is 0. */
double ew_learner_loss(const struct ew_learner *l);
int64_t ew_learner_correct(const struct ew_learner *l, const int64_t *labels, int64_t *n);

/* Bytes of plans, weights and `reserved`. */
size_t ew_learner_bytes(const struct ew_learner *l);

#endif
