/* SPDX-License-Identifier: Apache-2.0 */
/* Local training.
 *
 * Fedprox and scaffold add a term to the gradient.  Steps without momentum are linear in it, so the
 * term is taken off after a plain step: w' = (w - lr g) - lr term. */
#include "federate/local_trainer.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define ORDER_STREAM 0x636c69 /* "cli" */

ew_err ew_local_trainer_open(const struct ew_local_opts *o, struct ew_graph *net,
                             struct ew_local_trainer *out)
{
    const struct ew_shape *in = &net->values[net->inputs[0]].t.shape;
    const struct ew_learner_opts l = {
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0, .momentum = o->momentum},
        .batch = o->batch,
        .threads = o->threads,
        .seed = o->seed};
    *out = (struct ew_local_trainer){.o = *o, .h = in->dim[1], .w = in->dim[2], .c = in->dim[3]};
    ew_err e = ew_weight_vector_open(net, &out->weights);
    if (e == EW_OK)
        e = ew_learner_open(net, &l, &out->learner);
    if (e == EW_OK) {
        out->before = malloc((size_t)out->weights.size * sizeof(float) + 1);
        if (!out->before)
            e = ew_fail(EW_ERR_MEMORY, "no memory for %lld weights", (long long)out->weights.size);
    }
    if (e != EW_OK)
        ew_local_trainer_close(out);
    return e;
}

void ew_local_trainer_close(struct ew_local_trainer *c)
{
    ew_learner_close(&c->learner);
    ew_weight_vector_close(&c->weights);
    free(c->before);
    free(c->order);
    *c = (struct ew_local_trainer){0};
}

const struct ew_plan *ew_local_trainer_plan(const struct ew_local_trainer *c)
{
    return c->learner.train;
}

/* Copies the server's weights and resets the optimiser. */
static ew_err begin(struct ew_local_trainer *c, const float *server)
{
    struct ew_plan *p = c->learner.train;
    ew_weight_vector_write(&c->weights, server);
    for (int i = 0; c->o.momentum > 0 && i < c->learner.trainable->n_values; i++)
        for (int k = 0; k < EW_UPDATE_STATES; k++) {
            struct ew_tensor *t = ew_plan_state(p, i, k);
            if (t)
                memset(t->data, 0, ew_tensor_bytes(t));
        }
    ew_plan_optimizer(p)->step = 0;
    return ew_plan_refresh(p);
}

/* The samples of all epochs, each in an order of its own, in whole batches. */
static ew_err make_order(struct ew_local_trainer *c, const struct ew_local_task *t, int64_t *n)
{
    const int64_t epoch = (t->n + c->o.batch - 1) / c->o.batch * c->o.batch;
    struct ew_rng r = {.seed = c->o.seed, .stream = ORDER_STREAM | t->stream << 24};
    *n = epoch * c->o.epochs;
    if (*n > c->room) {
        int64_t *order = realloc(c->order, (size_t)*n * sizeof(*order));
        EW_CHECK(order, EW_ERR_MEMORY, "no memory for the order of %lld samples", (long long)*n);
        c->order = order;
        c->room = *n;
    }
    for (int64_t e = 0; e < c->o.epochs; e++) {
        int64_t *at = c->order + e * epoch;
        memcpy(at, t->samples, (size_t)t->n * sizeof(*at));
        ew_rng_shuffle(&r, at, (size_t)t->n);
        for (int64_t i = t->n; i < epoch; i++)
            at[i] = at[i - t->n];
    }
    return EW_OK;
}

/* Applies after a step the terms that its gradient lacks. */
static ew_err correct(struct ew_local_trainer *c, const struct ew_local_task *t)
{
    struct ew_plan *p = c->learner.train;
    const float *was = c->before;
    const float pull = (float)(t->lr * c->o.mu), lr = (float)t->lr;
    int64_t at = 0;
    EW_TRY(ew_plan_pull(p));
    for (int k = 0; at < c->weights.learning; k++) {
        const struct ew_tensor *w = &c->weights.g->values[c->weights.values[k]].t;
        const int64_t n = (int64_t)(ew_tensor_bytes(w) / sizeof(float));
        float *x = w->data;
        for (int64_t i = 0; i < n; i++, at++) {
            x[i] -= pull * (was[at] - t->server[at]);
            if (t->control)
                x[i] -= lr * (t->control[at] - (t->own ? t->own[at] : 0));
        }
    }
    return ew_plan_refresh(p);
}

static ew_err step(struct ew_local_trainer *c, const struct ew_local_task *t,
                   const struct ew_batch *b, int64_t number)
{
    const bool corrects = c->o.mu > 0 || t->control;
    const void *features[EW_LEARNER_INPUTS];
    if (corrects)
        ew_weight_vector_read(&c->weights, c->before);
    EW_TRY(ew_learner_features(&c->learner, b->images, features));
    EW_TRY(ew_learner_step(&c->learner, features, b->labels, t->lr, number));
    return corrects ? correct(c, t) : EW_OK;
}

static ew_err run(struct ew_local_trainer *c, const struct ew_local_task *t, struct ew_loader *l,
                  double *loss)
{
    const int64_t all = ew_loader_batches(l), last = all - all / c->o.epochs;
    double sum = 0;
    EW_TRY(ew_loader_start(l, 0, 0));
    for (int64_t i = 0;; i++) {
        const struct ew_batch *b;
        EW_TRY(ew_loader_next(l, &b));
        if (!b)
            break;
        EW_TRY(step(c, t, b, (int64_t)(t->stream << 24) + i));
        sum += i >= last ? ew_learner_loss(&c->learner) : 0;
        ew_loader_release(l, b);
    }
    *loss = sum / (double)(all - last);
    return EW_OK;
}

ew_err ew_local_trainer_run(struct ew_local_trainer *c, const struct ew_local_task *t,
                            float *answer, double *loss, int64_t *steps)
{
    int64_t n;
    struct ew_loader *l;
    EW_TRY(begin(c, t->server));
    EW_TRY(make_order(c, t, &n));
    const struct ew_loader_opts o = {.data = c->o.data,
                                     .split = EW_SPLIT_TRAIN,
                                     .subset = c->order,
                                     .n_subset = n,
                                     .batch = c->o.batch,
                                     .pool = ew_backend_pool(ew_plan_backend(c->learner.train)),
                                     .h = c->h,
                                     .w = c->w,
                                     .c = c->c,
                                     .prep = c->o.prep};
    EW_TRY(ew_loader_open(&o, &l));
    *steps = n / c->o.batch;
    const ew_err e = run(c, t, l, loss);
    ew_loader_close(l);
    EW_TRY(e);
    EW_TRY(ew_plan_pull(c->learner.train));
    ew_weight_vector_read(&c->weights, answer);
    return EW_OK;
}
