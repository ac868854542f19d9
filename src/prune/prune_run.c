/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning a network. */
#include "prune/prune_run.h"

#include <math.h>
#include <stdlib.h>

#include "base/owned.h"
#include "bench/bench.h"
#include "compress/quantize.h"
#include "format/image_card.h"
#include "train/adapt.h"
#include "train/evaluate.h"
#include "train/trainer.h"

struct work {
    const struct ew_prune_run_job *job;
    struct ew_prune_run_opts o; /* with defaults filled in */
    double base, target;        /* of the quantity, absolute */
    int *weight, *axis;         /* by layer: weight and axis of its width */
    struct ew_pruned *r;
};

static int64_t width_of(const struct work *w, int layer)
{
    return w->job->net->values[w->weight[layer]].t.shape.dim[w->axis[layer]];
}

/* ---- Target ---- */

static ew_err find_target(struct work *w)
{
    const struct ew_prune_run_opts *o = &w->o;
    const struct ew_graph *net = w->job->net;
    w->base = 1;
    if (o->by != EW_PRUNE_KEEP)
        EW_TRY(ew_prune_measure(w->job->net, o->by, (int)o->threads, &w->base));
    w->target = o->share ? o->target * w->base : o->target;
    if (o->by != EW_PRUNE_KEEP && o->by != EW_PRUNE_LATENCY)
        w->target = floor(w->target); /* counts are integers */
    EW_CHECK(w->target > 0 && (w->target < w->base || o->by == EW_PRUNE_KEEP), EW_ERR_ARG,
             "%.*g %s are asked for, %s has no more than %.*g", ew_prune_digits(o->by), w->target,
             ew_prune_by_names[o->by], net->name, ew_prune_digits(o->by), w->base);
    return EW_OK;
}

static ew_err note_layers(struct work *w, const struct ew_channels *c)
{
    struct ew_pruned *r = w->r;
    r->layers = calloc((size_t)c->n_producers + 1, sizeof(*r->layers));
    w->weight = calloc((size_t)c->n_producers + 1, sizeof(*w->weight));
    w->axis = calloc((size_t)c->n_producers + 1, sizeof(*w->axis));
    EW_CHECK(r->layers && w->weight && w->axis, EW_ERR_MEMORY, "no memory for %d layers",
             c->n_producers);
    for (int i = 0; i < c->n_producers; i++) {
        const struct ew_channel_producer *m = &c->producers[i];
        w->weight[i] = m->weight;
        w->axis[i] = m->axis;
        r->layers[i] = (struct ew_pruned_layer){.name = w->job->net->nodes[m->node].name,
                                                .before = width_of(w, i)};
    }
    r->n_layers = c->n_producers;
    return EW_OK;
}

/* Taylor scores and fine-tuning need at least one whole batch. */
static ew_err check_batches(const struct work *w)
{
    const struct ew_loader_opts *train = w->job->train;
    const bool taylor = w->o.importance == EW_IMPORTANCE_TAYLOR;
    EW_CHECK(train || (!taylor && !w->job->fine_tune), EW_ERR_ARG,
             "%s: importance by the loss and fine-tuning need training data", w->job->net->name);
    if (w->job->fine_tune)
        EW_TRY(ew_train_check_batch(ew_dataset_info(train->data), w->job->fine_tune));
    if (taylor) {
        const struct ew_dataset_info *info = ew_dataset_info(train->data);
        EW_CHECK(info->count[EW_SPLIT_TRAIN] >= w->o.batch, EW_ERR_ARG,
                 "%s: a batch of %lld is more than its %lld samples for training", info->name,
                 (long long)w->o.batch, (long long)info->count[EW_SPLIT_TRAIN]);
    }
    return EW_OK;
}

/* Fails, with the reason, if no channel can be removed. */
static ew_err check_groups(const struct ew_graph *g, const struct ew_channels *c)
{
    if (c->n_groups > 0)
        return EW_OK;
    for (int u = 0; u < c->n_units; u++)
        if (c->units[u].keeper >= 0) {
            const struct ew_node *n = &g->nodes[c->units[u].keeper];
            return ew_fail(EW_ERR_UNSUPPORTED,
                           "%s: no channel can go; %s (%s) needs all that it reads", g->name,
                           n->name, n->op->name);
        }
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: no channel can go; it has no layer between others",
                   g->name);
}

/* ---- One cut ---- */

