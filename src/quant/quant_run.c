/* SPDX-License-Identifier: Apache-2.0 */
/* Post-training quantisation: the sequence of stages, and the evaluation. */
#include "quant/quant_run.h"

#include <math.h>
#include <string.h>

#include "edgewise.h"
#include "graph/ops.h"
#include "quant/gate.h"
#include "quant/remedies.h"
#include "train/adapt.h"
#include "train/evaluate.h"

/* Sets the bias of node k of `g` to a copy of that of node `from` of another graph, or zeros. */
static ew_err restore_bias(struct ew_graph *g, int k, const struct ew_graph *before, int from)
{
    const struct ew_node *n = &g->nodes[k], *old = &before->nodes[from];
    if (n->n_in < 3 || n->in[2] < 0)
        return EW_OK;
    struct ew_tensor *t = &g->values[n->in[2]].t;
    const size_t count = (size_t)ew_tensor_count(t);
    float *bias = ew_arena_array(&g->arena, count, sizeof(*bias));
    EW_CHECK(bias, EW_ERR_MEMORY, "%s: no memory for its bias", n->name);
    memset(bias, 0, count * sizeof(*bias));
    if (old->n_in > 2 && old->in[2] >= 0)
        memcpy(bias, before->values[old->in[2]].t.data, count * sizeof(*bias));
    t->data = bias;
    return EW_OK;
}

/* Restores the uncorrected biases of layers that stay float32. */
static ew_err restore_biases(const struct ew_quant_variant *v, const bool *keep, struct ew_graph *g)
{
    for (int k = 0; keep && v->uncorrected && k < v->g->n_nodes; k++) {
        if (!keep[k] || !ew_quant_is_layer(v->g, k))
            continue;
        const int from = ew_quant_node_of(v->uncorrected->g, v->g->nodes[k].name);
        if (from >= 0)
            EW_TRY(restore_bias(g, k, v->uncorrected->g, from));
    }
    return EW_OK;
}

ew_err ew_quant_build(const struct ew_quant_job *job, const struct ew_quant_variant *v,
                      const bool *keep, struct ew_graph **out)
{
    const struct ew_quantize_opts o = {.scheme = job->opts.scheme,
                                       .ranges = v->ranges,
                                       .keep = keep,
                                       .is_signed = job->opts.is_signed,
                                       .positions = v->positions};
    struct ew_graph *g = NULL;
    ew_err e = ew_graph_clone(v->g, &g);
    if (e == EW_OK)
        e = restore_biases(v, keep, g);
    if (e == EW_OK)
        e = ew_quantize(g, &o);
    if (e != EW_OK) {
        ew_graph_free(g);
        return e;
    }
    *out = g;
    return EW_OK;
}

/* ---- Evaluation ---- */

static ew_err evaluate(const struct ew_quant_job *job, const struct ew_graph *net, const char *what,
                       struct ew_scores *out)
{
    struct ew_evaluator ev = {0};
    struct ew_progress bar;
    struct ew_graph *g = NULL;
    ew_err e = ew_graph_clone(net, &g);
    if (e == EW_OK)
        e = ew_evaluator_open(job->evaluation, g, job->opts.threads, &ev);
    ew_progress_begin(&bar, job->talk, what, ev.samples);
    if (e == EW_OK)
        e = ew_evaluator_begin(&ev, g);
    for (bool more = true; e == EW_OK && more;) {
        e = ew_evaluator_step(&ev, &more);
        ew_progress_update(&bar, ev.done);
    }
    ew_progress_end(&bar);
    if (e == EW_OK)
        *out = ew_confusion_scores(&ev.confusion);
    ew_evaluator_close(&ev);
    ew_graph_free(g);
    return e;
}

/* Builds the network by the gate's decisions, and measures its accuracy if asked to. */
static ew_err build(struct ew_quant_gate *gate, bool *good)
{
    struct ew_quant_result *r = gate->out;
    const double most = gate->job->opts.max_drop / 100;
    ew_graph_free(r->graph);
    r->graph = NULL;
    *good = true;
    /* all float32: without bias correction */
    const bool plain = r->n_float == r->n_layers;
    EW_TRY(plain ? ew_graph_clone(gate->job->net, &r->graph)
                 : ew_quant_gate_build(gate, &r->graph));
    if (!gate->job->evaluation)
        return EW_OK;
    EW_TRY(evaluate(gate->job, r->graph, "evaluating int8", &r->after));
    *good = r->before.accuracy - r->after.accuracy <= most + 1e-9; /* 52.0 - 51.5 is 0.5 */
    return EW_OK;
}

/* Keeps exactly the first `n` layers of the ranking in float32. */
static void keep_first(struct ew_quant_gate *gate, struct ew_quant_layer **order, int all, int n)
{
    for (int i = 0; i < all; i++)
        ew_quant_gate_set(gate, order[i], i < n ? "needed for --max-drop" : NULL);
}

/* Finds the fewest layers of the ranking that must stay float32 to meet the drop: doubling, then
 * bisection. */
