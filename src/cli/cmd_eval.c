/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise eval: how well a network does on a data set. */
#include <stdio.h>

#include "base/clock.h"
#include "base/progress.h"
#include "cli/classifier.h"
#include "cli/device_opt.h"
#include "cli/eval_show.h"
#include "cli/recording.h"
#include "data/load_args.h"
#include "train/evaluate.h"

struct opts {
    const char *device;
    struct ew_image_opts images;
    const char *data, *csv, *png;
    int split;
    int64_t batch, threads, workers, top;
    int on_bad_sample;
    const char *db;
};

static const char *const split_names[] = {"test", "train", NULL};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "data", .type = EW_FIELD_STR, .offset = offsetof(struct opts, data), .letter = 'd',
     .metavar = "DATA[:N]", .help = "data set, as `train` takes it; N samples of it"},
    {.name = "split", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, split), .def = "test",
     .choices = split_names, .help = "which part of it"},
    EW_PREPROCESS_FIELDS(struct opts, images),
    {.name = "batch", .type = EW_FIELD_INT, .offset = offsetof(struct opts, batch), .def = "32",
     .min = 1, .max = 65536, .metavar = "B", .help = "images at a time"},
    EW_DEVICE_FIELD(struct opts),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "threads that compute; 0: one for each CPU"},
    {.name = "workers", .type = EW_FIELD_INT, .offset = offsetof(struct opts, workers), .def = "1",
     .min = 0, .max = 256, .metavar = "N", .help = "threads that load; 0: inline"},
    {.name = "on-bad-sample", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, on_bad_sample),
     .def = "stop", .choices = ew_on_bad_words,
     .help = "where a sample cannot be read"},
    {.name = "top", .type = EW_FIELD_INT, .offset = offsetof(struct opts, top), .def = "50",
     .min = 0, .max = 100000, .metavar = "N",
     .help = "show the N worst classes where there are more; 0: all"},
    {.name = "csv", .type = EW_FIELD_STR, .offset = offsetof(struct opts, csv), .metavar = "FILE",
     .help = "write the confusion matrix with the classes' names"},
    {.name = "png", .type = EW_FIELD_STR, .offset = offsetof(struct opts, png), .metavar = "FILE",
     .help = "draw the confusion matrix"},
    EW_RECORDING_FIELD(struct opts),
    EW_FIELD_END};
/* clang-format on */

static ew_err run_split(struct ew_evaluator *e, struct ew_graph *net)
{
    bool more = true;
    struct ew_progress bar;
    EW_TRY(ew_evaluator_begin(e, net));
    ew_progress_begin(&bar, stderr, "eval", e->samples);
    ew_err err = EW_OK;
    while (more && err == EW_OK) {
        err = ew_evaluator_step(e, &more);
        ew_progress_update(&bar, e->done);
    }
    ew_progress_end(&bar);
    return err;
}

static ew_err record(struct ew_recording *rec, const struct ew_eval_report *r)
{
    const struct ew_scores s = ew_confusion_scores(r->confusion);
    EW_TRY(ew_recording_metric(rec, "test_accuracy", s.accuracy, NULL, EW_BETTER_HIGHER));
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
    return c->json ? ew_eval_print_json(r) : ew_eval_print(r);
}

static ew_err evaluate(struct ew_cmd_call *c, struct ew_classifier *k, struct ew_image_set *s,
                       struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    struct ew_evaluator e;
    s->loader.batch = o->batch;
    s->loader.workers = o->workers;
    s->loader.on_bad = (enum ew_on_bad)o->on_bad_sample;
    const struct ew_dataset_info *info = ew_dataset_info(s->data);
    EW_TRY(ew_evaluator_open(&s->loader, k->net, (int)o->threads, &e));
    const int64_t start = ew_clock_ns();
    ew_err err = EW_OK;
    if (e.confusion.classes < info->classes)
        err = ew_fail(EW_ERR_ARG, "%s has %lld classes, data set %s has %lld", k->net->name,
                      (long long)e.confusion.classes, info->name, (long long)info->classes);
    if (err == EW_OK)
        err = run_split(&e, k->net);
    const struct ew_eval_report r = {.network = k->net->name,
                                     .data = s->data,
                                     .split = ew_split_name(s->loader.split),
                                     .confusion = &e.confusion,
                                     .seconds = (double)(ew_clock_ns() - start) * 1e-9,
                                     .bad = ew_loader_counts(e.loader).bad,
                                     .top_classes = o->top};
    if (err == EW_OK)
        err = record(rec, &r);
    if (err == EW_OK)
        err = show(c, &r);
    ew_evaluator_close(&e);
    return err;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    struct ew_classifier k;
    struct ew_image_set s = {0};
    EW_CHECK(o->data, EW_ERR_USAGE, "--data says what to evaluate on");
    struct ew_recording rec;
    EW_TRY(ew_recording_begin(c, o->db, &rec));
    ew_err e = ew_classifier_load(c->args[0], &o->images, &k);
    if (e == EW_OK)
        e = ew_image_set_open(c, o->data, &k, o->split == 1, &s);
    if (e == EW_OK)
        e = evaluate(c, &k, &s, &rec);
    ew_image_set_close(&s);
    ew_classifier_fini(&k);
    return ew_recording_end(&rec, e);
}

const struct ew_cmd ew_cmd_eval = {
    .name = "eval",
    .group = EW_CMD_TRAIN,
    .summary = "how well a network does on a data set",
    .args = "CKPT|FILE.onnx|NAME",
    .about = "Accuracy, macro precision, recall and F1, each class by itself, and the confusion "
             "matrix.\n"
             "Macro averages count every class that occurs the same, however many images it has.",
    .examples = "eval runs/lenet5-mnist/best.ckpt --data mnist --png confusion.png\n"
                "eval squeezenet.onnx --data photos/ --mean imagenet --csv confusion.csv",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .starts_nothing = true,
};
