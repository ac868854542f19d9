/* SPDX-License-Identifier: Apache-2.0 */
/* The compute side of training. */
#include "train/learner.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compress/fake_quant.h"
#include "graph/ops.h"
#include "model/objective.h"
#include "op/math_attr.h"
#include "train/adapt.h"
#include "train/scores.h"

/* Adds inputs "labels" and "teacher", and the distillation loss as the first output. */
static ew_err add_distillation(struct ew_graph *g, const struct ew_teacher *t)
{
    const struct ew_distillation_attr a = {t->share, t->temperature};
    EW_TRY(ew_objective_add(g)); /* adds the labels; its loss is replaced */
    const int scores = g->outputs[1];
    const struct ew_shape s = g->values[scores].t.shape;
    int in[3] = {scores, ew_graph_find(g, "labels")}, loss;
    EW_TRY(ew_graph_input(g, "teacher", EW_F32, &s, &in[2]));
    EW_TRY(ew_graph_add(g, &ew_op_distillation, "distillation", &a, ew_inputs(in, 3), &loss));
    g->outputs[0] = loss;
    return ew_graph_infer(g);
}

/* Adds labels, loss and label smoothing. */
static ew_err add_loss(struct ew_graph *g, const struct ew_learner_opts *o)
{
    const struct ew_loss *loss = ew_loss_chosen(o->loss, g);
    EW_TRY(ew_objective_add_loss(g, loss));
    const int node = g->values[g->outputs[0]].producer;
    if (loss->of_labels)
        ((struct ew_loss_attr *)g->nodes[node].attr)->smoothing = o->smoothing;
    return EW_OK;
}

static ew_err compile_frozen(struct ew_learner *l, const struct ew_learner_opts *o)
{
    if (!l->frozen)
        return EW_OK;
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER, .optimize = true, .dry = o->dry, .backend = {.threads = o->threads}};
    EW_TRY(ew_graph_need_batch(l->frozen, o->batch));
    return ew_plan_compile(l->frozen, &po, &l->features);
}

static ew_err compile_teacher(struct ew_learner *l, const struct ew_learner_opts *o)
{
    if (!o->teacher.net)
        return EW_OK;
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER, .optimize = true, .dry = o->dry, .backend = {.threads = o->threads}};
    struct ew_plan_stats s;
    EW_TRY(ew_graph_need_batch(o->teacher.net, o->batch));
    EW_TRY(ew_plan_compile(o->teacher.net, &po, &l->teacher));
    ew_plan_stats(l->teacher, &s);
    l->beside += s.arena_bytes + s.weight_bytes;
    return EW_OK;
}

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* The memory limit left for the training plan, after `reserved`, frozen part and teacher. */
static ew_err limit_left(const struct ew_learner *l, const struct ew_learner_opts *o, size_t *out)
{
    struct ew_plan_stats s = {0};
    *out = o->memory_limit;
    if (!o->memory_limit)
        return EW_OK;
    if (l->features)
        ew_plan_stats(l->features, &s);
    const size_t taken = s.arena_bytes + s.weight_bytes + l->beside;
    EW_CHECK(taken < o->memory_limit, EW_ERR_LIMIT,
             "%s: evaluation, batches on their way and frozen layers take %.1f MiB, the memory "
             "limit is %.1f MiB; a smaller batch or fewer workers take less",
             l->trainable->name, mib(taken), mib(o->memory_limit));
    *out = o->memory_limit - taken;
    return EW_OK;
}

/* Bytes of the guest plan's weights that never coexist: a weight is freed as soon as it is packed,
 * so packing into a part of the block that was not touched before replaces it. */
static size_t never_at_once(const struct ew_learner_opts *o, size_t touched)
{
    const size_t untouched = o->guest > touched ? o->guest - touched : 0;
    const size_t released = o->unpacked > o->largest ? o->unpacked - o->largest : 0;
    return untouched < released ? untouched : released;
}

