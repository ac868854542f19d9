/* SPDX-License-Identifier: Apache-2.0 */
/* Training for programs (edgewise_train.h), over train/trainer.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "edgewise_train.h"
#include "network/network.h"
#include "train/adapt.h"
#include "train/trainer.h"

EW_API ew_err ew_network_graph(const char *what, uint64_t seed, struct ew_graph **out)
{
    const struct ew_network_how how = {.seed = seed};
    struct ew_network n;
    struct ew_graph *g = NULL;
    *out = NULL;
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

/* ---- Options ---- */

struct train_options {
    struct ew_train_opts t;
};

static const struct ew_field fields[] = {EW_TRAIN_FIELDS(struct train_options, t), EW_FIELD_END};

struct ew_training {
    struct ew_trainer *trainer;
    struct ew_arena arena; /* of texts */
    struct train_options o;
    const char *folder;
    bool done;
};

/* One "name = value"; `line` is cut up. */
static ew_err take_line(struct ew_training *t, char *line)
{
    char *equals = strchr(line, '=');
    char *name = line + strspn(line, " \t");
    if (!*name)
        return EW_OK;
    EW_CHECK(equals, EW_ERR_ARG, "'%s': an option is \"name = value\"", name);
    char *value = equals + 1 + strspn(equals + 1, " \t");
    *equals = '\0';
    name[strcspn(name, " \t")] = '\0';
    for (size_t n = strlen(value); n > 0 && strchr(" \t\r", value[n - 1]); n--)
        value[n - 1] = '\0';
    const struct ew_field *f = ew_field_find(fields, name);
    EW_CHECK(f && strcmp(name, "data") != 0, EW_ERR_ARG, "%s: not an option of training", name);
    return ew_field_parse(f, value, &t->o);
}

static ew_err take_options(struct ew_training *t, const struct ew_training_opts *o)
{
    struct ew_train_opts *to = &t->o.t;
    EW_CHECK(o->epochs >= 0 && o->batch >= 0 && o->threads >= 0 && o->memory_limit >= 0 &&
                 o->lr >= 0,
             EW_ERR_ARG, "epochs, batch, rate, threads and memory limit are not negative");
    ew_fields_default(fields, &t->o, sizeof(t->o));
    to->epochs = o->epochs ? o->epochs : to->epochs;
    to->batch = o->batch ? o->batch : to->batch;
    to->lr = o->lr > 0 ? o->lr : to->lr;
    to->threads = o->threads;
    to->memory_limit = o->memory_limit;
    to->seed = o->seed ? (int64_t)o->seed : to->seed;
    if (!o->options)
        return EW_OK;
    char *text = ew_arena_strdup(&t->arena, o->options), *save = NULL;
    EW_CHECK(text, EW_ERR_MEMORY, "no memory for options");
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        EW_TRY(take_line(t, l));
    return EW_OK;
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

static ew_err open_trainer(struct ew_training *t, struct ew_graph *net,
                           const struct ew_dataset *data)
{
    const struct ew_dataset_info *info = ew_dataset_info(data);
    struct ew_train_job job = {.net = net, .data = data, .folder = t->folder};
    int frozen;
    EW_TRY(normalise(t, net, data, &job.prep));
    const struct ew_image_card card = {.prep = job.prep};
    EW_TRY(ew_image_card_put(net, &card));
    EW_TRY(ew_image_card_random(net, false)); /* they will not be for long */
    if (t->o.t.freeze)
        EW_TRY(ew_adapt_freeze(net, t->o.t.freeze, &frozen));
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    t->o.t.data = *info->path ? info->path : info->name; /* for whoever goes on with it */
    EW_TRY(ew_fields_text(fields, &t->o, &text));
    job.options = ew_arena_printf(&t->arena, "network = %s\n%s", net->name, text);
    EW_CHECK(job.options, EW_ERR_MEMORY, "no memory for options");
    job.opts = t->o.t;
    return ew_trainer_open(&job, &t->trainer);
}

EW_API ew_err ew_training_open(struct ew_graph *net, const struct ew_dataset *data,
                               const struct ew_training_opts *opts, struct ew_training **out)
{
    const struct ew_training_opts none = {.size = sizeof(none)}, *o = opts ? opts : &none;
    *out = NULL;
    EW_CHECK(o->size == sizeof(*o), EW_ERR_ARG, "the options are %zu bytes, this library takes %zu",
             o->size, sizeof(*o));
    struct ew_training *t = calloc(1, sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "no memory for training");
    ew_arena_init(&t->arena);
    ew_err e = take_options(t, o);
    if (e == EW_OK && o->folder) {
        t->folder = ew_arena_strdup(&t->arena, o->folder);
        e = t->folder ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory for training");
    }
    if (e == EW_OK)
        e = open_trainer(t, net, data);
    if (e != EW_OK)
        ew_training_close(t);
    else
        *out = t;
    return e;
}

EW_API void ew_training_close(struct ew_training *t)
{
    if (!t)
        return;
    ew_trainer_close(t->trainer);
    ew_arena_fini(&t->arena);
    free(t);
}

/* ---- Running ---- */

EW_API ew_err ew_training_step(struct ew_training *t, int *event)
{
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
    EW_CHECK(out->size == sizeof(*out), EW_ERR_ARG,
             "the state is %zu bytes, this library gives %zu", out->size, sizeof(*out));
    const struct ew_train_status s = ew_trainer_status(t->trainer);
    const struct ew_train_result r = ew_trainer_result(t->trainer);
    const double none = (double)NAN;
    *out = (struct ew_training_state){.size = sizeof(*out),
                                      .epoch = s.epoch,
                                      .epochs = s.epochs,
                                      .batch = s.batch,
                                      .batches = s.batches,
                                      .loss = s.loss,
                                      .accuracy = s.accuracy,
                                      .validation_accuracy = r.epochs ? r.last.accuracy : none,
                                      .validation_loss = r.epochs ? r.last.loss : none,
                                      .test_accuracy = t->done ? r.test.accuracy : none,
                                      .images_per_s = s.images_per_s,
                                      .seconds_left = s.left_s};
    return EW_OK;
}

EW_API ew_err ew_training_save(struct ew_training *t)
{
    EW_CHECK(t->folder, EW_ERR_ARG, "training has no folder to save to");
    ew_trainer_save(t->trainer);
    EW_CHECK(!ew_trainer_result(t->trainer).behind, EW_ERR_IO,
             "%s: the checkpoint could not be written", t->folder);
    return EW_OK;
}
