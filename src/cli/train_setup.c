/* SPDX-License-Identifier: Apache-2.0 */
/* Setup of `edgewise train`: from the command line to network, data, weights and normalisation. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cli/data_cmd.h"
#include "cli/device_opt.h"
#include "cli/resume.h"
#include "cli/train_board.h"
#include "cli/train_run.h"
#include "network/train_network.h"
#include "quant/quant_learn.h"
#include "report/text_table.h"
#include "train/find_batch.h"
#include "train/memory_left.h"

/* ---- Resuming ---- */

static ew_err resume(const struct ew_cmd_call *c, struct ew_train_run *r)
{
    static const char *const may_change[] = {
        "data",          "epochs", "eval-every",       "threads",    "workers",     "prefetch",
        "loss-every",    "idle",   "checkpoint-every", "resume",     "tensorboard", "cold",
        "on-bad-sample", "db",     "device",           "power-from", NULL};
    const struct ew_train_cmd *asked = c->opts;
    struct ew_cmd_resume saved = {
        .from = asked->resume, .may_change = may_change, .arena = &r->arena};
    EW_TRY(ew_cmd_resume(c, &saved, &r->from, &r->o));
    r->net = r->from.graph;
    r->job.resume = &r->from;
    r->o.output = saved.folder;
    /* Continues on the same device unless the options name one. */
    const bool elsewhere = r->o.device || r->o.precision || r->o.fast;
    return elsewhere ? ew_device_opt_use(r->o.device, r->o.precision, r->o.fast) : EW_OK;
}

/* ---- Network ---- */

static ew_err open_network(struct ew_cmd_call *c, struct ew_train_run *r)
{
    const struct ew_train_cmd *o = &r->o;
    const struct ew_train_network_opts how = {.what = o->model,
                                              .init = o->init,
                                              .net = o->net,
                                              .seed = (uint64_t)o->train.seed,
                                              .freeze = o->train.freeze};
    struct ew_train_network n;
    const ew_err e = ew_train_network_open(&how, r->data, &n);
    if (e != EW_OK && n.unlike)
        ew_cmd_hint(c, "edgewise train --init %.120s without a network trains the file's network",
                    o->init);
    EW_TRY(e);
    r->net = n.graph;
    r->weights_prep = n.prep;
    EW_CHECK(o->qat == EW_TRAIN_QAT_OFF || !n.classes_were || !o->net.classes, EW_ERR_USAGE,
             "--qat: --classes reinitialises the last layer of %s; train it without --qat first",
             n.graph->name);
    EW_CHECK(o->qat == EW_TRAIN_QAT_OFF || !n.classes_were, EW_ERR_USAGE,
             "--qat: %s has %lld classes and %s has %lld, so that its last layer would be "
             "reinitialised; train it on those first, without --qat",
             n.graph->name, (long long)n.classes_were, o->train.data,
             (long long)ew_dataset_info(r->data)->classes);
    if (n.copied)
        EW_INFO("%d tensors of weights from %s", n.copied, o->init);
    if (n.frozen)
        EW_INFO("%d tensors of weights are frozen", n.frozen);
    return EW_OK;
}

/* The largest batch that fits --memory-limit, or 90 % of the machine's memory. */
static ew_err find_batch(struct ew_train_run *r)
{
    struct ew_train_opts *o = &r->o.train;
    const size_t left = ew_memory_left();
    const size_t machine = left == SIZE_MAX ? left : left / 10 * 9;
    struct ew_batch_found f;
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS];
    if (!r->o.find_batch)
        return EW_OK;
    int64_t samples, validation;
    ew_train_divide(ew_dataset_info(r->data), o, &samples, &validation);
    EW_TRY(
        ew_find_batch(r->net, o, o->memory_limit ? (size_t)o->memory_limit : machine, samples, &f));
    EW_INFO("batch %lld needs %s of %s", (long long)f.batch, ew_text_bytes((int64_t)f.bytes, a),
            ew_text_bytes((int64_t)f.limit, b));
    if (f.next_bytes)
        EW_INFO("batch %lld would need %s", 2 * (long long)f.batch,
                ew_text_bytes((int64_t)f.next_bytes, a));
    o->batch = f.batch;
    return EW_OK;
}