static ew_err score(struct work *w, const struct ew_channels *c, double *scores)
{
    const struct ew_prune_run_opts *o = &w->o;
    struct ew_graph *net = w->job->net;
    if (o->importance != EW_IMPORTANCE_TAYLOR)
        return ew_importance_of_weights(net, c, o->importance, o->seed, scores);
    struct ew_taylor_opts t = {
        .loader = *w->job->train, .batches = o->score_batches, .threads = (int)o->threads};
    t.loader.batch = o->batch;
    t.loader.seed = o->seed;
    return ew_importance_taylor(net, c, &t, scores);
}

static struct ew_prune_job job_of(struct work *w, const struct ew_channels *c, const double *scores,
                                  double target)
{
    return (struct ew_prune_job){
        .g = w->job->net,
        .channels = c,
        .scores = scores,
        .by = w->o.by,
        .target = target,
        .rule = {.global = w->o.global, .align = (int)w->o.align, .threads = (int)w->o.threads}};
}

static ew_err cut_units(struct work *w, const struct ew_channels *c, double target)
{
    EW_CLEANUP(ew_free_ptr) void *scores = calloc((size_t)c->n_units + 1, sizeof(double));
    EW_CLEANUP(ew_free_ptr) void *gone = calloc((size_t)c->n_units + 1, sizeof(bool));
    struct ew_prune_found found;
    EW_CHECK(scores && gone, EW_ERR_MEMORY, "no memory for %d channels", c->n_units);
    EW_TRY(score(w, c, scores));
    EW_TRY(ew_graph_set_batch(w->job->net, 1));
    const struct ew_prune_job j = job_of(w, c, scores, target);
    EW_TRY(ew_prune_search(&j, gone, &found));
    return ew_channels_remove(w->job->net, c, gone, false);
}

static ew_err cut(struct work *w, double target)
{
    struct ew_channels c;
    EW_TRY(ew_graph_set_batch(w->job->net, 1));
    ew_err e = ew_channels_find(w->job->net, &c);
    if (e == EW_OK)
        e = cut_units(w, &c, target);
    ew_channels_fini(&c);
    return e;
}

/* Checks that the target can be reached, and counts what there is to prune. */
static ew_err look(struct work *w, const struct ew_channels *c)
{
    EW_CLEANUP(ew_free_ptr) void *scores = calloc((size_t)c->n_units + 1, sizeof(double));
    EW_CLEANUP(ew_free_ptr) void *gone = calloc((size_t)c->n_units + 1, sizeof(bool));
    double least;
    EW_CHECK(scores && gone, EW_ERR_MEMORY, "no memory for %d channels", c->n_units);
    EW_TRY(check_groups(w->job->net, c));
    EW_TRY(note_layers(w, c));
    const struct ew_prune_job j = job_of(w, c, scores, w->target);
    EW_TRY(ew_prune_reach(&j, gone, &least));
    return w->o.importance == EW_IMPORTANCE_TAYLOR ? EW_OK : score(w, c, scores);
}

static ew_err check_work(struct work *w)
{
    struct ew_channels c;
    ew_err e = ew_channels_find(w->job->net, &c);
    if (e == EW_OK)
        e = look(w, &c);
    ew_channels_fini(&c);
    return e;
}

/* ---- Fine-tuning ---- */

static ew_err evaluate(struct work *w, double *out)
{
    struct ew_evaluator e;
    struct ew_scores s;
    *out = (double)NAN;
    if (!w->job->test)
        return EW_OK;
    EW_TRY(ew_evaluator_open(w->job->test, w->job->net, (int)w->o.threads, &e));
    const ew_err err = ew_evaluator_run(&e, w->job->net, &s);
    ew_evaluator_close(&e);
    *out = s.accuracy;
    return err;
}

/* Sets which weights are frozen, overriding the file. */
static ew_err freeze(struct work *w)
{
    struct ew_graph *net = w->job->net;
    int n;
    for (int v = 0; v < net->n_values; v++)
        net->values[v].frozen = false;
    const char *what = w->job->fine_tune ? w->job->fine_tune->freeze : NULL;
    return what ? ew_adapt_freeze(net, what, &n) : EW_OK;
}

