/* SPDX-License-Identifier: Apache-2.0 */
/* Training for programs (edgewise_train.h), over train/trainer.h. */
#include <math.h>
#include <stdlib.h>

#include "api/train/api_options.h"
#include "base/num.h"
#include "base/sized.h"
#include "edgewise_train.h"
#include "format/checkpoint.h"
#include "network/train_network.h"
#include "train/adapt.h"
#include "train/trainer.h"

EW_API ew_err ew_network_graph(const char *what, uint64_t seed, struct ew_graph **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(what);
    const struct ew_network_open_opts how = {.seed = seed};
    struct ew_network n;
    struct ew_graph *g = NULL;
    ew_err e = ew_network_open(what, &how, &n);
    if (e == EW_OK)
        g = ew_network_take_graph(&n);
    ew_network_close(&n);
    if (e == EW_OK)
        e = ew_adapt_images(g);
    if (e == EW_OK)
        e = ew_adapt_scores(g);
    if (e != EW_OK)
        ew_graph_free(g);
    else
        *out = g;
    return e;
}

EW_API ew_err ew_network_for_data(const char *what, const struct ew_dataset *data, uint64_t seed,
                                  struct ew_graph **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(what);
    EW_NEED(data);
    const struct ew_train_network_opts how = {.what = what, .seed = seed};
    struct ew_train_network n;
    const ew_err e = ew_train_network_open(&how, data, &n);
    *out = n.graph;
    return e;
}

/* ---- Options ---- */

struct train_options {
    struct ew_train_opts t;
    const char *teach; /* of a run that the program began: a teacher that is not known here */
};

static const struct ew_field fields[] = {
    EW_TRAIN_FIELDS(struct train_options, t),
    {.name = "teach", .type = EW_FIELD_STR, .offset = offsetof(struct train_options, teach)},
    EW_FIELD_END};

struct ew_training {
    struct ew_trainer *trainer;
    struct ew_graph *net;
    struct ew_checkpoint from; /* that it goes on from; else empty */
    struct ew_arena arena;     /* of texts */
    struct train_options o;
    const char *folder;
    bool done;
};

static ew_err read_options(const struct ew_training_opts *opts, struct ew_training_opts *o)
{
    EW_TRY(ew_sized_import(opts, o, sizeof(*o)));
    EW_CHECK(o->epochs >= 0 && o->batch >= 0 && o->threads >= 0 && o->memory_limit >= 0 &&
                 o->lr >= 0,
             EW_ERR_ARG, "epochs, batch, rate, threads and memory limit are not negative");
    return EW_OK;
}

static ew_err take_options(struct ew_training *t, const struct ew_training_opts *o)
{
    struct ew_train_opts *to = &t->o.t;
    ew_fields_default(fields, &t->o, sizeof(t->o));
    to->epochs = o->epochs ? o->epochs : to->epochs;
    to->batch = o->batch ? o->batch : to->batch;
    to->lr = o->lr > 0 ? o->lr : to->lr;
    to->threads = o->threads;
    to->memory_limit = o->memory_limit;
    to->seed = o->seed ? (int64_t)o->seed : to->seed;
    return ew_api_options(fields, o->options, NULL, &t->arena, &t->o);
}

/* Those that it was begun with, and of the new ones those that no number to come depends on. */
static ew_err resume_options(struct ew_training *t, const struct ew_training_opts *o)
{
    static const char *const may_change[] = {
        "epochs", "threads", "workers", "prefetch", "checkpoint-every", "on-bad-sample", NULL};
    char *saved = ew_arena_strdup(&t->arena, t->from.options);
    EW_CHECK(saved, EW_ERR_MEMORY, "no memory for options");
    EW_CHECK(!o->batch && !(o->lr > 0) && !o->memory_limit && !o->seed && !o->folder, EW_ERR_ARG,
             "%s: only epochs and threads may change when a run is resumed", t->folder);
    ew_fields_default(fields, &t->o, sizeof(t->o));
    EW_TRY(ew_fields_from_text(fields, saved, t->folder, &t->o));
    EW_CHECK(!t->o.teach, EW_ERR_UNSUPPORTED,
             "%s: is distilled from %s, which `edgewise train --resume` continues", t->folder,
             t->o.teach);
    t->o.t.epochs = o->epochs ? o->epochs : t->o.t.epochs;
    t->o.t.threads = o->threads ? o->threads : t->o.t.threads;
    return ew_api_options(fields, o->options, may_change, &t->arena, &t->o);
}

/* ---- Opening ---- */

static ew_err normalise(struct ew_training *t, const struct ew_graph *net,
                        const struct ew_dataset *data, struct ew_preprocess *out)
{
    struct ew_image_card card;
    EW_TRY(ew_preprocess_parse(t->o.t.mean, t->o.t.std, out));
    if (out->normalised)
        return EW_OK;
    EW_TRY(ew_image_card_get(net, &t->arena, &card));
    *out = card.prep;
    return out->normalised ? EW_OK : ew_preprocess_measure(data, out);
}

/* The options as text, for whoever goes on with it. */
static ew_err describe(struct ew_training *t, const struct ew_dataset *data, const char **out)
{
    const struct ew_dataset_info *info = ew_dataset_info(data);
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    t->o.t.data = *info->path ? info->path : info->name;
    EW_TRY(ew_fields_text(fields, &t->o, &text));
    *out = ew_arena_printf(&t->arena, "network = %s\n%s", t->net->name, text);
    EW_CHECK(*out, EW_ERR_MEMORY, "no memory for options");
    return EW_OK;
}

