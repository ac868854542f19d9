/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise train` from its command line to a job: network, data, weights, normalisation. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "cli/data_cmd.h"
#include "cli/device_opt.h"
#include "cli/train_board.h"
#include "cli/train_run.h"
#include "format/image_card.h"
#include "quant/quant_learn.h"
#include "report/text_table.h"
#include "train/adapt.h"
#include "train/find_batch.h"
#include "train/memory_left.h"

/* ---- Resuming ---- */

/* The options of the checkpoint, with those that the command line has. */
static ew_err merge_options(const struct ew_cmd_call *c, struct ew_train_run *r)
{
    static const char *const may_change[] = {
        "data", "epochs",           "threads", "workers",     "prefetch", "loss-every",
        "idle", "checkpoint-every", "resume",  "tensorboard", "cold",     "on-bad-sample",
        "db",   "device",           NULL};
    const struct ew_train_cmd *asked = c->opts;
    const struct ew_cmd_resume saved = {.from = asked->resume,
                                        .options = r->from.options,
                                        .may_change = may_change,
                                        .arena = &r->arena,
                                        .size = sizeof(r->o)};
    EW_TRY(ew_cmd_resume_opts(c, &saved, &r->o));
    /* It goes on where it was, unless another device is asked for. */
    const bool elsewhere = r->o.device || r->o.precision || r->o.fast;
    return elsewhere ? ew_device_opt_use(r->o.device, r->o.precision, r->o.fast) : EW_OK;
}

static ew_err resume(const struct ew_cmd_call *c, struct ew_train_run *r)
{
    struct stat st;
    const struct ew_train_cmd *asked = c->opts;
    const char *path = asked->resume;
    const bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    const char *file = folder ? ew_arena_printf(&r->arena, "%s/last.ckpt", path) : path;
    EW_CHECK(file, EW_ERR_MEMORY, "no memory");
    EW_TRY(ew_checkpoint_read(file, &r->from));
    EW_TRY(merge_options(c, r));
    r->net = r->from.graph;
    r->job.resume = &r->from;
    const char *slash = strrchr(file, '/');
    r->o.output = slash ? ew_arena_printf(&r->arena, "%.*s", (int)(slash - file), file) : ".";
    EW_CHECK(r->o.output, EW_ERR_MEMORY, "no memory");
    return EW_OK;
}

/* ---- Network ---- */

static ew_err open_graph(struct ew_train_run *r, const char *what, const struct ew_network_opts *o,
                         struct ew_graph **out)
{
    const struct ew_network_how how = {.opts = *o, .seed = (uint64_t)r->o.train.seed};
    struct ew_network n;
    const ew_err e = ew_network_open(what, &how, &n);
    if (e == EW_OK)
        *out = ew_network_take_graph(&n);
    ew_network_close(&n);
    return e;
}

/* A network of the zoo takes the data's size where that is one and it can, else its own. */
static ew_err build(struct ew_train_run *r)
{
    const struct ew_dataset_info *info = ew_dataset_info(r->data);
    struct ew_network_opts n = r->o.net;
    n.batch = 1;
    if (n.classes == 0)
        n.classes = info->classes;
    if (n.input.n == 0 && info->h > 0) {
        const int64_t h = info->frames ? info->h / info->frames : info->h;
        n.input = (struct ew_ints){3, {h, info->w, info->c}};
        if (open_graph(r, r->o.model, &n, &r->net) == EW_OK)
            return EW_OK;
        n.input = (struct ew_ints){0};
    }
    return open_graph(r, r->o.model, &n, &r->net);
}

/* A file's network with its weights, ready for images and scores. */
static ew_err load(struct ew_train_run *r, const char *path, struct ew_network_opts n,
                   struct ew_graph **out)
{
    n.classes = 0; /* the head is replaced later */
    n.batch = 1;
    if (ew_checkpoint_is(path)) {
        n.input.n = 0;
        struct ew_checkpoint c;
        EW_TRY(ew_checkpoint_read(path, &c));
        ew_graph_free(c.graph);
        c.graph = NULL;
        ew_checkpoint_fini(&r->from);
        r->from = c; /* for its normalisation */
    }
    EW_TRY(open_graph(r, path, &n, out));
    EW_TRY(ew_adapt_images(*out));
    return ew_adapt_scores(*out);
}

static ew_err load_weights(struct ew_cmd_call *c, struct ew_train_run *r)
{
    struct ew_graph *from = NULL;
    int n;
    if (!r->o.init || strcmp(r->o.init, r->o.model) == 0)
        return EW_OK;
    ew_err e = load(r, r->o.init, (struct ew_network_opts){.width = 1}, &from);
    const bool loaded = e == EW_OK;
    if (loaded)
        e = ew_adapt_copy(r->net, from, &n);
    if (loaded && e != EW_OK)
        ew_cmd_hint(c, "edgewise train --init %.120s without a network trains the file's own",
                    r->o.init);
    ew_graph_free(from);
    EW_TRY(e);
    EW_INFO("%d tensors of weights from %s", n, r->o.init);
    return EW_OK;
}

static ew_err make_network(struct ew_cmd_call *c, struct ew_train_run *r)
{
    const struct ew_train_cmd *o = &r->o;
    const int64_t classes = o->net.classes ? o->net.classes : ew_dataset_info(r->data)->classes;
    if (ew_network_has_weights(o->model)) {
        EW_TRY(load(r, o->model, o->net, &r->net));
        if (!ew_net_reconstructs(r->net))
            EW_TRY(ew_adapt_head(r->net, classes, (uint64_t)o->train.seed, o->net.classes > 0));
    } else {
        EW_TRY(build(r));
    }
    EW_TRY(load_weights(c, r));
    EW_TRY(ew_image_card_random(r->net, false)); /* they will not be for long */
    for (int i = 0; i < r->net->n_values; i++)
        r->net->values[i].frozen = false;
    if (!o->train.freeze)
        return EW_OK;
    int n;
    EW_TRY(ew_adapt_freeze(r->net, o->train.freeze, &n));
    EW_INFO("%d tensors of weights are frozen", n);
    return EW_OK;
}

/* The largest batch that fits the limit or, less a tenth for all else, the machine. */
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

/* ---- Data ---- */

static ew_err open_data(struct ew_cmd_call *c, struct ew_train_run *r)
{
    EW_CHECK(r->o.train.data, EW_ERR_USAGE, "--data says what to train on");
    return ew_data_open(c, r->o.train.data, &r->data);
}

static ew_err normalise(struct ew_train_run *r)
{
    struct ew_preprocess *p = &r->job.prep;
    EW_TRY(ew_preprocess_parse(r->o.train.mean, r->o.train.std, p));
    if (p->normalised)
        return EW_OK;
    if (r->from.options) { /* a checkpoint's weights expect what they were trained with */
        *p = r->from.prep;
        return EW_OK;
    }
    struct ew_image_card card;
    EW_TRY(ew_image_card_get(r->net, &r->arena, &card));
    if (card.prep.normalised) {
        *p = card.prep;
        return EW_OK;
    }
    return ew_preprocess_measure(r->data, p);
}

/* The network to learn from; its images are made as the learner's are. */
static ew_err open_teacher(struct ew_train_run *r)
{
    const struct ew_network_how how = {.opts = {.width = 1, .batch = 1}};
    struct ew_network n;
    if (!r->o.teach)
        return EW_OK;
    EW_CHECK(ew_network_is_file(r->o.teach), EW_ERR_USAGE,
             "--teach: %s is not a file; a network without learnt weights teaches nothing",
             r->o.teach);
    ew_err e = ew_network_open(r->o.teach, &how, &n);
    if (e == EW_OK)
        r->teacher = ew_network_take_graph(&n);
    ew_network_close(&n);
    EW_TRY(e);
    EW_TRY(ew_adapt_images(r->teacher));
    EW_TRY(ew_adapt_scores(r->teacher));
    r->job.teacher = (struct ew_teacher){r->teacher, r->o.teach_share, r->o.temperature};
    return EW_OK;
}

/* ---- Learning for integers ---- */

/* Ranges over training images, spread evenly; then the network with fake quantisers. */
static ew_err make_qat(struct ew_train_run *r)
{
    const int64_t all = ew_dataset_info(r->data)->count[EW_SPLIT_TRAIN];
    const int64_t n = ew_min_i64(r->o.calib, all);
    EW_CLEANUP(ew_free_ptr) void *subset = calloc((size_t)n + 1, sizeof(int64_t));
    struct ew_graph *learning;
    EW_CHECK(subset, EW_ERR_MEMORY, "no memory for %lld samples", (long long)n);
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)subset)[i] = i * all / n;
    const bool pow2 = r->o.qat == EW_TRAIN_QAT_POW2; /* where remedies are worth their time */
    const struct ew_quant_job job = {
        .net = r->net,
        .calibration = {.data = r->data,
                        .split = EW_SPLIT_TRAIN,
                        .subset = subset,
                        .n_subset = n,
                        .workers = 1,
                        .prep = r->job.prep},
        .opts = {.scheme = pow2 ? EW_QUANTIZE_POW2 : EW_QUANTIZE_CHANNEL,
                 .equalize = pow2,
                 .correct_bias = pow2,
                 .threads = (int)r->o.train.threads},
        .talk = stderr};
    EW_TRY(ew_quant_learn(&job, &learning));
    ew_graph_free(r->net);
    r->net = learning;
    return EW_OK;
}

static ew_err check_qat(const struct ew_train_run *r)
{
    if (r->o.qat == EW_TRAIN_QAT_OFF || r->job.resume)
        return EW_OK;
    EW_CHECK(ew_network_is_file(r->o.model) || r->o.init, EW_ERR_USAGE,
             "--qat goes on from a trained network: a checkpoint, FILE.onnx or --init");
    EW_CHECK(!r->o.device || strcmp(r->o.device, "cpu") == 0, EW_ERR_UNSUPPORTED,
             "--qat trains on the CPU, not on %s", r->o.device);
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
    struct stat st;
    if (!r->o.output)
        return name_folder(r);
    if (ew_ranks_rank(r->job.ranks) != 0) /* the first one may have made it by now */
        return EW_OK;
    const char *last = ew_arena_printf(&r->arena, "%s/last.ckpt", r->o.output);
    EW_CHECK(last, EW_ERR_MEMORY, "no memory");
    if (!r->job.resume && stat(last, &st) == 0) {
        ew_cmd_hint(c, "edgewise train --resume %.160s goes on with it", r->o.output);
        return ew_fail(EW_ERR_ARG, "%s: holds a run already", r->o.output);
    }
    return EW_OK;
}

/* Every option as it was resolved, and what it was resolved for. */
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
    if (asked->resume) {
        EW_CHECK(c->n_args == 0, EW_ERR_USAGE, "--resume takes no network: it has its own");
        return resume(c, r);
    }
    r->o = *asked;
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
    EW_TRY(check_qat(r));
    EW_TRY(open_data(c, r));
    if (!r->job.resume) {
        EW_TRY(make_network(c, r));
        EW_TRY(find_batch(r));
    }
    EW_TRY(normalise(r));
    if (r->o.qat != EW_TRAIN_QAT_OFF && !r->job.resume)
        EW_TRY(make_qat(r));
    EW_TRY(open_teacher(r));
    EW_TRY(check_folder(c, r));
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