#define STEPS_AT_LEAST 4 /* fewest steps per epoch with the default batch */

/* Reduces the default batch for small data sets. */
static void shrink_batch(const struct ew_cmd_call *c, struct ew_train_run *r)
{
    struct ew_train_opts *o = &r->o.train;
    int64_t samples, validation, batch = 1;
    ew_train_divide(ew_dataset_info(r->data), o, &samples, &validation);
    if (ew_cmd_given(c, "batch") || samples <= 0 || samples >= o->batch)
        return;
    while (2 * batch * STEPS_AT_LEAST <= samples)
        batch *= 2;
    EW_INFO("batch %lld: there are %lld samples for training, less than the usual batch of %lld",
            (long long)batch, (long long)samples, (long long)o->batch);
    o->batch = batch;
}

/* ---- Data ---- */

static ew_err open_data(struct ew_cmd_call *c, struct ew_train_run *r)
{
    EW_CHECK(r->o.train.data, EW_ERR_USAGE, "no training data: --data DIR or NAME");
    /* Simulation reads no sample: the known properties of a data set are enough if it is not
     * stored. */
    if (r->o.simulate && ew_dataset_open(r->o.train.data, &r->data) == EW_ERR_NOT_FOUND &&
        ew_dataset_outline(r->o.train.data, &r->data) == EW_OK)
        return EW_OK;
    return r->data ? EW_OK : ew_data_open(c, r->o.train.data, &r->data);
}

/* Normalisation by the options; else that of the weights; else statistics of the data set. */
static ew_err normalise(struct ew_train_run *r)
{
    struct ew_preprocess *p = &r->job.prep;
    EW_TRY(ew_preprocess_parse(r->o.train.mean, r->o.train.std, p));
    if (p->normalised)
        return EW_OK;
    *p = r->job.resume ? r->from.prep : r->weights_prep;
    if (p->normalised || r->o.simulate)
        return EW_OK;
    return ew_preprocess_measure(r->data, p);
}

static ew_err open_teacher(struct ew_train_run *r)
{
    if (!r->o.teach)
        return EW_OK;
    EW_TRY(ew_teacher_open(r->o.teach, &r->teacher));
    r->job.teacher = (struct ew_teacher){r->teacher, r->o.teach_share, r->o.temperature};
    return EW_OK;
}

/* ---- Learning for integers ---- */

/* Inserts fake quantisers. */
static ew_err make_qat(struct ew_train_run *r)
{
    const struct ew_quant_learn_opts how = {.net = r->net,
                                            .data = r->data,
                                            .prep = r->job.prep,
                                            .images = r->o.calib,
                                            .pow2 = r->o.qat == EW_TRAIN_QAT_POW2,
                                            .threads = (int)r->o.train.threads,
                                            .talk = stderr};
    struct ew_graph *learning;
    EW_TRY(ew_quant_learn_data(&how, &learning));
    ew_graph_free(r->net);
    r->net = learning;
    return EW_OK;
}

/* Refuses options that have no effect without another one. */
static ew_err check_alone(const struct ew_cmd_call *c, const struct ew_train_run *r)
{
    const struct {
        const char *option, *of;
        bool there;
    } all[] = {{"teach-share", "teach", r->o.teach != NULL},
               {"temperature", "teach", r->o.teach != NULL},
               {"calib", "qat", r->o.qat != EW_TRAIN_QAT_OFF}};
    for (size_t i = 0; i < EW_COUNT(all); i++)
        EW_CHECK(all[i].there || !ew_cmd_given(c, all[i].option), EW_ERR_USAGE,
                 "--%s is for --%s, which is not given", all[i].option, all[i].of);
    return EW_OK;
}

static ew_err check_qat(const struct ew_train_run *r)
{
    if (r->o.qat == EW_TRAIN_QAT_OFF || r->job.resume)
        return EW_OK;
    EW_CHECK(ew_network_is_file(r->o.model) || r->o.init, EW_ERR_USAGE,
             "--qat needs a trained network: a checkpoint, FILE.onnx or --init");
    return EW_OK;
}

