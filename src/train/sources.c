/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer's data: division into training and validation samples, loader or cached features, and
 * the evaluators. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "compress/pass.h"
#include "train/adapt.h"
#include "train/memory_left.h"
#include "train/trainer_impl.h"

#define ORDER_STREAM 0x76616c           /* random stream of the division: "val" */
#define EVAL_BATCH   64                 /* at most: larger is not faster */
#define EVAL_BYTES   ((size_t)64 << 20) /* of activations: smaller batches if they exceed this */

void ew_train_divide(const struct ew_dataset_info *info, const struct ew_train_opts *o,
                     int64_t *training, int64_t *validation)
{
    const int64_t n = info->count[EW_SPLIT_TRAIN];
    const bool lent = o->val_split <= 0 && info->count[EW_SPLIT_TEST] == 0;
    const double share = lent ? 0.1 : o->val_split;
    *validation = share > 0 ? ew_max_i64(1, (int64_t)(share * (double)n)) : 0;
    *training = n - *validation;
    if (o->samples > 0 && o->samples < *training)
        *training = o->samples;
}

ew_err ew_train_check_batch(const struct ew_dataset_info *info, const struct ew_train_opts *o)
{
    int64_t training, validation;
    EW_CHECK(info->count[EW_SPLIT_TRAIN] > 0, EW_ERR_ARG, "%s: has no training data%s", info->name,
             info->count[EW_SPLIT_UNLABELLED]
                 ? ", only images without classes: train takes a folder per class"
                 : "");
    ew_train_divide(info, o, &training, &validation);
    EW_CHECK(training >= o->batch, EW_ERR_ARG,
             "%s: a batch of %lld is more than its %lld samples for training; --batch makes it "
             "smaller%s",
             info->name, (long long)o->batch, (long long)training,
             validation ? ", --val-split 0 trains on all" : "");
    return EW_OK;
}

/* Divides the samples into training and validation. */
ew_err ew_trainer_divide(struct ew_trainer *t)
{
    const struct ew_train_opts *o = &t->job.opts;
    const struct ew_dataset_info *info = ew_dataset_info(t->job.data);
    const int64_t n = info->count[EW_SPLIT_TRAIN];
    EW_TRY(ew_train_check_batch(info, o));
    ew_train_divide(info, o, &t->n_training, &t->n_validation);
    if (t->n_validation && o->val_split <= 0)
        EW_INFO("%s has no test split: a tenth of the training data is for validation", info->name);
    if (t->n_training == n)
        return EW_OK;
    t->order = malloc((size_t)n * sizeof(*t->order));
    EW_CHECK(t->order, EW_ERR_MEMORY, "no memory for the order of %lld samples", (long long)n);
    for (int64_t i = 0; i < n; i++)
        t->order[i] = i;
    struct ew_rng r = {.seed = (uint64_t)o->seed, .stream = ORDER_STREAM};
    ew_rng_shuffle(&r, t->order, (size_t)n);
    return EW_OK;
}

/* Options common to all loaders of the run. */
static ew_err loader_opts(const struct ew_trainer *t, struct ew_loader_opts *out)
{
    const struct ew_train_opts *o = &t->job.opts;
    const struct ew_shape *in = &t->net->values[t->net->inputs[0]].t.shape;
    *out = (struct ew_loader_opts){.data = t->job.data,
                                   .split = EW_SPLIT_TRAIN,
                                   .batch = o->batch,
                                   .seed = (uint64_t)o->seed,
                                   .prep = t->job.prep};
    ew_loader_fit(out, in);
    return ew_load_args_apply(&o->load, out);
}

/* Memory available for cached features. */
static size_t room_left(const struct ew_trainer *t)
{
    const size_t limit = (size_t)t->job.opts.memory_limit, used = ew_learner_bytes(&t->learner);
    const size_t free_bytes = ew_memory_left();
    const size_t room = free_bytes == SIZE_MAX ? free_bytes : free_bytes / 5 * 4;
    if (limit == 0)
        return room;
    const size_t below = limit > used ? limit - used : 0;
    return below < room ? below : room;
}

static ew_err cache_training(struct ew_trainer *t, const struct ew_loader_opts *l)
{
    const struct ew_augment *a = &l->augment;
    EW_CHECK(
        !a->crop && !a->flip && !a->time && !(a->rotate > 0) && !(a->erase > 0) && !(a->zoom > 0),
        EW_ERR_USAGE, "--cache-features: features are computed once, so --augment must be none");
    const int64_t start = ew_clock_ns();
    EW_TRY(ew_features_make(&t->learner, l, room_left(t), t->job.talk, &t->features));
    t->batches = t->features.count / t->learner.batch;
    t->features_s += (double)(ew_clock_ns() - start) * 1e-9;
    struct ew_graph *frozen = NULL;
    const ew_err e = ew_adapt_cut(t->net, &frozen, &t->head);
    ew_graph_free(frozen);
    return e;
}

