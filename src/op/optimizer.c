/* SPDX-License-Identifier: Apache-2.0 */
/* Reference implementation of the optimisers. */
#include "op/optimizer.h"

#include <math.h>
#include <string.h>

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
