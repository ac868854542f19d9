/* SPDX-License-Identifier: Apache-2.0 */
/* A client: some epochs of gradient descent from given weights on given samples. */
#ifndef EW_FEDERATE_LOCAL_TRAINER_H
#define EW_FEDERATE_LOCAL_TRAINER_H

#include "data/loader.h"
#include "federate/weight_vector.h"
#include "train/learner.h"

struct ew_local_opts {
    int64_t batch, epochs;
    int threads;
    double momentum;
    double mu; /* FedProx's proximal coefficient; 0: none */
    uint64_t seed;
    const struct ew_dataset *data;
    struct ew_preprocess prep;
};

struct ew_local_trainer {
    struct ew_local_opts o;
    struct ew_learner learner;
    struct ew_weight_vector weights; /* of the network */
    float *before;                   /* trainable weights before a step, for corrections */
    int64_t *order;
    int64_t room; /* of order */
    int64_t h, w, c;
};

/* Everything is borrowed. */
struct ew_local_task {
    const int64_t *samples;
    int64_t n;
    double lr;
    uint64_t stream;            /* of the order of its samples, and of dropout */
    const float *server;        /* weights to begin with */
    const float *control, *own; /* scaffold's variates; own NULL: zeros; control NULL: none */
};

/* `net` must outlive it; its weights change while it trains. */
ew_err ew_local_trainer_open(const struct ew_local_opts *o, struct ew_graph *net,
                             struct ew_local_trainer *out);
void ew_local_trainer_close(struct ew_local_trainer *c);

/* The plan, whose memory block may be lent between trainings. */
const struct ew_plan *ew_local_trainer_plan(const struct ew_local_trainer *c);

/* Trains; the weights that come out go to `answer`, the mean loss of the last epoch to *loss.  The
 * last batch of an epoch is filled up with samples of its beginning. */
ew_err ew_local_trainer_run(struct ew_local_trainer *c, const struct ew_local_task *t,
                            float *answer, double *loss, int64_t *steps);

#endif
