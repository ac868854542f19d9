/* SPDX-License-Identifier: Apache-2.0 */
/* First-order Taylor importance over labelled batches. */
#include <stdlib.h>
#include <string.h>

#include "model/objective.h"
#include "plan/plan.h"
#include "prune/importance.h"
#include "train/adapt.h"

/* A training plan without updates, on a copy of the network. */
struct probe {
    struct ew_graph *g;
    struct ew_plan *plan;
    int64_t batch;
    double *change; /* by unit: sum of weight x gradient over one batch */
    bool *normed;   /* by unit: has a batch norm */
};

static void probe_close(struct probe *p)
{
    ew_plan_free(p->plan);
    ew_graph_free(p->g);
    free(p->change);
    free(p->normed);
}

/* Gives the copy its own running statistics, which training mode updates. */
static ew_err own_states(struct ew_graph *g)
{
    for (int v = 0; v < g->n_values; v++) {
        struct ew_tensor *t = &g->values[v].t;
        if (g->values[v].kind != EW_VALUE_STATE || !t->data)
            continue;
        void *copy = ew_arena_alloc(&g->arena, ew_tensor_bytes(t));
        EW_CHECK(copy, EW_ERR_MEMORY, "no memory for %s", g->values[v].name);
        memcpy(copy, t->data, ew_tensor_bytes(t));
        t->data = copy;
    }
    return EW_OK;
}

static int scale_of(const struct ew_graph *g, const struct ew_channels *c, int node)
{
    const struct ew_node *n = &g->nodes[node];
    const int scale = n->op->flags & EW_OP_BATCH_NORM ? n->in[1] : -1;
    return scale >= 0 && scale < c->n_values && c->of[scale][0] ? scale : -1;
}

static ew_err probe_open(const struct ew_graph *net, const struct ew_channels *c,
                         const struct ew_taylor_opts *o, struct probe *p)
{
    const struct ew_plan_opts po = {.mode = EW_PLAN_TRAIN, .backend = {.threads = o->threads}};
    EW_TRY(ew_graph_clone(net, &p->g));
    EW_TRY(own_states(p->g));
    EW_TRY(ew_graph_set_batch(p->g, o->loader.batch));
    p->batch = ew_graph_images(p->g); /* another, where it is fixed */
    EW_TRY(ew_objective_add(p->g));
    EW_TRY(ew_graph_infer(p->g));
    EW_TRY(ew_plan_compile(p->g, &po, &p->plan));
    p->change = calloc((size_t)c->n_units + 1, sizeof(*p->change));
    p->normed = calloc((size_t)c->n_units + 1, sizeof(*p->normed));
    EW_CHECK(p->change && p->normed, EW_ERR_MEMORY, "no memory for %d channels", c->n_units);
    for (int k = 0; k < net->n_nodes; k++) {
        const int scale = scale_of(net, c, k);
        for (int64_t i = 0; scale >= 0 && i < ew_tensor_count(&net->values[scale].t); i++)
            p->normed[c->of[scale][0][i]] = true;
    }
    return EW_OK;
}

/* Adds weight x gradient along one axis by unit; `normed`: of units with a batch norm, else of the
 * others. */
static void add_products(struct probe *p, const struct ew_channels *c, int v, int axis, bool normed)
{
    const struct ew_tensor *w = v >= 0 ? &p->g->values[v].t : NULL;
    const struct ew_tensor *dw = v >= 0 && c->of[v][axis] ? ew_plan_grad(p->plan, v) : NULL;
    if (!dw || !dw->data || !w->data || w->dtype != EW_F32)
        return;
    const int64_t inner = ew_shape_span(&w->shape, axis + 1, w->shape.rank);
    const int64_t d = w->shape.dim[axis];
    const float *a = w->data, *b = dw->data;
    for (int64_t i = 0; i < ew_tensor_count(w); i++) {
        const int u = c->of[v][axis][i / inner % d];
        if (p->normed[u] == normed)
            p->change[u] += (double)a[i] * (double)b[i];
    }
}

static ew_err add_batch(struct probe *p, const struct ew_channels *c, const struct ew_batch *b,
                        double *scores)
{
    struct ew_tensor *x = ew_plan_input(p->plan, 0);
    memcpy(x->data, b->images, ew_tensor_bytes(x));
    if (p->g->n_inputs > 1) { /* else the target is the input */
        struct ew_tensor *labels = ew_plan_input(p->plan, 1);
        memcpy(labels->data, b->labels, ew_tensor_bytes(labels));
    }
    EW_TRY(ew_plan_run(p->plan));
    memset(p->change, 0, (size_t)c->n_units * sizeof(*p->change));
    for (int k = 0; k < p->g->n_nodes; k++) {
        const int scale = scale_of(p->g, c, k);
        if (scale >= 0) {
            add_products(p, c, scale, 0, true);
            add_products(p, c, p->g->nodes[k].in[2], 0, true);
        }
    }
    for (int m = 0; m < c->n_producers; m++) {
        add_products(p, c, c->producers[m].weight, c->producers[m].axis, false);
        if (c->producers[m].bias >= 0)
            add_products(p, c, c->producers[m].bias,
                         p->g->values[c->producers[m].bias].t.shape.rank - 1, false);
    }
    for (int u = 0; u < c->n_units; u++)
        scores[u] += p->change[u] * p->change[u];
    return EW_OK;
}

static ew_err run_batches(struct probe *p, const struct ew_channels *c, int64_t batches,
                          struct ew_loader *l, double *scores)
{
    ew_err e = ew_loader_start(l, 0, 0);
    int64_t n = 0;
    while (e == EW_OK && n < batches) {
        const struct ew_batch *b = NULL;
        e = ew_loader_next(l, &b);
        if (e != EW_OK || !b)
            break;
        e = add_batch(p, c, b, scores);
        n++;
        ew_loader_release(l, b);
    }
    EW_TRY(e);
    EW_CHECK(n > 0, EW_ERR_ARG, "the data has no whole batch of %lld", (long long)p->batch);
    for (int u = 0; u < c->n_units; u++)
        scores[u] /= (double)n;
    return EW_OK;
}

ew_err ew_importance_taylor(struct ew_graph *g, const struct ew_channels *c,
                            const struct ew_taylor_opts *o, double *scores)
{
    struct probe p = {0};
    struct ew_loader *l = NULL;
    struct ew_loader_opts lo = o->loader;
    EW_TRY(ew_adapt_check(g));
    ew_loader_fit(&lo, &g->values[g->inputs[0]].t.shape);
    lo.shuffle = true;
    lo.drop_last = true;
    memset(scores, 0, (size_t)c->n_units * sizeof(*scores));
    ew_err e = probe_open(g, c, o, &p);
    lo.batch = p.batch;
    if (e == EW_OK)
        e = ew_loader_open(&lo, &l);
    if (e == EW_OK)
        e = run_batches(&p, c, o->batches, l, scores);
    ew_loader_close(l);
    probe_close(&p);
    return e;
}