static ew_err meet_drop(struct ew_quant_gate *gate)
{
    struct ew_quant_layer **order;
    bool good;
    int all, bad = 0, enough = 1;
    EW_TRY(ew_quant_gate_order(gate, &order, &all));
    for (;; enough = enough * 2 < all ? enough * 2 : all) {
        keep_first(gate, order, all, enough);
        EW_TRY(build(gate, &good));
        if (good || enough >= all)
            break;
        bad = enough;
    }
    gate->out->drop_met = good;
    while (good && enough - bad > 1) {
        const int middle = bad + (enough - bad) / 2;
        bool fits;
        keep_first(gate, order, all, middle);
        EW_TRY(build(gate, &fits));
        if (fits)
            enough = middle;
        else
            bad = middle;
    }
    keep_first(gate, order, all, enough);
    return build(gate, &good);
}

/* ---- Stages ---- */

/* Conversions may cost more than int8 layers gain: then nothing is quantised. */
static ew_err check_speed(struct ew_quant_gate *gate)
{
    struct ew_quant_result *r = gate->out;
    const int threads = gate->job->opts.threads;
    bool good;
    EW_TRY(ew_quant_time(r->graph, threads, NULL, 0, NULL, &r->int8_s));
    if (r->int8_s <= r->float_s)
        return EW_OK;
    for (int i = 0; i < r->n_layers; i++)
        ew_quant_gate_set(gate, &r->layers[i], "the network as a whole is slower in int8");
    EW_TRY(build(gate, &good));
    return ew_quant_time(r->graph, threads, NULL, 0, NULL, &r->int8_s);
}

static ew_err finish(struct ew_quant_gate *gate)
{
    struct ew_quant_result *r = gate->out;
    const struct ew_quant_job *job = gate->job;
    bool good;
    r->drop_met = true;
    if (job->evaluation)
        EW_TRY(evaluate(job, job->net, "evaluating float32", &r->before));
    r->evaluated = job->evaluation != NULL;
    EW_TRY(build(gate, &good));
    if (!good)
        EW_TRY(meet_drop(gate));
    if (job->opts.time)
        EW_TRY(check_speed(gate));
    r->probed = gate->probe->n;
    return ew_quant_probe_sqnr(gate->probe, r->graph, job->opts.threads, &r->sqnr_db);
}

static ew_err gate_and_finish(const struct ew_quant_job *job, const struct ew_quant_probe *probe,
                              const struct ew_quant_variant *v, struct ew_quant_result *out)
{
    struct ew_quant_gate gate = {.job = job, .probe = probe, .v = v, .out = out};
    ew_err e = ew_quant_gate_open(&gate);
    if (e == EW_OK)
        e = finish(&gate);
    ew_quant_gate_close(&gate);
    return e;
}

static int64_t weight_bytes(const struct ew_graph *g)
{
    int64_t sum = 0;
    for (int v = 0; v < g->n_values; v++)
        if (ew_value_is_weight(&g->values[v]))
            sum += (int64_t)ew_tensor_bytes(&g->values[v].t);
    return sum;
}

/* the result must not borrow constants of the variants */
ew_err ew_quant_own_weights(struct ew_graph *g)
{
    for (int v = 0; v < g->n_values; v++) {
        struct ew_tensor *t = &g->values[v].t;
        if (!ew_value_is_weight(&g->values[v]) || !t->data)
            continue;
        void *copy = ew_arena_alloc(&g->arena, ew_tensor_bytes(t));
        EW_CHECK(copy, EW_ERR_MEMORY, "no memory for the quantised weights");
        memcpy(copy, t->data, ew_tensor_bytes(t));
        t->data = copy;
    }
    return EW_OK;
}

ew_err ew_quant_run(const struct ew_quant_job *job, struct ew_quant_result *out)
{
    struct ew_quant_job own = *job;
    struct ew_quant_probe probe = {0};
    *out = (struct ew_quant_result){0};
    ew_arena_init(&out->arena);
    EW_TRY(ew_adapt_check(job->net));
    struct ew_quant_remedies remedies = {.job = &own, .probe = &probe, .out = out};
    if (own.opts.scheme == EW_QUANTIZE_POW2) {
        own.opts.time = false;
        own.opts.min_sqnr_db = -INFINITY;
        own.opts.max_drop = 100;
    }
    own.calibration.shuffle = own.calibration.drop_last = false;
    own.calibration.augment = (struct ew_augment){0};
    ew_loader_fit(&own.calibration, &job->net->values[job->net->inputs[0]].t.shape);
    ew_err e = ew_quantize_check_float(job->net);
    if (e == EW_OK)
        e = ew_quant_probe_fill(&own, &probe);
    if (e == EW_OK)
        e = ew_quant_remedies_try(&remedies);
    if (e == EW_OK)
        e = gate_and_finish(&own, &probe, remedies.best, out);
    if (e == EW_OK)
        e = ew_quant_own_weights(out->graph);
    if (e == EW_OK) /* the image card */
        e = ew_graph_notes_copy(job->net, out->graph);
    if (e == EW_OK) {
        out->float_bytes = weight_bytes(job->net);
        out->int8_bytes = weight_bytes(out->graph);
    }
    ew_quant_remedies_fini(&remedies);
    ew_quant_probe_fini(&probe);
    return e;
}

void ew_quant_result_fini(struct ew_quant_result *r)
{
    ew_graph_free(r->graph);
    ew_arena_fini(&r->arena);
    *r = (struct ew_quant_result){0};
}