static ew_err compile_trainable(struct ew_learner *l, const struct ew_learner_opts *o)
{
    struct ew_plan_opts po = {.mode = EW_PLAN_TRAIN,
                              .update = true,
                              .dry = o->dry,
                              .seed = o->seed,
                              .micro_batches = o->micro_batches,
                              .lend_bytes = o->guest,
                              .bucket_bytes = o->bucket_bytes,
                              .stop_at_norms = o->bucket_bytes && o->sync_norms,
                              .optimizer = o->optimizer,
                              .rounded = l->rounded,
                              .n_rounded = l->n_rounded,
                              .backend = {.threads = o->threads}};
    EW_TRY(limit_left(l, o, &po.memory_limit));
    EW_TRY(ew_graph_need_batch(l->trainable, o->batch));
    const ew_err e = ew_plan_compile(l->trainable, &po, &l->train);
    if (e == EW_ERR_LIMIT && o->memory_limit > po.memory_limit)
        return ew_fail_in(e,
                          "of the %.1f MiB evaluation, batches on their way and frozen layers "
                          "take %.1f",
                          mib(o->memory_limit), mib(o->memory_limit - po.memory_limit));
    EW_TRY(e);
    struct ew_plan_stats s;
    ew_plan_stats(l->train, &s);
    l->beside -= never_at_once(o, s.block_bytes);
    l->micro_batches = s.micro_batches > 0 ? s.micro_batches : 1;
    EW_CHECK(!po.stop_at_norms || !s.split_changes_statistics, EW_ERR_UNSUPPORTED,
             "%s: to meet the memory limit the batch is run in %d parts, and --sync-bn needs it "
             "whole",
             l->trainable->name, s.micro_batches);
    return EW_OK;
}

/* Lists the rounded weights of the whole network, since a layer's fake_quant may be in the frozen
 * part; then finds them in the trainable one by name. */
static ew_err list_rounded(const struct ew_graph *net, struct ew_learner *l)
{
    int n, kept = 0;
    EW_TRY(ew_fake_quant_weights(net, &l->rounded, &n));
    for (int i = 0; i < n; i++) {
        struct ew_fake_quant_weight r = l->rounded[i];
        r.value = ew_graph_find(l->trainable, net->values[r.value].name);
        r.other = r.other < 0 ? -1 : ew_graph_find(l->trainable, net->values[r.other].name);
        if (r.value >= 0)
            l->rounded[kept++] = r;
    }
    l->n_rounded = kept;
    return EW_OK;
}

static ew_err open_learner(const struct ew_graph *net, const struct ew_learner_opts *o,
                           struct ew_learner *l)
{
    EW_TRY(ew_adapt_cut(net, &l->frozen, &l->trainable));
    l->n_features = l->trainable->n_inputs;
    EW_CHECK(l->n_features <= EW_LEARNER_INPUTS, EW_ERR_UNSUPPORTED,
             "%s: its frozen part hands on %d values, at most %d are supported", net->name,
             l->n_features, EW_LEARNER_INPUTS);
    const struct ew_shape *scores = &l->trainable->values[l->trainable->outputs[0]].t.shape;
    l->classes = scores->rank == 2 ? scores->dim[1] : 0;
    l->batch = o->batch;
    EW_TRY(list_rounded(net, l));
    l->beside = o->reserved + o->unpacked;
    EW_TRY(o->teacher.net ? add_distillation(l->trainable, &o->teacher)
                          : add_loss(l->trainable, o));
    EW_TRY(compile_teacher(l, o));
    EW_TRY(compile_frozen(l, o));
    EW_TRY(compile_trainable(l, o));
    for (int i = 0; l->features && !o->dry && i < l->n_features; i++)
        ew_plan_bind_input(l->train, i, ew_plan_output(l->features, i)->data);
    return EW_OK;
}

ew_err ew_learner_open(const struct ew_graph *net, const struct ew_learner_opts *o,
                       struct ew_learner *out)
{
    *out = (struct ew_learner){0};
    const ew_err e = open_learner(net, o, out);
    if (e != EW_OK)
        ew_learner_close(out);
    return e;
}

void ew_learner_close(struct ew_learner *l)
{
    ew_plan_free(l->train);
    ew_plan_free(l->features);
    ew_plan_free(l->teacher);
    free(l->rounded);
    ew_graph_free(l->trainable);
    ew_graph_free(l->frozen);
    *l = (struct ew_learner){0};
}

/* Binds a const input: plans do not write to inputs. */
static void bind(struct ew_plan *p, int input, const void *data)
{
    void *writable;
    memcpy(&writable, &data, sizeof(data));
    ew_plan_bind_input(p, input, writable);
}

