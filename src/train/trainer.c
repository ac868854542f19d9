/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer: set-up, and the sequence of steps.  Batches are in epoch.c, checkpoints in save.c,
 * data in sources.c. */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "train/adapt.h"
#include "train/trainer_impl.h"

static double no_less(double a, double b)
{
    return a > b ? a : b;
}

/* ---- Opening ---- */

static ew_err check_opts(const struct ew_train_opts *o)
{
    const bool multistep = o->schedule == EW_SCHEDULE_MULTISTEP;
    EW_CHECK(!multistep || o->milestones.n > 0, EW_ERR_USAGE,
             "--schedule multistep needs --milestones: the epochs after which the rate falls");
    EW_CHECK(multistep || o->milestones.n == 0, EW_ERR_USAGE,
             "--milestones are for --schedule multistep");
    return EW_OK;
}

/* Checks that the teacher has the same input and number of classes. */
static ew_err check_teacher(const struct ew_trainer *t)
{
    const struct ew_graph *g = t->net, *k = t->job.teacher.net;
    if (!k)
        return EW_OK;
    const struct ew_shape *a = &g->values[g->inputs[0]].t.shape,
                          *b = &k->values[k->inputs[0]].t.shape;
    const struct ew_shape *x = &g->values[g->outputs[0]].t.shape,
                          *y = &k->values[k->outputs[0]].t.shape;
    EW_CHECK(b->rank == 4 && a->dim[1] == b->dim[1] && a->dim[2] == b->dim[2] &&
                 a->dim[3] == b->dim[3],
             EW_ERR_SHAPE, "the teacher %s takes images of another size than %s", k->name, g->name);
    EW_CHECK(y->rank == 2 && y->dim[1] == x->dim[1], EW_ERR_SHAPE,
             "the teacher %s has another number of classes than %s", k->name, g->name);
    EW_CHECK(!(t->job.opts.label_smoothing > 0) && !t->job.opts.cache_features, EW_ERR_USAGE,
             "--teach goes with neither --label-smoothing nor --cache-features");
    return EW_OK;
}

static ew_err check_fit(const struct ew_trainer *t)
{
    const struct ew_graph *g = t->net;
    const struct ew_dataset_info *info = ew_dataset_info(t->job.data);
    const struct ew_shape *in = &g->values[g->inputs[0]].t.shape;
    const struct ew_shape *out = &g->values[g->outputs[0]].t.shape;
    char text[EW_SHAPE_TEXT];
    EW_CHECK(g->n_inputs == 1 && (in->rank == 4 || in->rank == 5) &&
                 g->values[g->inputs[0]].channels_last,
             EW_ERR_SHAPE, "%s: its input is %s, neither images nor clips", g->name,
             ew_shape_text(in, text));
    const int64_t frames = in->rank == 5 ? in->dim[1] : 0;
    EW_CHECK(frames == info->frames, EW_ERR_SHAPE,
             "%s takes %lld frames, the samples of %s have %lld (0: images)", g->name,
             (long long)frames, info->name, (long long)info->frames);
    if (t->loss)
        return EW_OK;
    EW_CHECK(out->rank == 2, EW_ERR_SHAPE, "%s: its output is %s, a classifier's is [N, classes]",
             g->name, ew_shape_text(out, text));
    EW_CHECK(out->dim[1] >= info->classes, EW_ERR_ARG,
             "%s has %lld classes, data set %s has %lld: --classes must be as many or more",
             g->name, (long long)out->dim[1], info->name, (long long)info->classes);
    return EW_OK;
}

