/* SPDX-License-Identifier: Apache-2.0 */
/* Optimiser steps, and their place in the plan. */
#include "plan/update.h"

#include <math.h>
#include <string.h>

#include "plan/plan_impl.h"

#define CHUNK 256

const char *const ew_optimizer_names[] = {
#define EW_OPTIMIZER_NAME(id, name, states) name,
    EW_OPTIMIZER_MAP(EW_OPTIMIZER_NAME)
#undef EW_OPTIMIZER_NAME
        NULL};

int ew_optimizer_states(const struct ew_optimizer *o)
{
    static const int states[] = {
#define EW_OPTIMIZER_STATES(id, name, n) n,
        EW_OPTIMIZER_MAP(EW_OPTIMIZER_STATES)
#undef EW_OPTIMIZER_STATES
    };
    const bool no_momentum = o->kind == EW_OPTIMIZER_SGD && !(o->momentum > 0);
    return no_momentum ? 0 : states[o->kind];
}

/* One chunk of a parameter: w, g, and the two state tensors. */
struct chunk {
    int64_t n;
    double w[CHUNK], g[CHUNK], s[EW_UPDATE_STATES][CHUNK];
};

static void step_sgd(const struct ew_optimizer *o, struct chunk *c)
{
    const bool nesterov = o->kind == EW_OPTIMIZER_NESTEROV;
    for (int64_t i = 0; i < c->n; i++) {
        const double g = c->g[i] + o->weight_decay * c->w[i];
        c->s[0][i] = o->momentum * c->s[0][i] + g;
        c->w[i] -= o->lr * (nesterov ? g + o->momentum * c->s[0][i] : c->s[0][i]);
    }
}

static void step_adam(const struct ew_optimizer *o, struct chunk *c)
{
    const double t = (double)(o->step + 1);
    const double bias1 = 1 - pow(o->beta1, t), bias2 = 1 - pow(o->beta2, t);
    const bool decoupled = o->kind == EW_OPTIMIZER_ADAMW;
    for (int64_t i = 0; i < c->n; i++) {
        double g = c->g[i];
        if (decoupled)
            c->w[i] -= o->lr * o->weight_decay * c->w[i];
        else
            g += o->weight_decay * c->w[i];
        c->s[0][i] = o->beta1 * c->s[0][i] + (1 - o->beta1) * g;
        c->s[1][i] = o->beta2 * c->s[1][i] + (1 - o->beta2) * g * g;
        c->w[i] -= o->lr * (c->s[0][i] / bias1) / (sqrt(c->s[1][i] / bias2) + o->eps);
    }
}

ew_err ew_update_run(const struct ew_call *call)
{
    const struct ew_optimizer *o = call->attr;
    const int64_t count = ew_tensor_count(call->in[0]);
    struct chunk c;
    for (int64_t at = 0; at < count; at += CHUNK) {
        c.n = ew_min_i64(CHUNK, count - at);
        memset(c.s, 0, sizeof(c.s));
        ew_tensor_load(call->in[0], at, c.n, c.w);
        ew_tensor_load(call->in[1], at, c.n, c.g);
        for (int i = 2; i < call->n_in; i++)
            ew_tensor_load(call->in[i], at, c.n, c.s[i - 2]);
        if (o->kind == EW_OPTIMIZER_ADAM || o->kind == EW_OPTIMIZER_ADAMW)
            step_adam(o, &c);
        else
            step_sgd(o, &c);
        ew_tensor_store(call->in[0], at, c.n, c.w);
        for (int i = 2; i < call->n_in; i++)
            ew_tensor_store(call->in[i], at, c.n, c.s[i - 2]);
    }
    return EW_OK;
}

static ew_err add_update(struct ew_plan *p, int value, int states)
{
    struct ew_step *s;
    EW_TRY(ew_plan_step_new(p, &s));
    struct ew_tensor **in = ew_arena_array(&p->arena, 2 + EW_UPDATE_STATES, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "no memory for a step");
    const int step = p->n_steps - 1;
    in[0] = &p->values[value].t;
    in[1] = &p->grads[value].t;
    ew_plan_touch(&p->grads[value], step);
    for (int i = 0; i < states; i++) {
        in[2 + i] = &p->state[i][value].t;
        ew_plan_touch(&p->state[i][value], 0); /* it lives from run to run */
        ew_plan_touch(&p->state[i][value], INT32_MAX);
    }
    s->phase = EW_PHASE_UPDATE;
    s->when = EW_WHEN_LAST_PART;
    s->kernel = (struct ew_kernel){.name = ew_optimizer_names[p->opts.optimizer.kind],
                                   .run = ew_update_run};
    s->call = (struct ew_call){
        .name = p->g->values[value].name, .attr = &p->opts.optimizer, .n_in = 2 + states, .in = in};
    return EW_OK;
}

ew_err ew_plan_add_updates(struct ew_plan *p)
{
    const int states = ew_optimizer_states(&p->opts.optimizer);
    for (int i = 0; i < p->g->n_values; i++)
        if (p->g->values[i].kind == EW_VALUE_PARAM && p->grads[i].first >= 0)
            EW_TRY(add_update(p, i, states));
    return EW_OK;
}