ew_err ew_learner_features(struct ew_learner *l, const float *images, const void **out)
{
    out[0] = images;
    if (!l->features)
        return EW_OK;
    bind(l->features, 0, images);
    EW_TRY(ew_plan_run(l->features));
    for (int i = 0; i < l->n_features; i++)
        out[i] = ew_plan_output(l->features, i)->data;
    return EW_OK;
}

ew_err ew_learner_teach(struct ew_learner *l, const float *images)
{
    if (!l->teacher)
        return EW_OK;
    bind(l->teacher, 0, images);
    EW_TRY(ew_plan_run(l->teacher));
    bind(l->train, l->n_features + 1, ew_plan_output(l->teacher, 0)->data);
    return EW_OK;
}

void ew_learner_drop_features(struct ew_learner *l)
{
    ew_plan_free(l->features);
    l->features = NULL;
}

/* Forward and backward, exchanging each bucket as soon as it is complete, then the updates. */
static ew_err run_exchanged(struct ew_learner *l)
{
    struct ew_stop stop;
    for (;;) {
        EW_TRY(ew_plan_run_to_stop(l->train, &stop));
        if (stop.kind == EW_STOP_END)
            break;
        EW_TRY(stop.kind == EW_STOP_BUCKET  ? ew_exchange_begin(l->exchange, stop.bucket)
               : stop.kind == EW_STOP_PAUSE ? ew_exchange_progress(l->exchange)
                                            : ew_exchange_norm(l->exchange, &stop));
    }
    EW_TRY(ew_exchange_finish(l->exchange));
    return ew_plan_run_updates(l->train);
}

/* True if the plan's inputs are ready and nothing else takes part in a step, so that it can run
 * asynchronously. */
static bool runs_alone(const struct ew_learner *l)
{
    return !l->exchange && !l->features && !l->teacher;
}

int ew_learner_depth(const struct ew_learner *l)
{
    return runs_alone(l) ? ew_plan_depth(l->train) : 1;
}

ew_err ew_learner_start(struct ew_learner *l, const void *const *features, const int64_t *labels,
                        double lr, int64_t step)
{
    for (int i = 0; i < l->n_features; i++)
        if (ew_plan_input(l->train, i)->data != features[i])
            bind(l->train, i, features[i]);
    if (l->classes)
        bind(l->train, l->n_features, labels);
    ew_plan_set_step(l->train, (uint64_t)step);
    ew_plan_optimizer(l->train)->lr = lr;
    if (runs_alone(l))
        return ew_plan_start(l->train);
    const int64_t start = ew_clock_ns();
    const ew_err e = l->exchange ? run_exchanged(l) : ew_plan_run(l->train);
    l->step_ns = ew_clock_ns() - start;
    return e;
}

ew_err ew_learner_finish(struct ew_learner *l, int64_t *device_ns)
{
    *device_ns = l->step_ns;
    return runs_alone(l) ? ew_plan_wait(l->train, device_ns) : EW_OK;
}

ew_err ew_learner_step(struct ew_learner *l, const void *const *features, const int64_t *labels,
                       double lr, int64_t step)
{
    int64_t ns;
    EW_TRY(ew_learner_start(l, features, labels, lr, step));
    return ew_learner_finish(l, &ns);
}

double ew_learner_loss(const struct ew_learner *l)
{
    return ew_tensor_get(ew_plan_output(l->train, 0), 0);
}

int64_t ew_learner_correct(const struct ew_learner *l, const int64_t *labels, int64_t *n)
{
    const float *scores = ew_plan_output(l->train, 1)->data;
    int64_t right = 0;
    *n = l->classes ? l->batch / l->micro_batches : 0;
    const int64_t first = l->batch - *n;
    for (int64_t i = 0; i < *n; i++)
        right += ew_best_class(scores + i * l->classes, l->classes) == labels[first + i];
    return right;
}

size_t ew_learner_bytes(const struct ew_learner *l)
{
    struct ew_plan_stats s;
    ew_plan_stats(l->train, &s);
    size_t bytes = s.arena_bytes + s.weight_bytes + l->beside;
    if (l->features) {
        ew_plan_stats(l->features, &s);
        bytes += s.arena_bytes + s.weight_bytes;
    }
    return bytes;
}
