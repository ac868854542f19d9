/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of a CUDA device, captured into CUDA graphs.
 *
 * The first run launches each kernel: libraries load their kernels lazily, and ours read the
 * constants that they need.  The second run is captured, and later runs launch the graph.  Activity
 * of other threads on the card can make a capture fail: that run then launches kernels as the first
 * did, and the next run tries again, up to CAPTURES times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda_state.h"
#include "base/mem.h"
#include "graph/ops.h"
#include "op/optimizer.h"

#define CAPTURES 4 /* failed captures before giving up */

struct cuda_program {
    struct ew_program base;
    bool warm;
    void *graph;
    int failed;        /* failed captures */
    bool reads_rates;  /* some command reads rates */
    bool reads_random; /* some command draws random numbers */
    struct ew_cuda_updates *updates;
    struct ew_cuda_net_program *net; /* covers the first commands in two launches; NULL: none */
    int n;
    struct ew_command commands[];
};

void ew_cuda_unload(struct ew_program *p)
{
    struct cuda_program *l = (struct cuda_program *)p;
    ew_cuda(p->be)->cu->graph_free(l->graph);
    ew_cuda_updates_free(&((struct ew_cuda_state *)p->be)->cuda, l->updates);
    ew_cuda_net_program_free(&((struct ew_cuda_state *)p->be)->cuda, l->net);
    free(l);
}

ew_err ew_cuda_load(struct ew_backend *be, const struct ew_command *commands, int n,
                    struct ew_program **out)
{
    struct cuda_program *l = malloc(sizeof(*l) + (size_t)n * sizeof(*commands));
    EW_CHECK(l, EW_ERR_MEMORY, "no memory for %d steps", n);
    *l = (struct cuda_program){.base.be = be, .n = n};
    memcpy(l->commands, commands, (size_t)n * sizeof(*commands));
    for (int k = 0; k < n; k++) {
        l->reads_random =
            l->reads_random || (commands[k].call && commands[k].call->op == &ew_op_dropout);
        l->reads_rates = l->reads_rates || l->reads_random || commands[k].phase != EW_PHASE_FORWARD;
    }
    struct ew_cuda *cuda = &((struct ew_cuda_state *)be)->cuda;
    ew_err e = ew_cuda_updates_new(cuda, commands, n, &l->updates);
    if (e == EW_OK)
        e = ew_cuda_net_program_new(cuda, commands, n, &l->net);
    if (e != EW_OK)
        ew_cuda_unload(&l->base);
    else
        *out = &l->base;
    return e;
}

static ew_err start_one(struct ew_cuda *be, const struct cuda_program *l, int k)
{
    const struct ew_command *c = &l->commands[k];
    be->node = c->node;
    be->update = ew_cuda_update_at(l->updates, k);
    return ew_fail_in(c->kernel->run(c->call), "node %s", c->call->name);
}

static ew_err start_all(struct ew_cuda *be, const struct cuda_program *l)
{
    if (l->net)
        EW_TRY(ew_cuda_net_program_start(be, l->net));
    for (int k = ew_cuda_net_program_end(l->net); k < l->n; k++)
        EW_TRY(start_one(be, l, k));
    return EW_OK;
}

static ew_err capture(struct ew_cuda *be, struct cuda_program *l)
{
    void *graph = NULL;
    EW_CUDA_TRY(be->cu, capture_begin(be->q));
    ew_err e = start_all(be, l);
    const int status = be->cu->capture_end(be->q, &graph);
    if (e == EW_OK)
        e = ew_cuda_check(be->cu, status, "capture_end");
    if (e == EW_OK)
        l->graph = graph;
    else
        be->cu->graph_free(graph);
    return e;
}

/* Launches every command separately, between events. */
static ew_err run_timed(struct ew_cuda *be, const struct cuda_program *l, int64_t *ns)
{
    void **events = calloc((size_t)l->n + 1, sizeof(*events));
    EW_CHECK(events, EW_ERR_MEMORY, "no memory for %d events", l->n);
    int status = 0;
    ew_err e = EW_OK;
    for (int k = 0; k <= l->n && !status; k++)
        status = be->cu->event_new(1, &events[k]);
    for (int k = 0; k <= l->n && !status && e == EW_OK; k++) {
        status = be->cu->event_record(be->q, events[k]);
        e = k < l->n && !status ? start_one(be, l, k) : EW_OK;
    }
    status = status ? status : be->cu->queue_wait(be->q);
    for (int k = 0; k < l->n && !status && e == EW_OK; k++) {
        float ms = 0;
        status = be->cu->event_ms(events[k], events[k + 1], &ms);
        ns[k] = (int64_t)(ms * 1e6f);
    }
    for (int k = 0; k <= l->n; k++)
        be->cu->event_free(events[k]);
    free(events);
    return e != EW_OK ? e : ew_cuda_check(be->cu, status, "timing");
}

