/* SPDX-License-Identifier: Apache-2.0 */
/* The descent, iteration by iteration. */
#include "scale/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/owned.h"
#include "train/learner.h"

#define OPTIONS_MOST 65536 /* bytes of search.ini */

/* A running iteration. */
struct descent {
    const struct ew_search_job *job;
    int iteration;
    int32_t widths[EW_MAX_GATES];
    struct ew_graph *g;
    struct ew_learner learner;
    struct ew_loader *loader;
    struct ew_pruner pruner;
    double *gradients; /* by unit */
    int64_t step, began_ns;
};

/* ---- Training with gates ---- */

static ew_err build(struct descent *d)
{
    const struct ew_scaling *s = d->job->net;
    struct ew_model_opts o = s->opts;
    o.filters = d->widths;
    o.n_filters = s->n;
    EW_TRY(ew_model_build(s->network, &o, &d->g));
    EW_TRY(ew_model_init(s->network, d->job->opts.seed + (uint64_t)d->iteration, d->g));
    return ew_gates_insert(d->g, s->network, s->n);
}

static ew_err open_descent(struct descent *d)
{
    const struct ew_search_opts *o = &d->job->opts;
    const struct ew_shape *in;
    struct ew_loader_opts lo = d->job->loader;
    const struct ew_learner_opts l = {.optimizer = {.kind = EW_OPTIMIZER_SGD,
                                                    .lr = o->lr,
                                                    .momentum = o->momentum,
                                                    .weight_decay = o->weight_decay},
                                      .batch = lo.batch,
                                      .threads = o->threads,
                                      .seed = o->seed};
    EW_TRY(build(d));
    in = &d->g->values[d->g->inputs[0]].t.shape;
    ew_loader_fit(&lo, in);
    lo.shuffle = lo.drop_last = true;
    lo.seed = o->seed + (uint64_t)d->iteration;
    EW_TRY(ew_learner_open(d->g, &l, &d->learner));
    const struct ew_device_info *device = ew_backend_info(ew_plan_backend(d->learner.train));
    EW_CHECK(device->shares_host, EW_ERR_UNSUPPORTED,
             "the search runs on the CPU, not on %s: its gates are opened and closed in the host's "
             "memory between steps",
             device->device);
    EW_TRY(ew_loader_open(&lo, &d->loader));
    EW_TRY(ew_pruner_open(d->widths, d->job->net->n, &o->prune, &d->pruner));
    d->gradients = calloc((size_t)d->pruner.units + 1, sizeof(*d->gradients));
    EW_CHECK(d->gradients, EW_ERR_MEMORY, "no memory for %d gates", d->pruner.units);
    d->began_ns = ew_clock_ns();
    return EW_OK;
}

static void close_descent(struct descent *d)
{
    ew_loader_close(d->loader);
    ew_learner_close(&d->learner);
    ew_pruner_close(&d->pruner);
    ew_graph_free(d->g);
    free(d->gradients);
}

/* Reads the gates' gradients and undoes their update: with momentum 0 before the step, the momentum
 * after it is gradient + weight decay; the gates are reset to 1 or 0. */
static ew_err take_gates(struct descent *d)
{
    for (int l = 0; l < d->pruner.gates; l++) {
        const int v = ew_gate_value(d->learner.trainable, l);
        struct ew_tensor *state = v >= 0 ? ew_plan_state(d->learner.train, v, 0) : NULL;
        EW_CHECK(state && state->data, EW_ERR_INTERNAL, "gate %d has no momentum", l);
        float *gate = d->learner.trainable->values[v].t.data, *momentum = state->data;
        for (int u = d->pruner.first[l]; u < d->pruner.first[l + 1]; u++) {
            const int i = u - d->pruner.first[l];
            const double now = d->pruner.open[u] ? 1 : 0;
            d->gradients[u] = (double)momentum[i] - d->job->opts.weight_decay * now;
            momentum[i] = 0;
            gate[i] = (float)now;
        }
    }
    return EW_OK;
}

static void set_gates(struct descent *d)
{
    for (int l = 0; l < d->pruner.gates; l++) {
        float *gate = d->learner.trainable->values[ew_gate_value(d->learner.trainable, l)].t.data;
        for (int u = d->pruner.first[l]; u < d->pruner.first[l + 1]; u++)
            gate[u - d->pruner.first[l]] = d->pruner.open[u] ? 1 : 0;
    }
}

