/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise eval: accuracy of a network on a data set. */
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/data_cmd.h"
#include "cli/device_opt.h"
#include "cli/eval_anomaly.h"
#include "cli/eval_show.h"
#include "cli/recorded.h"
#include "data/load_args.h"
#include "engine/engine.h"
#include "measure/classifier.h"
#include "measure/eval_run.h"
#include "model/loss_table.h"

struct opts {
    const char *device;
    int precision;
    struct ew_image_opts images;
    const char *data, *csv, *png, *predictions, *mistakes;
    int split;
    int64_t batch, threads, workers, top;
    int on_bad_sample;
    double min_accuracy;
    struct ew_anomaly_opts anomaly;
    const char *db;
};

static const char *const split_names[] = {"test", "train", NULL};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "data", .type = EW_FIELD_STR, .offset = offsetof(struct opts, data), .letter = 'd',
     .metavar = "DATA[:N]", .help = "data set, as for `train`; N: only that many samples"},
    {.name = "split", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, split), .def = "test",
     .choices = split_names, .help = "which split"},
    EW_PREPROCESS_FIELDS(struct opts, images),
    {.name = "batch", .type = EW_FIELD_INT, .offset = offsetof(struct opts, batch), .def = "32",
     .min = 1, .max = 65536, .metavar = "B", .help = "batch size"},
    EW_DEVICE_FIELD(struct opts),
    EW_PRECISION_FIELD(struct opts),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "compute threads; 0: one per CPU"},
    {.name = "workers", .type = EW_FIELD_INT, .offset = offsetof(struct opts, workers), .def = "1",
     .min = 0, .max = 256, .metavar = "N",
     .help = "loader threads; 0: load in the computing thread"},
    {.name = "on-bad-sample", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, on_bad_sample),
     .def = "stop", .choices = ew_on_bad_words,
     .help = "what to do with a sample that cannot be decoded"},
    {.name = "top", .type = EW_FIELD_INT, .offset = offsetof(struct opts, top), .def = "50",
     .min = 0, .max = 100000, .metavar = "N",
     .help = "with more classes than this show only the N worst; 0: all"},
    {.name = "csv", .type = EW_FIELD_STR, .offset = offsetof(struct opts, csv), .metavar = "FILE",
     .help = "write the confusion matrix with class names; with --anomaly the ROC curve"},
    {.name = "png", .type = EW_FIELD_STR, .offset = offsetof(struct opts, png), .metavar = "FILE",
     .help = "draw the confusion matrix; with --anomaly the ROC curve"},
    {.name = "predictions", .type = EW_FIELD_STR, .offset = offsetof(struct opts, predictions),
     .metavar = "FILE.csv", .help = "write the true class and the top 5 of each image"},
    {.name = "mistakes", .type = EW_FIELD_STR, .offset = offsetof(struct opts, mistakes),
     .metavar = "FILE.png", .help = "draw the most confident mistakes with their true and predicted classes, and list them"},
    {.name = "min-accuracy", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, min_accuracy), .def = "0", .min = 0, .max = 1,
     .metavar = "SHARE",
     .help = "for scripts: exit with status 1 if the top-1 accuracy is below this, as 0.85"},
    {.name = "anomaly", .type = EW_FIELD_STR, .offset = offsetof(struct opts, anomaly.classes),
     .metavar = "CLASS,CLASS",
     .help = "autoencoders: classes that count as anomalies; prints ROC curve, AUC and threshold"},
    {.name = "false-alarms", .type = EW_FIELD_FLOAT,
     .offset = offsetof(struct opts, anomaly.false_alarms), .def = "0.05", .min = 0, .max = 1,
     .metavar = "SHARE", .help = "anomaly: false positive rate at which the threshold is set"},
    EW_RECORDING_FIELD(struct opts),
    EW_FIELD_END};
/* clang-format on */

static ew_err record(struct ew_recording *rec, const struct ew_eval_report *r)
{
    const struct ew_scores s = ew_confusion_scores(&r->run->confusion);
    EW_TRY(ew_recording_metric(rec, "test_accuracy", s.accuracy, NULL, EW_BETTER_HIGHER));
    EW_TRY(ew_recording_metric(rec, "test_top5_accuracy", ew_eval_top(r), NULL, EW_BETTER_HIGHER));
    EW_TRY(ew_recording_metric(rec, "test_precision", s.precision, NULL, EW_BETTER_HIGHER));
    EW_TRY(ew_recording_metric(rec, "test_recall", s.recall, NULL, EW_BETTER_HIGHER));
    EW_TRY(ew_recording_metric(rec, "test_f1", s.f1, NULL, EW_BETTER_HIGHER));
    EW_TRY(ew_recording_metric(rec, "eval_s", r->seconds, "s", EW_BETTER_LOWER));
    return ew_recording_metric(rec, "images_per_s", (double)s.samples / r->seconds, "1/s",
                               EW_BETTER_HIGHER);
}