static struct ew_cuda_rates rates_of(const struct cuda_program *l,
                                     const struct ew_run_params *params)
{
    const struct ew_optimizer *o = params->optimizer;
    struct ew_cuda_rates r = {.key = l->reads_random ? params->key : 0, .scaled = o != NULL};
    if (!o)
        return r;
    const double t = (double)(o->step + 1);
    const bool adaptive = o->kind == EW_OPTIMIZER_ADAM || o->kind == EW_OPTIMIZER_ADAMW;
    r.lr = o->lr;
    r.momentum = o->momentum;
    r.weight_decay = o->weight_decay;
    r.beta1 = o->beta1;
    r.beta2 = o->beta2;
    r.eps = o->eps;
    r.bias1 = adaptive ? 1 - pow(o->beta1, t) : 1;
    r.bias2 = adaptive ? 1 - pow(o->beta2, t) : 1;
    return r;
}

static bool is_same(const struct ew_cuda_rates *a, const struct ew_cuda_rates *b)
{
    const double *x[] = {&a->lr,    &a->momentum, &a->weight_decay, &a->beta1,
                         &a->beta2, &a->eps,      &a->bias1,        &a->bias2};
    const double *y[] = {&b->lr,    &b->momentum, &b->weight_decay, &b->beta1,
                         &b->beta2, &b->eps,      &b->bias1,        &b->bias2};
    bool same = a->scaled == b->scaled && a->key == b->key;
    for (size_t i = 0; i < EW_COUNT(x); i++)
        same = same && !memcmp(x[i], y[i], sizeof(double));
    return same;
}

/* Copies rates to the device; it is a launch, so only if they are read and have changed. */
static ew_err set_rates(struct ew_cuda *be, const struct cuda_program *l,
                        const struct ew_run_params *params)
{
    if (!l->reads_rates)
        return EW_OK;
    const struct ew_cuda_rates rates = rates_of(l, params);
    if (be->has_rates && is_same(&rates, &be->last_rates))
        return EW_OK;
    be->has_rates = false;
    EW_CUDA_TRY(be->cu, set_rates(be->q, be->rates, &rates));
    be->last_rates = rates;
    be->has_rates = true;
    return EW_OK;
}

ew_err ew_cuda_run(struct ew_program *p, const struct ew_run_params *params, int64_t *ns)
{
    struct cuda_program *l = (struct cuda_program *)p;
    struct ew_cuda *be = &((struct ew_cuda_state *)p->be)->cuda;
    EW_TRY(set_rates(be, l, params));
    ((struct ew_cuda_state *)p->be)->running = true;
    if (ns)
        return run_timed(be, l, ns);
    if (!l->warm) {
        l->warm = true;
        return start_all(be, l);
    }
    if (!l->graph && l->failed < CAPTURES)
        l->failed += capture(be, l) != EW_OK;
    if (!l->graph)
        return start_all(be, l);
    return ew_cuda_check(be->cu, be->cu->graph_launch(be->q, l->graph), "graph_launch");
}

ew_err ew_cuda_loss_scale(struct ew_backend *b, struct ew_loss_scale *v, bool set)
{
    struct ew_cuda *be = &((struct ew_cuda_state *)b)->cuda;
    struct ew_cuda_scale s = {.scale = (float)v->scale, .good = (int)v->good};
    if (!be->scale)
        return EW_OK;
    EW_CUDA_TRY(be->cu, queue_wait(be->q));
    if (set)
        EW_CUDA_TRY(be->cu, copy(be->q, be->scale, &s, sizeof(s), EW_CUDA_TO_DEVICE));
    else
        EW_CUDA_TRY(be->cu, copy(be->q, &s, be->scale, sizeof(s), EW_CUDA_TO_HOST));
    EW_CUDA_TRY(be->cu, queue_wait(be->q));
    *v = (struct ew_loss_scale){.scale = (double)s.scale, .good = s.good};
    return EW_OK;
}