/* Chooses the loss and checks that the options fit it; an autoencoder needs no labels. */
static ew_err check_loss(struct ew_trainer *t)
{
    const struct ew_train_opts *o = &t->job.opts;
    const struct ew_loss *loss = ew_loss_chosen(o->loss, t->net);
    const struct ew_preprocess *p = &t->job.prep;
    EW_CHECK(loss->of_labels || !(o->label_smoothing > 0), EW_ERR_USAGE,
             "--label-smoothing is for --loss cross-entropy, not %s", loss->name);
    EW_CHECK(loss->of_labels || !t->job.teacher.net, EW_ERR_USAGE,
             "--teach goes with --loss cross-entropy, not %s", loss->name);
    if (loss->of_labels || !ew_net_reconstructs(t->net))
        return EW_OK;
    t->loss = loss;
    EW_CHECK(!o->freeze && !o->cache_features, EW_ERR_UNSUPPORTED,
             "%s gives back its input, which its layers must see: --freeze and --cache-features do "
             "not go with that",
             t->net->name);
    bool plain = true;
    for (int i = 0; i < EW_SAMPLE_CHANNELS && p->normalised; i++)
        plain = plain && !(fabs(p->mean[i]) > 0) && !(p->std[i] > 0 && fabs(p->std[i] - 1) > 0);
    EW_CHECK(strcmp(loss->name, "bce") != 0 || plain, EW_ERR_USAGE,
             "--loss bce compares with pixels in [0, 1]: --mean 0,0,0 --std 1,1,1 leaves them so");
    return EW_OK;
}

/* Each rank's slice of a batch: consecutive samples of what a single process would have. */
static ew_err take_slice(struct ew_trainer *t)
{
    const int64_t rank = ew_ranks_rank(t->job.ranks), n = ew_ranks_size(t->job.ranks);
    const int64_t batch = t->job.opts.batch;
    EW_CHECK(batch >= n, EW_ERR_USAGE, "--batch %lld cannot be divided among %lld ranks",
             (long long)batch, (long long)n);
    EW_CHECK(n == 1 || !t->job.opts.cache_features, EW_ERR_UNSUPPORTED,
             "--cache-features is for one process, not for %lld ranks", (long long)n);
    t->slice_first = rank * batch / n;
    t->slice = (rank + 1) * batch / n - t->slice_first;
    return EW_OK;
}

/* Dropout differs between ranks. */
static uint64_t dropout_seed(const struct ew_trainer *t)
{
    const uint64_t rank = (uint64_t)ew_ranks_rank(t->job.ranks);
    return (uint64_t)t->job.opts.seed ^ (rank * 0x9e3779b97f4a7c15u); /* 2^64 / golden ratio */
}

static ew_err open_learner(struct ew_trainer *t)
{
    const struct ew_train_opts *o = &t->job.opts;
    const bool ranks = ew_ranks_size(t->job.ranks) > 1;
    struct ew_learner_opts l = {.optimizer = ew_train_optimizer(o),
                                .loss = o->loss,
                                .smoothing = o->label_smoothing,
                                .teacher = t->job.teacher,
                                .batch = t->slice,
                                .bucket_bytes = ranks ? t->job.exchange.bucket_bytes : 0,
                                .sync_norms = t->job.exchange.sync_norms,
                                .threads = (int)o->threads,
                                .memory_limit = (size_t)o->memory_limit,
                                .micro_batches = ranks ? 0 : (int)t->at.parts,
                                .seed = dropout_seed(t)};
    EW_TRY(ew_train_reserve(t->net, o, &l));
    EW_TRY(ew_learner_open(t->net, &l, &t->learner));
    if (ranks) {
        const double weight = (double)t->slice / (double)o->batch;
        EW_TRY(ew_exchange_open(t->job.ranks, t->learner.train, t->learner.trainable,
                                &t->job.exchange, weight, &t->exchange));
        t->learner.exchange = t->exchange;
    }
    return ew_trainer_collect_states(t);
}

static ew_err name_classes(struct ew_trainer *t)
{
    const int64_t n = ew_dataset_info(t->job.data)->classes;
    t->classes = calloc((size_t)n + 1, sizeof(*t->classes));
    EW_CHECK(t->classes, EW_ERR_MEMORY, "no memory for %lld classes", (long long)n);
    for (int64_t i = 0; i < n; i++)
        t->classes[i] = ew_dataset_class(t->job.data, i);
    return EW_OK;
}