/* Allocates batches in pinned memory. */
static ew_err take_pinned(void *be, size_t bytes, void **out)
{
    return ew_backend_host_alloc(be, bytes, out);
}

static void give_pinned(void *be, void *p)
{
    ew_backend_host_free(be, p);
}

static ew_err open_loader(struct ew_trainer *t)
{
    struct ew_loader_opts l;
    EW_TRY(loader_opts(t, &l));
    l.drop_last = l.refill = true;
    l.slice_first = t->slice_first;
    l.slice = t->slice;
    l.shuffle = t->job.opts.shuffle;
    struct ew_backend *be = ew_plan_backend(t->learner.train);
    l.pool = ew_backend_pool(be);
    if (!t->learner.features && !t->job.teacher.net && !ew_backend_info(be)->shares_host)
        l.memory = (struct ew_loader_memory){take_pinned, give_pinned, be};
    if (t->order) {
        l.subset = t->order + t->n_validation;
        l.n_subset = t->n_training;
    }
    t->emulated = l.storage.mb_per_s > 0;
    if (t->cached)
        return cache_training(t, &l);
    t->depth = ew_learner_depth(&t->learner);
    l.hold = t->depth;
    EW_TRY(ew_loader_open(&l, &t->loader));
    t->batches = ew_loader_batches(t->loader);
    return EW_OK;
}

/* Limits an evaluation to an evenly spaced subset; the caller frees *list. */
static ew_err limit_eval(struct ew_loader_opts *l, int64_t have, int64_t want, int64_t **list)
{
    *list = NULL;
    if (want <= 0 || want >= have)
        return EW_OK;
    *list = malloc((size_t)want * sizeof(**list));
    EW_CHECK(*list, EW_ERR_MEMORY, "no memory for %lld samples", (long long)want);
    for (int64_t i = 0; i < want; i++) {
        const int64_t k = ew_subsample_index(i, want, have);
        (*list)[i] = l->subset ? l->subset[k] : k;
    }
    l->subset = *list;
    l->n_subset = want;
    return EW_OK;
}

/* This rank's share of the samples, equal to within one; *idle: none. */
static ew_err share_eval(const struct ew_trainer *t, struct ew_loader_opts *l, int64_t have,
                         int64_t **list, bool *idle)
{
    const int64_t ranks = ew_ranks_size(t->job.ranks), rank = ew_ranks_rank(t->job.ranks);
    const int64_t n = l->subset ? l->n_subset : have;
    const int64_t first = rank * n / ranks, last = (rank + 1) * n / ranks;
    *idle = last == first;
    if (ranks == 1)
        return EW_OK;
    const int64_t count = *idle ? 1 : last - first; /* loaders need a sample */
    int64_t *mine = malloc((size_t)count * sizeof(*mine));
    EW_CHECK(mine, EW_ERR_MEMORY, "no memory for %lld samples", (long long)count);
    for (int64_t i = 0; i < count; i++)
        mine[i] = l->subset ? l->subset[first + i] : first + i;
    free(*list);
    l->subset = *list = mine;
    l->n_subset = count;
    return EW_OK;
}

/* Memory of an evaluation. */
struct eval_bytes {
    size_t steps, packed; /* may be in another plan's block */
    size_t unpacked;      /* folded weights before packing */
    size_t largest;       /* largest weight */
    size_t other;
};

static ew_err eval_bytes(struct ew_graph *net, struct eval_bytes *out)
{
    struct ew_plan_stats s = {0};
    struct ew_graph *g;
    struct ew_plan *p;
    EW_TRY(ew_graph_clone(net, &g));
    ew_err e = ew_pass_all(g);
    if (e == EW_OK)
        e = ew_plan_compile(g, &(struct ew_plan_opts){.dry = true}, &p);
    if (e == EW_OK) {
        ew_plan_stats(p, &s);
        ew_plan_free(p);
    }
    *out = (struct eval_bytes){.steps = s.block_bytes,
                               .packed = s.packed_bytes,
                               .unpacked = g->arena.used,
                               .other = s.arena_bytes - s.block_bytes - s.packed_bytes};
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].t.data && ew_tensor_bytes(&g->values[i].t) > out->largest)
            out->largest = ew_tensor_bytes(&g->values[i].t);
    ew_graph_free(g);
    return e;
}