static ew_err learn(struct descent *d, const struct ew_batch *b, double lr, bool prune)
{
    const void *features[EW_LEARNER_INPUTS];
    EW_TRY(ew_learner_features(&d->learner, b->images, features));
    EW_TRY(ew_learner_step(&d->learner, features, b->labels, lr, d->step++));
    EW_TRY(take_gates(d));
    const double loss = ew_learner_loss(&d->learner);
    EW_CHECK(isfinite(loss), EW_ERR_ARG,
             "the loss is %g in iteration %d: it has diverged; a lower --lr may help", loss,
             d->iteration);
    if (!prune)
        return EW_OK;
    EW_TRY(ew_pruner_batch(&d->pruner, d->gradients));
    set_gates(d);
    return EW_OK;
}

/* ---- Epochs ---- */

/* lr / 10 from the last warm-up epoch on, then divided by 1.5 every ten epochs. */
static double rate_of(const struct ew_search_opts *o, int64_t epoch)
{
    if (epoch < o->warmup || o->warmup == 0)
        return o->lr;
    return o->lr / 10 / pow(1.5, (double)((epoch - o->warmup) / 10));
}

static void say(const struct descent *d, int64_t epoch)
{
    const struct ew_pruner *p = &d->pruner;
    const double s = (double)(ew_clock_ns() - d->began_ns) * 1e-9;
    const double share = p->steps ? (double)p->step / p->steps : 1;
    const int64_t warm = d->job->opts.warmup;
    if (!d->job->talk)
        return;
    fprintf(d->job->talk, "iteration %d, epoch %lld: loss %.4f, %d of %d filters closed, %.0f s",
            d->iteration, (long long)epoch, ew_learner_loss(&d->learner), p->closed, p->most, s);
    if (epoch > warm && share > 0) /* pruning has a known number of steps */
        fprintf(d->job->talk, ", %.0f s left",
                s * (double)(epoch - warm) / (double)epoch * (1 - share) / share);
    fputc('\n', d->job->talk);
}

static ew_err run_epoch(struct descent *d, int64_t epoch)
{
    const struct ew_search_opts *o = &d->job->opts;
    const double lr = rate_of(o, epoch);
    ew_err e = ew_loader_start(d->loader, epoch - 1, 0);
    while (e == EW_OK && !d->pruner.done) {
        const struct ew_batch *b = NULL;
        e = ew_loader_next(d->loader, &b);
        if (e != EW_OK || !b)
            break;
        e = learn(d, b, lr, epoch > o->warmup);
        ew_loader_release(d->loader, b);
    }
    if (e == EW_OK)
        say(d, epoch);
    return e;
}

static ew_err descend(struct descent *d, const char *path)
{
    const int64_t most = d->job->opts.max_epochs;
    EW_TRY(open_descent(d));
    for (int64_t epoch = 1; epoch <= most && !d->pruner.done; epoch++)
        EW_TRY(run_epoch(d, epoch));
    EW_CHECK(d->pruner.done, EW_ERR_LIMIT,
             "iteration %d: %lld epochs closed %d of %d filters; --max-epochs or --prune-units may "
             "be more",
             d->iteration, (long long)most, d->pruner.closed, d->pruner.most);
    return ew_prune_rows_write(&d->pruner.rows, path);
}

/* ---- Widths of the next iteration ---- */