/* needs two checkpoints, one being written, and some rows */
static ew_err open_folder(struct ew_trainer *t)
{
    const struct ew_checkpoint c = {.graph = t->net,
                                    .options = t->job.options,
                                    .progress = "",
                                    .states = t->states,
                                    .n_states = t->n_states};
    const int64_t one = ew_checkpoint_size(&c) + ew_exchange_residual_bytes(t->exchange);
    EW_TRY(ew_rundir_open(t->job.folder, 3 * one + (1 << 20), t->at.rows_bytes, &t->dir));
    EW_TRY(ew_rundir_text(&t->dir, "options.ini", t->job.options));
    return t->job.machine ? ew_rundir_text(&t->dir, "machine.json", t->job.machine) : EW_OK;
}

/* Tests the best epoch's weights, which are only in the folder. */
static ew_err begin_test(struct ew_trainer *t)
{
    char path[EW_RUNDIR_PATH];
    struct ew_graph *g = t->net;
    if (*t->dir.path && t->at.best_epoch != t->at.epoch) {
        EW_TRY(ew_checkpoint_read(ew_rundir_file(&t->dir, "best.ckpt", path), &t->best));
        g = t->best.graph;
    }
    t->phase = EW_DOING_TEST;
    EW_TRY(ew_trainer_broadcast_weights(t, g)); /* only rank 0 has a folder */
    return ew_evaluator_begin(&t->test, g);
}

/* Starts the next epoch; after the last one the test, also if the run was killed before it. */
static ew_err next_epoch(struct ew_trainer *t)
{
    if (t->at.epoch < t->job.opts.epochs)
        return ew_trainer_begin_epoch(t);
    if (t->has_test)
        return begin_test(t);
    t->phase = EW_DOING_NOTHING;
    return EW_OK;
}

static ew_err open_all(struct ew_trainer *t)
{
    EW_TRY(check_opts(&t->job.opts));
    EW_TRY(check_loss(t));
    EW_TRY(check_fit(t));
    EW_TRY(check_teacher(t));
    EW_TRY(ew_trainer_divide(t));
    EW_TRY(name_classes(t));
    EW_TRY(take_slice(t));
    if (t->job.resume)
        EW_TRY(ew_trainer_read_position(t, t->job.resume));
    t->at.data_samples = ew_dataset_info(t->job.data)->count[EW_SPLIT_TRAIN];
    EW_TRY(open_learner(t));
    EW_TRY(ew_trainer_open_sources(t));
    t->schedule = ew_train_schedule(&t->job.opts, t->batches);
    if (t->job.resume)
        EW_TRY(ew_trainer_restore(t, t->job.resume));
    EW_CHECK(t->at.epoch <= t->job.opts.epochs, EW_ERR_ARG,
             "%s: has %lld epochs behind it, --epochs %lld is less", t->job.folder,
             (long long)t->at.epoch, (long long)t->job.opts.epochs);
    if (t->exchange)
        EW_TRY(ew_trainer_agree(t));
    EW_TRY(open_folder(t));
    if (t->job.opts.load.cold == EW_COLD_START)
        EW_TRY(ew_dataset_drop_cache(t->job.data, EW_SPLIT_TRAIN));
    t->saved_ns = ew_clock_ns();
    if (!t->job.resume) /* so that the run can be resumed from the beginning */
        ew_trainer_write(t, "last.ckpt");
    return next_epoch(t);
}

ew_err ew_trainer_open(const struct ew_train_job *job, struct ew_trainer **out)
{
    struct ew_trainer *t = calloc(1, sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "no memory for a trainer");
    t->job = *job;
    t->net = job->net;
    const ew_err e = open_all(t);
    if (e != EW_OK)
        ew_trainer_close(t);
    else
        *out = t;
    return e;
}