/* ---- Folder ---- */

static ew_err name_folder(struct ew_train_run *r)
{
    char when[32];
    const time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
    r->o.output = ew_arena_printf(&r->arena, "runs/%s-%s-%s", r->net->name,
                                  ew_dataset_info(r->data)->name, when);
    EW_CHECK(r->o.output, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

static ew_err check_folder(struct ew_cmd_call *c, struct ew_train_run *r)
{
    if (!r->o.output)
        return name_folder(r);
    if (r->job.resume || ew_ranks_rank(r->job.ranks) != 0) /* rank 0 may have created it already */
        return EW_OK;
    return ew_cmd_folder_is_new(c, r->o.output);
}

/* Records all options with their final values. */
static ew_err describe(struct ew_train_run *r)
{
    EW_CLEANUP(ew_free_ptr) char *text = NULL;
    r->o.resume = NULL;
    EW_TRY(ew_fields_text(ew_train_cmd_fields, &r->o, &text));
    const char *all = ew_arena_printf(&r->arena, "network = %s\n%s", r->net->name, text);
    EW_CHECK(all, EW_ERR_MEMORY, "no memory");
    r->job.options = all;
    return EW_OK;
}

/* ---- All of it ---- */

static ew_err begin(struct ew_cmd_call *c, struct ew_train_run *r)
{
    const struct ew_train_cmd *asked = c->opts;
    if (asked->resume)
        return resume(c, r);
    r->o = *asked;
    const char *device = getenv("EW_DEVICE");
    if (!r->o.device && !r->o.precision && !r->o.fast && device && *device)
        r->o.device = ew_arena_strdup(&r->arena, device); /* a resumed run goes on there */
    r->o.model = c->n_args ? c->args[0] : r->o.init;
    EW_CHECK(r->o.model, EW_ERR_USAGE, "which network? NAME, FILE.onnx, a checkpoint or --init");
    return EW_OK;
}

ew_err ew_train_setup(struct ew_cmd_call *c, struct ew_train_run *r)
{
    struct ew_ranks *ranks = r->job.ranks;
    memset(r, 0, sizeof(*r));
    r->job.ranks = ranks;
    ew_arena_init(&r->arena);
    r->json = c->json;
    EW_TRY(begin(c, r));
    EW_TRY(check_alone(c, r));
    EW_TRY(check_qat(r));
    EW_TRY(open_data(c, r));
    if (!r->job.resume) {
        EW_TRY(open_network(c, r));
        EW_TRY(find_batch(r));
        shrink_batch(c, r);
    }
    EW_TRY(normalise(r));
    EW_TRY(open_teacher(r));
    EW_TRY(check_folder(c, r));
    EW_TRY(ew_train_check_batch(ew_dataset_info(r->data), &r->o.train));
    if (r->o.qat != EW_TRAIN_QAT_OFF && !r->job.resume)
        EW_TRY(make_qat(r));
    EW_TRY(describe(r));
    r->job.net = r->net;
    r->job.data = r->data;
    r->job.opts = r->o.train;
    const bool first = ew_ranks_rank(r->job.ranks) == 0;
    r->job.folder = first ? r->o.output : NULL;
    r->job.talk = first ? stderr : NULL;
    r->job.exchange = (struct ew_exchange_opts){.form = r->o.compress,
                                                .share = r->o.compress_share,
                                                .bucket_bytes = (size_t)r->o.bucket,
                                                .sync_norms = r->o.sync_bn};
    return EW_OK;
}

void ew_train_fini(struct ew_train_run *r)
{
    if (r->from.graph == r->net)
        r->from.graph = NULL;
    ew_checkpoint_fini(&r->from);
    ew_graph_free(r->net);
    ew_graph_free(r->teacher);
    ew_dataset_close(r->data);
    ew_watch_free(r->watch.watch);
    ew_train_board_close(r->board);
    ew_arena_fini(&r->arena);
}