static ew_err fit(const struct ew_scaling *s, const char *path, int32_t *widths)
{
    struct ew_prune_rows rows;
    struct ew_power_law law;
    struct ew_widths_found found;
    double target;
    EW_TRY(ew_prune_rows_read(path, &rows));
    ew_err e = ew_fail_in(ew_power_law_fit(s, &rows, &law), "%s", path);
    ew_prune_rows_fini(&rows);
    EW_TRY(e);
    law.first = true; /* the search always uses the tolerance of the first iteration */
    EW_TRY(ew_scaling_target(s, 1, &target));
    EW_TRY(ew_fail_in(ew_power_law_widths(s, &law, target, &found), "%s", path));
    /* gives very narrow layers room to grow again; VGG's are never so narrow */
    const bool widen = !s->rule || s->rule->steps == 0;
    for (int l = 0; l < s->n; l++)
        widths[l] = found.widths[l] + (widen && found.widths[l] < 10 ? 10 : 0);
    return EW_OK;
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Checks the job before hours of work. */
static ew_err check_job(const struct ew_search_job *job)
{
    const struct ew_loader_opts *l = &job->loader;
    const int64_t samples = l->subset ? l->n_subset : ew_dataset_info(l->data)->count[l->split];
    int filters = 0;
    for (int i = 0; i < job->net->n; i++)
        filters += job->net->base[i];
    EW_CHECK(samples >= l->batch, EW_ERR_ARG,
             "%s: a batch of %lld is more than its %lld samples for training; --batch makes it "
             "smaller",
             ew_dataset_info(l->data)->name, (long long)l->batch, (long long)samples);
    EW_CHECK(job->opts.prune.per_step < filters, EW_ERR_ARG,
             "%s has %d filters: --prune-units %d would close all of them in one step",
             job->net->network, filters, job->opts.prune.per_step);
    EW_CHECK(mkdir(job->folder, 0777) == 0 || errno == EEXIST, EW_ERR_IO, "%s: %s", job->folder,
             strerror(errno));
    struct stat st;
    EW_CHECK(stat(job->folder, &st) == 0 && S_ISDIR(st.st_mode), EW_ERR_IO, "%s: is not a folder",
             job->folder);
    return EW_OK;
}

/* Fails if the folder's records are of other options. */
static ew_err check_options(const struct ew_search_job *job)
{
    EW_CLEANUP(ew_free_ptr) char *old = NULL;
    char path[4096];
    size_t size = 0, same = 0;
    snprintf(path, sizeof(path), "%s/search.ini", job->folder);
    const ew_err e = ew_file_read(path, OPTIONS_MOST, &old, &size);
    if (e == EW_ERR_NOT_FOUND)
        return ew_file_write(path, job->options, strlen(job->options));
    EW_TRY(e);
    for (size_t i = 0; old[i] && old[i] == job->options[i]; i++)
        same = old[i] == '\n' ? i + 1 : same;
    const char *was = old + same, *is = job->options + same;
    EW_CHECK(strcmp(old, job->options) == 0, EW_ERR_ARG,
             "%s: holds the records of another search ('%.*s', now '%.*s'); choose another folder",
             job->folder, (int)strcspn(was, "\n"), was, (int)strcspn(is, "\n"), is);
    return EW_OK;
}

static ew_err descend_all(const struct ew_search_job *job, struct ew_search_result *out)
{
    const struct ew_scaling *s = job->net;
    EW_TRY(check_options(job));
    memcpy(out->widths, s->base, sizeof(out->widths));
    for (int i = 0; i < job->opts.iterations; i++) {
        struct descent d = {.job = job, .iteration = i};
        snprintf(out->last, sizeof(out->last), "%s/iteration-%02d.csv", job->folder, i);
        memcpy(d.widths, out->widths, sizeof(d.widths));
        ew_err e = EW_OK;
        if (!is_there(out->last))
            e = descend(&d, out->last);
        else if (job->talk)
            fprintf(job->talk, "iteration %d: taken from %s\n", i, out->last);
        close_descent(&d);
        EW_TRY(e);
        EW_TRY(fit(s, out->last, out->widths));
        out->done++;
    }
    return EW_OK;
}

ew_err ew_search_run(const struct ew_search_job *job, struct ew_search_result *out)
{
    int lock;
    *out = (struct ew_search_result){0};
    EW_TRY(check_job(job));
    EW_TRY(ew_folder_lock(job->folder, &lock));
    const ew_err e = descend_all(job, out);
    close(lock);
    return e;
}

ew_err ew_search_images(const struct ew_search_images *im, struct ew_search_job *job,
                        int64_t **subset)
{
    const struct ew_dataset_info *info = ew_dataset_info(im->data);
    const struct ew_scaling *s = job->net;
    struct ew_loader_opts *l = &job->loader;
    *l = (struct ew_loader_opts){
        .data = im->data, .split = EW_SPLIT_TRAIN, .batch = im->batch, .workers = 1};
    EW_CHECK(s->opts.classes >= info->classes, EW_ERR_ARG,
             "%s has %lld classes, data set %s has %lld: --classes must be as many or more",
             s->network, (long long)s->opts.classes, info->name, (long long)info->classes);
    EW_TRY(ew_augment_parse(im->augment, &l->augment));
    EW_TRY(ew_preprocess_parse(im->mean, im->std, &l->prep));
    if (!l->prep.normalised)
        EW_TRY(ew_preprocess_measure(im->data, &l->prep));
    return ew_loader_subsample(l, im->samples, subset);
}