void ew_trainer_close(struct ew_trainer *t)
{
    if (!t)
        return;
    if (t->n_flight) /* the device is reading the loader's batches */
        ew_backend_sync(ew_plan_backend(t->learner.train));
    ew_loader_close(t->loader);
    ew_evaluator_close(&t->validation);
    ew_evaluator_close(&t->test);
    ew_features_fini(&t->features);
    ew_features_fini(&t->validation_features);
    ew_graph_free(t->head);
    ew_exchange_close(t->exchange);
    ew_learner_close(&t->learner);
    ew_rundir_close(&t->dir);
    ew_checkpoint_fini(&t->best);
    free(t->order);
    free(t->states);
    free(t->classes);
    free(t);
}

/* ---- Steps ---- */

static bool is_validated(const struct ew_trainer *t)
{
    const int64_t epoch = t->at.epoch + 1, every = ew_max_i64(t->job.opts.eval_every, 1);
    return epoch % every == 0 || epoch == t->job.opts.epochs;
}

/* After the last batch of an epoch. */
static ew_err end_training(struct ew_trainer *t, enum ew_train_event *event)
{
    /* time since the last batch: its row, a checkpoint */
    const int64_t now = ew_clock_ns();
    const double rest = (double)(now - t->mark_ns) * 1e-9;
    t->at.now.wall_s += rest;
    t->at.now.overhead_s += rest;
    t->eval_ns = now;
    if (!is_validated(t)) {
        *event = EW_TRAIN_EPOCH;
        EW_TRY(ew_trainer_end_epoch(t, NULL));
        return next_epoch(t);
    }
    t->phase = EW_DOING_VALIDATION;
    EW_TRY(ew_plan_pull(t->learner.train));
    return ew_evaluator_begin(&t->validation, t->net);
}

static ew_err train_step(struct ew_trainer *t, enum ew_train_event *event)
{
    bool over;
    *event = EW_TRAIN_BATCH;
    EW_TRY(ew_trainer_batch(t, &over));
    return over ? end_training(t, event) : EW_OK;
}

static ew_err validation_step(struct ew_trainer *t, enum ew_train_event *event)
{
    bool more;
    *event = EW_TRAIN_EVAL;
    EW_TRY(ew_evaluator_step(&t->validation, &more));
    if (more)
        return EW_OK;
    EW_TRY(ew_trainer_add_scores(t, &t->validation));
    const struct ew_scores s = ew_evaluator_scores(&t->validation);
    *event = EW_TRAIN_EPOCH;
    EW_TRY(ew_trainer_end_epoch(t, &s));
    return next_epoch(t);
}

static ew_err test_step(struct ew_trainer *t, enum ew_train_event *event)
{
    bool more;
    *event = EW_TRAIN_EVAL;
    EW_TRY(ew_evaluator_step(&t->test, &more));
    if (more)
        return EW_OK;
    EW_TRY(ew_trainer_add_scores(t, &t->test));
    t->test_scores = ew_evaluator_scores(&t->test);
    ew_checkpoint_fini(&t->best);
    t->phase = EW_DOING_NOTHING;
    return EW_OK;
}

ew_err ew_trainer_step(struct ew_trainer *t, enum ew_train_event *event)
{
    switch (t->phase) {
    case EW_DOING_TRAINING:
        return train_step(t, event);
    case EW_DOING_VALIDATION:
        return validation_step(t, event);
    case EW_DOING_TEST:
        return test_step(t, event);
    case EW_DOING_NOTHING:
        break;
    }
    *event = EW_TRAIN_DONE;
    return EW_OK;
}

/* ---- Status ---- */