static ew_err show(const struct ew_cmd_call *c, const struct ew_eval_report *r)
{
    const struct opts *o = c->opts;
    if (o->csv)
        EW_TRY(ew_eval_write_csv(r, o->csv));
    if (o->png)
        EW_TRY(ew_eval_write_png(r, o->png));
    if (o->predictions)
        EW_TRY(ew_eval_write_predictions(r, o->predictions));
    if (o->mistakes)
        EW_TRY(ew_eval_write_mistakes(r, o->mistakes));
    EW_TRY(c->json ? ew_eval_print_json(r) : ew_eval_print(r));
    return o->mistakes && !c->json ? ew_eval_print_mistakes(r) : EW_OK;
}

/* Checks --min-accuracy.  The run itself is recorded as done, whatever the result. */
static ew_err gate(const struct opts *o, const struct ew_eval_report *r, struct ew_recording *rec)
{
    const double accuracy = ew_confusion_scores(&r->run->confusion).accuracy;
    if (accuracy >= o->min_accuracy)
        return EW_OK;
    EW_TRY(ew_recording_end(rec, EW_OK));
    return ew_fail(EW_ERR_LIMIT, "%s: accuracy %.2f %% is below --min-accuracy, %.2f %%",
                   r->network, 100 * accuracy, 100 * o->min_accuracy);
}

/* ---- A network that gives back its input ---- */

static ew_err record_errors(struct ew_recording *rec, const struct ew_eval_report *r,
                            const struct ew_roc *roc)
{
    double sum = 0;
    for (int64_t i = 0; i < r->run->n; i++)
        sum += r->run->errors[i].error;
    if (r->run->n)
        EW_TRY(
            ew_recording_metric(rec, "test_loss", sum / (double)r->run->n, NULL, EW_BETTER_LOWER));
    if (roc->n)
        EW_TRY(ew_recording_metric(rec, "roc_area", roc->area, NULL, EW_BETTER_HIGHER));
    return ew_recording_metric(rec, "eval_s", r->seconds, "s", EW_BETTER_LOWER);
}

static ew_err write_errors(const struct opts *o, const struct ew_eval_report *r,
                           const struct ew_roc *roc)
{
    EW_CHECK(!o->mistakes, EW_ERR_USAGE, "--mistakes: %s is not a classifier", r->network);
    EW_CHECK(o->min_accuracy <= 0, EW_ERR_USAGE, "--min-accuracy: %s is not a classifier",
             r->network);
    if (o->csv)
        EW_TRY(ew_anomaly_write_csv(roc, o->csv));
    if (o->png)
        EW_TRY(ew_anomaly_write_png(roc, o->png));
    return o->predictions ? ew_anomaly_write_errors(r, o->predictions) : EW_OK;
}

static ew_err show_errors(const struct ew_cmd_call *c, const struct ew_eval_report *r,
                          struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    struct ew_roc roc;
    ew_err e = ew_anomaly_curve(r, &o->anomaly, &roc);
    if (e == EW_OK)
        e = record_errors(rec, r, &roc);
    if (e == EW_OK)
        e = write_errors(o, r, &roc);
    if (e == EW_OK)
        e = c->json ? ew_anomaly_print_json(r, &roc) : ew_anomaly_print(r, &roc);
    ew_roc_fini(&roc);
    return e;
}

/* ---- Running ---- */

static ew_err check_classes(const struct opts *o, const struct ew_eval_target *t,
                            const struct ew_dataset_info *info)
{
    if (ew_net_reconstructs(t->graph))
        return EW_OK;
    const int64_t classes = ew_tensor_count(ew_plan_output(t->plan, 0)) / t->batch;
    EW_CHECK(!o->anomaly.classes, EW_ERR_USAGE,
             "--anomaly is for autoencoders; the output of %s is not shaped like its input",
             t->name);
    if (classes > info->classes)
        EW_WARN("%s has %lld classes, data set %s has %lld: classes are compared by index", t->name,
                (long long)classes, info->name, (long long)info->classes);
    return EW_OK;
}

/* Names of the classes: the data set's; the network's, or numbers, for those that it lacks. */
static ew_err name_classes(struct ew_arena *a, const struct ew_image_card *card,
                           struct ew_eval_report *r)
{
    const int64_t own = ew_dataset_info(r->data)->classes;
    r->n_classes = ew_max_i64(own, r->run->confusion.classes);
    const char **names = ew_arena_array(a, (size_t)r->n_classes + 1, sizeof(*names));
    EW_CHECK(names, EW_ERR_MEMORY, "no memory for names of classes");
    for (int64_t k = 0; k < r->n_classes; k++) {
        names[k] = k < own               ? ew_dataset_class(r->data, k)
                   : k < card->n_classes ? card->classes[k]
                                         : ew_arena_printf(a, "%lld", (long long)k);
        EW_CHECK(names[k], EW_ERR_MEMORY, "no memory for names of classes");
    }
    r->classes = names;
    return EW_OK;
}