static ew_err fine_tune(struct work *w)
{
    struct ew_graph *net = w->job->net;
    const struct ew_train_job job = {.net = net,
                                     .data = w->job->train->data,
                                     .opts = *w->job->fine_tune,
                                     .options = "",
                                     .prep = w->job->train->prep};
    struct ew_trainer *t;
    enum ew_train_event event = EW_TRAIN_BATCH;
    EW_TRY(freeze(w)); /* a cut replaces weights */
    EW_TRY(ew_trainer_open(&job, &t));
    ew_err e = EW_OK;
    while (e == EW_OK && event != EW_TRAIN_DONE) {
        e = ew_trainer_step(t, &event);
        if (e == EW_OK && event == EW_TRAIN_EPOCH && w->job->talk) {
            const struct ew_epoch_row *row = ew_trainer_epoch(t);
            fprintf(w->job->talk, "epoch %lld: loss %.4f, accuracy %.2f %%, %.1f s\n",
                    (long long)row->epoch, row->train_loss, 100 * row->accuracy, row->wall_s);
        }
    }
    ew_trainer_close(t);
    EW_TRY(e);
    EW_TRY(ew_image_card_random(net, false)); /* the weights are trained now */
    return evaluate(w, &w->r->accuracy_after);
}

/* Cuts form a geometric sequence: each removes the same share of what is left. */
static ew_err prune(struct work *w)
{
    const struct ew_prune_run_opts *o = &w->o;
    EW_TRY(evaluate(w, &w->r->accuracy_before));
    for (int64_t i = 1; i <= o->steps; i++) {
        const double all = w->base * pow(w->target / w->base, (double)i / (double)o->steps);
        const double step = pow(w->target, 1.0 / (double)o->steps);
        EW_TRY(cut(w, o->by == EW_PRUNE_KEEP ? step : i == o->steps ? w->target : all));
        EW_TRY(evaluate(w, &w->r->accuracy_cut));
        w->r->accuracy_after = w->r->accuracy_cut;
        if (w->job->test && w->job->talk)
            fprintf(w->job->talk, "cut %lld of %lld: accuracy %.2f %%\n", (long long)i,
                    (long long)o->steps, 100 * w->r->accuracy_cut);
        if (w->job->fine_tune)
            EW_TRY(fine_tune(w));
    }
    if (!w->job->fine_tune)
        w->r->accuracy_cut = (double)NAN; /* equal to accuracy_after */
    return EW_OK;
}

static ew_err run(struct work *w)
{
    struct ew_graph *net = w->job->net;
    EW_TRY(check_batches(w));
    EW_TRY(ew_quantize_check_float(net));
    EW_TRY(ew_graph_set_batch(net, 1));
    EW_TRY(freeze(w)); /* reports a pattern without matches before the work */
    EW_TRY(find_target(w));
    EW_TRY(check_work(w));
    EW_TRY(ew_graph_cost(net, &w->r->cost_before, NULL));
    EW_TRY(prune(w));
    EW_TRY(ew_graph_set_batch(net, 1));
    for (int i = 0; i < w->r->n_layers; i++)
        w->r->layers[i].after = width_of(w, i);
    return ew_graph_cost(net, &w->r->cost_after, NULL);
}

ew_err ew_prune_run(const struct ew_prune_run_job *job, struct ew_pruned *out)
{
    struct work w = {.job = job, .o = job->opts, .r = out};
    *out = (struct ew_pruned){0};
    w.o.steps = w.o.steps ? w.o.steps : 1;
    w.o.score_batches = w.o.score_batches ? w.o.score_batches : 16;
    w.o.batch = w.o.batch ? w.o.batch : 64;
    const ew_err e = run(&w);
    free(w.weight);
    free(w.axis);
    return e;
}

void ew_pruned_fini(struct ew_pruned *p)
{
    free(p->layers);
    *p = (struct ew_pruned){0};
}

/* ---- Before and after ---- */

ew_err ew_prune_compare(struct ew_graph *before, struct ew_graph *after, int threads,
                        struct ew_pruned *out)
{
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER, .optimize = true, .backend = {.threads = threads}};
    const struct ew_bench_opts b = {.warmup = 3, .iters = 32, .trials = 1};
    struct ew_bench_side sides[2] = {{0}};
    struct ew_graph *const graphs[2] = {before, after};
    ew_err e = EW_OK;
    for (int i = 0; e == EW_OK && i < 2; i++) {
        e = ew_graph_set_batch(graphs[i], 1);
        if (e == EW_OK)
            e = ew_plan_compile(graphs[i], &po, &sides[i].p);
        if (e == EW_OK)
            ew_bench_fill(sides[i].p, graphs[i], 2, 1);
    }
    if (e == EW_OK)
        e = ew_bench_interleave(sides, 2, &b, NULL, NULL);
    out->ms_before = sides[0].time.median_ms;
    out->ms_after = sides[1].time.median_ms;
    out->ratio = sides[1].ratio;
    ew_plan_free(sides[0].p);
    ew_plan_free(sides[1].p);
    return e;
}