/* The batch of evaluations: large enough to be fast, small in memory (with a limit at most an
 * eighth of it); and the memory of its plan. */
static ew_err eval_batch(struct ew_graph *net, const struct ew_train_opts *o, int64_t *out,
                         struct eval_bytes *bytes)
{
    const size_t eighth = (size_t)o->memory_limit / 8;
    const size_t most = eighth && eighth < EVAL_BYTES ? eighth : EVAL_BYTES;
    *out = ew_min_i64(o->batch, EVAL_BATCH);
    for (;; *out = (*out + 1) / 2) {
        EW_TRY(ew_graph_set_batch(net, *out));
        EW_TRY(eval_bytes(net, bytes));
        if (*out == 1 || bytes->steps <= most)
            return EW_OK;
    }
}

ew_err ew_train_reserve(struct ew_graph *net, const struct ew_train_opts *o,
                        struct ew_learner_opts *l)
{
    int64_t batch;
    struct eval_bytes eval;
    EW_TRY(eval_batch(net, o, &batch, &eval));
    l->guest = eval.steps + eval.packed;
    l->unpacked = eval.unpacked;
    l->largest = eval.largest;
    const struct ew_shape *in = &net->values[net->inputs[0]].t.shape;
    const size_t image = (size_t)ew_shape_span(in, 1, in->rank) * sizeof(float);
    const size_t ring = (size_t)(o->load.workers * ew_max_i64(o->load.prefetch, 1) + 1);
    l->reserved = eval.other + image * ring * (size_t)(o->batch + batch);
    return EW_OK;
}

static ew_err eval_features(struct ew_trainer *t, const struct ew_loader_opts *l)
{
    struct ew_loader_opts f = *l;
    const struct ew_shape *in = &t->net->values[t->net->inputs[0]].t.shape;
    ew_loader_fit(&f, in);
    f.augment = (struct ew_augment){0};
    f.shuffle = false;
    return ew_features_make(&t->learner, &f, room_left(t), t->job.talk, &t->validation_features);
}

static ew_err open_evaluator(struct ew_trainer *t, struct ew_loader_opts *l, int64_t have,
                             struct ew_evaluator *out)
{
    EW_CLEANUP(ew_free_ptr) int64_t *list = NULL;
    bool idle;
    EW_TRY(limit_eval(l, have, t->job.opts.eval_samples, &list));
    EW_TRY(share_eval(t, l, have, &list, &idle));
    const int threads = (int)t->job.opts.threads;
    EW_TRY(t->loss ? ew_evaluator_open_loss(l, t->net, threads, t->loss, out)
                   : ew_evaluator_open(l, t->net, threads, out));
    const struct ew_loss *loss = ew_loss_chosen(t->job.opts.loss, t->net);
    out->confusion.loss = loss->of_labels ? NULL : loss;
    out->lender = t->learner.train;
    out->idle = idle;
    if (!t->cached || out != &t->validation)
        return EW_OK;
    const int64_t start = ew_clock_ns();
    EW_TRY(eval_features(t, l));
    t->features_s += (double)(ew_clock_ns() - start) * 1e-9;
    ew_evaluator_use(out, &t->validation_features, t->head);
    return EW_OK;
}

static ew_err open_evaluators(struct ew_trainer *t)
{
    struct ew_loader_opts l;
    const int64_t n_test = ew_dataset_info(t->job.data)->count[EW_SPLIT_TEST];
    EW_TRY(loader_opts(t, &l));
    struct eval_bytes bytes;
    EW_TRY(eval_batch(t->net, &t->job.opts, &l.batch, &bytes));
    if (t->n_validation) {
        l.subset = t->order;
        l.n_subset = t->n_validation;
        EW_TRY(open_evaluator(t, &l, t->n_validation, &t->validation));
        l.subset = NULL;
        l.n_subset = 0;
    }
    l.split = EW_SPLIT_TEST;
    if (n_test == 0)
        return EW_OK;
    t->has_test = t->n_validation > 0;
    return open_evaluator(t, &l, n_test, t->has_test ? &t->test : &t->validation);
}

ew_err ew_trainer_open_sources(struct ew_trainer *t)
{
    t->cached = t->job.opts.cache_features;
    t->depth = 1; /* cached features have one buffer */
    EW_TRY(open_loader(t));
    EW_TRY(open_evaluators(t));
    t->planned_bytes = ew_learner_bytes(&t->learner) + ew_features_bytes(&t->features) +
                       ew_features_bytes(&t->validation_features);
    if (t->cached)
        ew_learner_drop_features(&t->learner);
    return EW_OK;
}