static ew_err evaluate(struct ew_cmd_call *c, const struct ew_eval_target *t,
                       const struct ew_image_set *s, const struct ew_image_card *card,
                       struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    struct ew_eval_run run;
    struct ew_arena names;
    EW_TRY(check_classes(o, t, ew_dataset_info(s->data)));
    const int64_t start = ew_clock_ns();
    ew_err e = ew_eval_run(t, &s->loader, o->predictions || o->mistakes, stderr, &run);
    struct ew_eval_report r = {.network = t->name,
                               .data = s->data,
                               .split = s->loader.split,
                               .run = &run,
                               .seconds = (double)(ew_clock_ns() - start) * 1e-9,
                               .top_classes = o->top};
    ew_arena_init(&names);
    e = e == EW_OK ? name_classes(&names, card, &r) : e;
    if (e == EW_OK && run.errors)
        e = show_errors(c, &r, rec);
    else if (e == EW_OK && (e = record(rec, &r)) == EW_OK && (e = show(c, &r)) == EW_OK)
        e = gate(o, &r, rec);
    ew_arena_fini(&names);
    ew_eval_run_fini(&run);
    return e;
}

/* ---- What is evaluated ---- */

/* Compiles the network at the batch of the options. */
static ew_err plan_network(const struct opts *o, struct ew_classifier *k, struct ew_eval_target *t)
{
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER, .optimize = true, .backend = {.threads = (int)o->threads}};
    EW_TRY(ew_graph_set_batch(k->net, o->batch));
    EW_TRY(ew_plan_compile(k->net, &po, &t->plan));
    t->graph = k->net;
    t->batch = ew_graph_images(k->net);
    return EW_OK;
}

/* The engine's plan, at the nearest batch in its compiled range. */
static ew_err plan_engine(const struct opts *o, struct ew_classifier *k, struct ew_eval_target *t)
{
    const struct ew_engine_card *card = &k->network.engine->file.card;
    t->batch = ew_max_i64(card->batch_min, ew_min_i64(o->batch, card->batch_max));
    if (card->batch_max > card->batch_min)
        EW_TRY(ew_context_set_batch(k->network.context, t->batch));
    t->plan = ew_context_plan(k->network.context);
    t->graph = ew_context_graph(k->network.context);
    return EW_OK;
}

static ew_err run_on(struct ew_cmd_call *c, struct ew_classifier *k, struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    const bool engine = k->network.engine != NULL;
    struct ew_eval_target t = {.name = k->net->name, .loss = k->network.loss};
    struct ew_image_set s = {0};
    ew_err e = ew_data_hint(
        c, o->data,
        ew_image_set_open(o->data, k, o->split == 1 ? EW_FOR_TRAINING : EW_FOR_EVALUATION, &s));
    s.loader.workers = o->workers;
    s.loader.on_bad = (enum ew_on_bad)o->on_bad_sample;
    if (e == EW_OK)
        e = engine ? plan_engine(o, k, &t) : plan_network(o, k, &t);
    if (e == EW_OK)
        e = evaluate(c, &t, &s, &k->network.card, rec);
    if (!engine)
        ew_plan_free(t.plan);
    ew_image_set_close(&s);
    return e;
}

/* Fails now if an output file cannot be written, instead of after a long evaluation. */
static ew_err check_outputs(const struct opts *o)
{
    const char *const files[] = {o->csv, o->png, o->predictions, o->mistakes};
    for (size_t i = 0; i < EW_COUNT(files); i++)
        if (files[i])
            EW_TRY(ew_file_out_check(files[i]));
    return EW_OK;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    struct ew_classifier k;
    EW_CHECK(o->data, EW_ERR_USAGE, "eval: no data set: --data DIR or NAME");
    EW_TRY(check_outputs(o));
    struct ew_recording rec;
    EW_TRY(ew_cmd_record(c, o->db, &rec));
    ew_err e = ew_classifier_open(c->args[0], &o->images, (int)o->threads, &k);
    if (e == EW_OK)
        e = run_on(c, &k, &rec);
    ew_classifier_fini(&k);
    return ew_recording_end(&rec, e);
}

const struct ew_cmd ew_cmd_eval = {
    .name = "eval",
    .group = EW_CMD_TRAIN,
    .summary = "accuracy of a network on a data set, by class, with its mistakes",
    .args = "CKPT|FILE.onnx|FILE.ewe|NAME",
    .about = "Prints top-1 and top-5 accuracy, macro precision, recall and F1, the same for each "
             "class, and the confusion matrix.\n"
             "Macro averages weight all classes that occur equally.\n"
             "The interval beside the accuracy is what the number of images can tell (Wilson's, "
             "95 % confidence).\n"
             "The loss is the one that the checkpoint was trained with; for other files "
             "cross-entropy.\n"
             "For autoencoders it prints the reconstruction loss by class (mean squared error "
             "unless the checkpoint says otherwise); --anomaly measures how well that loss "
             "separates some classes from the rest.",
    .examples = "eval runs/lenet5-mnist/best.ckpt --data mnist --png confusion.png\n"
                "eval squeezenet.onnx --data photos/ --mean imagenet --csv confusion.csv\n"
                "eval net.ewe --data cifar10 --predictions all.csv --mistakes worst.png\n"
                "eval int8.onnx --data photos/ --min-accuracy 0.85\n"
                "eval autoencoder.ckpt --data clips/ --anomaly falling,running --png roc.png",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .starts_nothing = true,
};