static ew_err open_trainer(struct ew_training *t, const struct ew_dataset *data)
{
    struct ew_train_job job = {.net = t->net, .data = data, .folder = t->folder, .opts = t->o.t};
    int frozen;
    EW_TRY(normalise(t, t->net, data, &job.prep));
    const struct ew_image_card card = {.prep = job.prep};
    EW_TRY(ew_image_card_put(t->net, &card));
    EW_TRY(ew_image_card_random(t->net, false)); /* they will not be for long */
    if (t->o.t.freeze)
        EW_TRY(ew_adapt_freeze(t->net, t->o.t.freeze, &frozen));
    EW_TRY(describe(t, data, &job.options));
    return ew_trainer_open(&job, &t->trainer);
}

static ew_err new_training(const char *folder, struct ew_training **out)
{
    struct ew_training *t = calloc(1, sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "no memory for training");
    ew_arena_init(&t->arena);
    *out = t;
    if (!folder)
        return EW_OK;
    t->folder = ew_arena_strdup(&t->arena, folder);
    EW_CHECK(t->folder, EW_ERR_MEMORY, "no memory for training");
    return EW_OK;
}

/* A training that could not be opened is none. */
static ew_err opened(ew_err e, struct ew_training **out)
{
    if (e != EW_OK) {
        ew_training_close(*out);
        *out = NULL;
    }
    return e;
}

EW_API ew_err ew_training_open(struct ew_graph *net, const struct ew_dataset *data,
                               const struct ew_training_opts *opts, struct ew_training **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(net);
    EW_NEED(data);
    struct ew_training_opts o;
    EW_TRY(read_options(opts, &o));
    EW_TRY(ew_adapt_check(net));
    ew_err e = new_training(o.folder, out);
    if (e == EW_OK)
        e = take_options(*out, &o);
    if (e == EW_OK) {
        (*out)->net = net;
        e = open_trainer(*out, data);
    }
    return opened(e, out);
}

static ew_err resume(struct ew_training *t, const struct ew_dataset *data,
                     const struct ew_training_opts *o)
{
    const char *path = ew_arena_printf(&t->arena, "%s/last.ckpt", t->folder);
    EW_CHECK(path, EW_ERR_MEMORY, "no memory for training");
    EW_TRY(ew_checkpoint_read(path, &t->from));
    t->net = t->from.graph;
    EW_TRY(resume_options(t, o));
    struct ew_train_job job = {.net = t->net,
                               .data = data,
                               .folder = t->folder,
                               .opts = t->o.t,
                               .prep = t->from.prep,
                               .resume = &t->from};
    EW_TRY(describe(t, data, &job.options));
    return ew_trainer_open(&job, &t->trainer);
}

EW_API ew_err ew_training_resume(const char *folder, const struct ew_dataset *data,
                                 const struct ew_training_opts *opts, struct ew_training **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(folder);
    EW_NEED(data);
    struct ew_training_opts o;
    EW_TRY(read_options(opts, &o));
    ew_err e = new_training(folder, out);
    if (e == EW_OK)
        e = resume(*out, data, &o);
    return opened(e, out);
}

EW_API struct ew_graph *ew_training_graph(struct ew_training *t)
{
    if (!t)
        return NULL;
    return t->net;
}

EW_API void ew_training_close(struct ew_training *t)
{
    EW_C_LOCALE;
    if (!t)
        return;
    ew_trainer_close(t->trainer);
    ew_checkpoint_fini(&t->from);
    ew_arena_fini(&t->arena);
    free(t);
}

/* ---- Running ---- */

EW_API ew_err ew_training_step(struct ew_training *t, int *event)
{
    EW_C_LOCALE;
    EW_NEED(t);
    EW_NEED(event);
    static const int events[] = {[EW_TRAIN_BATCH] = EW_TRAINING_BATCH,
                                 [EW_TRAIN_EVAL] = EW_TRAINING_EVAL,
                                 [EW_TRAIN_EPOCH] = EW_TRAINING_EPOCH,
                                 [EW_TRAIN_DONE] = EW_TRAINING_DONE};
    enum ew_train_event what;
    EW_TRY(ew_trainer_step(t->trainer, &what));
    t->done = what == EW_TRAIN_DONE;
    *event = events[what];
    /* The step that finds no more batches learns nothing: it begins the evaluation. */
    if (what == EW_TRAIN_BATCH && ew_trainer_status(t->trainer).evaluating)
        *event = EW_TRAINING_EVAL;
    return EW_OK;
}

EW_API ew_err ew_training_state(const struct ew_training *t, struct ew_training_state *out)
{
    EW_NEED(t);
    EW_NEED(out);
    EW_TRY(ew_sized_check(out));
    const struct ew_train_status s = ew_trainer_status(t->trainer);
    const struct ew_train_result r = ew_trainer_result(t->trainer);
    const double none = (double)NAN;
    const struct ew_training_state state = {.epoch = s.epoch,
                                            .epochs = s.epochs,
                                            .batch = s.batch,
                                            .batches = s.batches,
                                            .loss = s.loss,
                                            .accuracy = s.accuracy,
                                            .validation_accuracy =
                                                r.epochs ? r.last.accuracy : none,
                                            .validation_loss = r.epochs ? r.last.loss : none,
                                            .test_accuracy = t->done ? r.test.accuracy : none,
                                            .images_per_s = s.images_per_s,
                                            .seconds_left = s.left_s};
    ew_sized_export(&state, sizeof(state), out);
    return EW_OK;
}

EW_API ew_err ew_training_save(struct ew_training *t)
{
    EW_C_LOCALE;
    EW_NEED(t);
    EW_CHECK(t->folder, EW_ERR_ARG, "training has no folder to save to");
    ew_trainer_save(t->trainer);
    EW_CHECK(!ew_trainer_result(t->trainer).checkpoint_failed, EW_ERR_IO,
             "%s: the checkpoint could not be written", t->folder);
    return EW_OK;
}