static double time_left(const struct ew_trainer *t)
{
    const struct ew_train_position *p = &t->at;
    const double done = (double)(p->epoch * t->batches + p->batch);
    const double wall = p->all.wall_s + (p->batch ? p->now.wall_s : 0);
    if (done <= 0)
        return -1;
    const double epochs_left = (double)t->job.opts.epochs - done / (double)t->batches;
    const double eval = p->epoch ? (p->eval_s + p->checkpoint_s) / (double)p->epoch : 0;
    return epochs_left * wall / done * (double)t->batches + ceil(no_less(0, epochs_left)) * eval;
}

struct ew_train_status ew_trainer_status(const struct ew_trainer *t)
{
    const struct ew_train_position *p = &t->at;
    const struct ew_evaluator *e = t->phase == EW_DOING_TEST ? &t->test : &t->validation;
    struct ew_train_status s = {
        .evaluating = t->phase == EW_DOING_VALIDATION || t->phase == EW_DOING_TEST,
        .epoch = ew_min_i64(p->epoch + 1, t->job.opts.epochs),
        .epochs = t->job.opts.epochs,
        .batch = p->batch,
        .batches = t->batches,
        .loss = t->recent_loss,
        .accuracy = p->counted ? (double)p->right / (double)p->counted
                    : t->loss  ? (double)NAN
                               : 0,
        .images_per_s = p->now.wall_s > 0 ? (double)p->images / p->now.wall_s : 0,
        .stall_share = p->now.wall_s > 0 ? p->now.stall_s / p->now.wall_s : 0,
        .left_s = time_left(t),
        .lr = ew_schedule_rate(&t->schedule, p->step)};
    if (s.evaluating) {
        s.batch = e->done / ew_max_i64(e->batch, 1);
        s.batches = e->samples / ew_max_i64(e->batch, 1);
    }
    return s;
}

bool ew_trainer_stops(const struct ew_trainer *t)
{
    return t->stops;
}

const struct ew_epoch_row *ew_trainer_epoch(const struct ew_trainer *t)
{
    return &t->row;
}

const struct ew_confusion *ew_trainer_confusion(const struct ew_trainer *t)
{
    const struct ew_evaluator *e =
        t->has_test && t->phase == EW_DOING_NOTHING ? &t->test : &t->validation;
    return e->loss ? NULL : &e->confusion;
}

struct ew_train_result ew_trainer_result(const struct ew_trainer *t)
{
    const struct ew_train_position *p = &t->at;
    struct rusage use = {0};
    getrusage(RUSAGE_SELF, &use);
    struct ew_train_result r = {.epochs = p->epoch,
                                .epochs_asked = t->job.opts.epochs,
                                .best_epoch = p->best_epoch,
                                .validations = p->validations,
                                .times = p->all,
                                .eval_s = p->eval_s,
                                .checkpoint_s = p->checkpoint_s,
                                .images = p->images_all,
                                .bad = p->bad,
                                .validated_on_test = t->n_validation == 0,
                                .test = t->has_test ? t->test_scores : p->best,
                                .last = p->last,
                                .peak_rss_bytes = 1024LL * use.ru_maxrss,
                                .planned_bytes = (int64_t)t->planned_bytes,
                                .energy_j =
                                    p->epoch && p->energy_epochs == p->epoch ? p->energy_j : -1,
                                .cache_features_s = t->features_s,
                                .checkpoint_failed = t->dir.checkpoint_failed};
    if (r.test.samples == 0)
        r.test = ew_scores_of_loss((double)NAN, 0);
    if (r.last.samples == 0)
        r.last = ew_scores_of_loss((double)NAN, 0);
    r.epoch_s = p->epoch ? p->all.wall_s / (double)p->epoch : 0;
    r.images_per_s = p->all.wall_s > 0 ? (double)p->images_all / p->all.wall_s : 0;
    return r;
}

void ew_trainer_plan_stats(const struct ew_trainer *t, struct ew_plan_stats *out)
{
    ew_plan_stats(t->learner.train, out);
}
