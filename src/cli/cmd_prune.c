/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise prune: removes channels, and compares size, time and accuracy before and after. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/num.h"
#include "base/pool.h"
#include "bench/quiet.h"
#include "cli/bench_times.h"
#include "cli/data_cmd.h"
#include "cli/device_opt.h"
#include "cli/prune_cmd.h"
#include "cli/recorded.h"
#include "cli/status_line.h"
#include "measure/classifier.h"

#define FIELD_OF(member) offsetof(struct ew_prune_opts, member)

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "keep", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(keep), .min = 0.001, .max = 1,
     .metavar = "SHARE", .help = "target: fraction of the prunable channels to keep"},
    {.name = "macs", .type = EW_FIELD_STR, .offset = FIELD_OF(macs), .metavar = "N|P%",
     .help = "target: at most this many multiply-accumulates, or this percentage of them"},
    {.name = "params", .type = EW_FIELD_STR, .offset = FIELD_OF(params), .metavar = "N|P%",
     .help = "target: at most this many parameters, or this percentage of them"},
    {.name = "bytes", .type = EW_FIELD_STR, .offset = FIELD_OF(bytes), .metavar = "N|P%",
     .help = "target: memory of the inference plan (weights and activations), as 64K or 2M"},
    {.name = "latency", .type = EW_FIELD_STR, .offset = FIELD_OF(latency), .metavar = "TIME|P%",
     .help = "target: latency of one image, measured here, as 5ms; a plain number is in "
     "milliseconds"},
    {.name = "importance", .type = EW_FIELD_ENUM, .offset = FIELD_OF(importance), .def = "l1",
     .choices = ew_importance_names,
     .help = "which channels to keep: by filter norm (l1, l2), batch norm scale (bn), or "
     "first-order effect on the loss (taylor, needs --data); random is a baseline"},
    {.name = "global", .type = EW_FIELD_BOOL, .offset = FIELD_OF(global),
     .help = "rank channels across all layers, instead of pruning every layer by the same ratio"},
    {.name = "align", .type = EW_FIELD_INT, .offset = FIELD_OF(align), .def = "0", .min = 0,
     .max = 1024, .metavar = "N",
     .help = "keep a multiple of N channels in each layer, since kernels work on vectors; 0: 8 in "
     "layers of 64 and more, 1 in smaller ones"},
    {.name = "steps", .type = EW_FIELD_INT, .offset = FIELD_OF(steps), .def = "1", .min = 1,
     .max = 1000, .metavar = "N",
     .help = "reach the target in N pruning steps, each followed by --epochs of fine-tuning"},
    {.name = "score-batches", .type = EW_FIELD_INT, .offset = FIELD_OF(score_batches),
     .def = "16", .min = 1, .max = 1000000, .metavar = "N",
     .help = "taylor: number of batches to average over"},
    {.name = "output", .type = EW_FIELD_STR, .offset = FIELD_OF(output), .metavar = "FILE.onnx",
     .help = "file to write", .letter = 'o'},
    EW_TRAIN_FIELDS(struct ew_prune_opts, train),
    EW_DEVICE_FIELD(struct ew_prune_opts),
    EW_PRECISION_FIELD(struct ew_prune_opts),
    EW_RECORDING_FIELD(struct ew_prune_opts),
    EW_FIELD_END};
/* clang-format on */

/* State of one call. */
struct work {
    struct ew_cmd_call *c;
    const struct ew_prune_opts *o;
    struct ew_prune_run_job job;
    struct ew_classifier k;
    struct ew_image_set test, train; /* with --data */
    struct ew_prune_shown r;
    struct ew_graph *before; /* copy of the original, for timing */
};

/* ---- What is asked for ---- */

/* The factor of a suffix of byte counts; 1: none. */
static double unit_of(enum ew_prune_by by, char last)
{
    const char *const units = "kmg",
                      *at = by == EW_PRUNE_BYTES && last ? strchr(units, last | 32) : NULL;
    return at ? pow(1024, (double)(at - units + 1)) : 1;
}

/* Parses "50%" or a number; times and bytes may have a unit. */
static ew_err parse_target(const char *option, const char *text, struct ew_prune_run_opts *out)
{
    char number[32];
    if (out->by == EW_PRUNE_LATENCY && ew_num_ms(text, &out->target))
        return EW_OK;
    const size_t n = strlen(text);
    const double unit = n > 1 ? unit_of(out->by, text[n - 1]) : 1;
    out->share = n > 1 && text[n - 1] == '%';
    snprintf(number, sizeof(number), "%.*s", (int)(n - (out->share || unit > 1)), text);
    EW_CHECK(n < sizeof(number) && ew_num_float(number, &out->target) && out->target > 0 &&
                 isfinite(out->target),
             EW_ERR_USAGE, "--%s: '%.40s' is neither a number nor a share such as 50%%", option,
             text);
    out->target *= out->share ? 0.01 : unit;
    return EW_OK;
}

static ew_err find_target(const struct ew_prune_opts *o, struct ew_prune_run_opts *out)
{
    const struct {
        const char *option, *text;
        enum ew_prune_by by;
    } all[] = {{"macs", o->macs, EW_PRUNE_MACS},
               {"params", o->params, EW_PRUNE_PARAMS},
               {"bytes", o->bytes, EW_PRUNE_BYTES},
               {"latency", o->latency, EW_PRUNE_LATENCY}};
    out->by = EW_PRUNE_KEEP;
    out->target = o->keep;
    for (size_t i = 0; i < EW_COUNT(all); i++)
        if (all[i].text) {
            out->by = all[i].by;
            return parse_target(all[i].option, all[i].text, out);
        }
    return EW_OK;
}

static ew_err take_opts(struct work *w)
{
    const struct ew_prune_opts *o = w->o;
    const int n = (o->keep > 0) + !!o->macs + !!o->params + !!o->bytes + !!o->latency;
    const bool fine_tune = ew_cmd_given(w->c, "epochs") || o->steps > 1;
    EW_CHECK(o->output, EW_ERR_USAGE, "no output file: --output FILE");
    EW_CHECK(n == 1, EW_ERR_USAGE,
             "no target: give one of --keep, --macs, --params, --bytes and --latency");
    EW_CHECK(o->train.data || !fine_tune, EW_ERR_USAGE,
             "--epochs and --steps fine-tune, which needs --data");
    EW_CHECK(o->train.data || o->importance != EW_IMPORTANCE_TAYLOR, EW_ERR_USAGE,
             "--importance taylor needs --data");
    w->job = (struct ew_prune_run_job){.fine_tune = fine_tune ? &o->train : NULL,
                                       .talk = stderr,
                                       .opts = {.importance = (enum ew_importance)o->importance,
                                                .global = o->global,
                                                .align = o->align,
                                                .steps = o->steps,
                                                .score_batches = o->score_batches,
                                                .batch = o->train.batch,
                                                .threads = o->train.threads,
                                                .seed = (uint64_t)o->train.seed}};
    return find_target(o, &w->job.opts);
}

/* ---- Network and data ---- */

static ew_err open_data(struct work *w)
{
    const struct ew_graph *g = w->k.net;
    const struct ew_shape *out = &g->values[g->outputs[0]].t.shape;
    char test[4096];
    const bool some = w->o->train.eval_samples > 0;
    snprintf(test, sizeof(test), some ? "%s:%lld" : "%s", w->o->train.data,
             (long long)w->o->train.eval_samples);
    EW_TRY(ew_data_hint(w->c, test, ew_image_set_open(test, &w->k, EW_FOR_EVALUATION, &w->test)));
    EW_TRY(ew_data_hint(w->c, w->o->train.data,
                        ew_image_set_open(w->o->train.data, &w->k, EW_FOR_TRAINING, &w->train)));
    const struct ew_dataset_info *info = ew_dataset_info(w->train.data);
    EW_CHECK(out->rank == 2 && out->dim[1] >= info->classes, EW_ERR_ARG,
             "%s: data set %s has %lld classes, more than the network's output", g->name,
             info->name, (long long)info->classes);
    w->job.test = &w->test.loader;
    w->job.train = &w->train.loader;
    return EW_OK;
}

static ew_err open_network(struct work *w)
{
    const struct ew_image_opts images = {.mean = w->o->train.mean, .std = w->o->train.std};
    if (w->o->train.data)
        return ew_classifier_load(w->c->args[0], &images, &w->k);
    const struct ew_network_open_opts how = {.seed = (uint64_t)w->o->train.seed};
    EW_TRY(ew_network_open(w->c->args[0], &how, &w->k.network));
    w->k.net = w->k.network.graph;
    return EW_OK;
}

static ew_err record(struct ew_recording *rec, const struct ew_prune_shown *s)
{
    const struct ew_pruned *r = &s->pruned;
    const struct {
        const char *name, *unit;
        double value;
        enum ew_better better;
    } all[] = {{"parameters_before", NULL, (double)r->cost_before.params, EW_BETTER_NEITHER},
               {"parameters", NULL, (double)r->cost_after.params, EW_BETTER_LOWER},
               {"macs_before", NULL, (double)r->cost_before.macs, EW_BETTER_NEITHER},
               {"macs", NULL, (double)r->cost_after.macs, EW_BETTER_LOWER},
               {"before_ms", "ms", r->ms_before, EW_BETTER_NEITHER},
               {"median_ms", "ms", r->ms_after, EW_BETTER_LOWER},
               {"pruned_speedup", NULL, r->ratio, EW_BETTER_HIGHER},
               {"accuracy_before", NULL, r->accuracy_before, EW_BETTER_NEITHER},
               {"test_accuracy", NULL, r->accuracy_after, EW_BETTER_HIGHER},
               {"file_bytes", "B", (double)s->file_bytes, EW_BETTER_LOWER}};
    for (size_t i = 0; i < EW_COUNT(all); i++)
        if (!isnan(all[i].value))
            EW_TRY(ew_recording_metric(rec, all[i].name, all[i].value, all[i].unit, all[i].better));
    return EW_OK;
}

static ew_err finish(struct work *w, struct ew_recording *rec)
{
    struct stat st;
    w->r.file = w->o->output;
    EW_TRY(ew_onnx_save(w->k.net, w->o->output, NULL));
    w->r.file_bytes = stat(w->o->output, &st) == 0 ? (int64_t)st.st_size : 0;
    const struct ew_cpu_use before = ew_cpu_use_now();
    ew_status_line("timing %s before and after ...", w->c->args[0]);
    const ew_err e = ew_prune_compare(w->before, w->k.net, (int)w->o->train.threads, &w->r.pruned);
    ew_status_clear();
    EW_TRY(e);
    const struct ew_cpu_use after = ew_cpu_use_now();
    ew_times_warn_busy(ew_cpu_use_others(&before, &after, ew_pool_cpus()));
    EW_TRY(record(rec, &w->r));
    return w->c->json ? ew_prune_print_json(&w->r) : ew_prune_print(&w->r);
}

static ew_err work(struct work *w, struct ew_recording *rec)
{
    EW_TRY(ew_file_out_check(w->o->output)); /* fail early */
    EW_TRY(open_network(w));
    if (w->o->train.data)
        EW_TRY(open_data(w));
    w->job.net = w->k.net;
    EW_TRY(ew_graph_set_batch(w->k.net, 1));
    EW_TRY(ew_graph_clone(w->k.net, &w->before)); /* pruning allocates new weights */
    if (!w->o->train.data)                        /* fine-tuning has lines of its own */
        ew_status_line("pruning %s ...", w->c->args[0]);
    const ew_err e = ew_prune_run(&w->job, &w->r.pruned);
    ew_status_clear();
    return e ? e : finish(w, rec);
}

static ew_err run(struct ew_cmd_call *c)
{
    struct work *w = calloc(1, sizeof(*w));
    struct ew_recording rec;
    EW_CHECK(w, EW_ERR_MEMORY, "no memory");
    w->c = c;
    w->o = c->opts;
    ew_err e = take_opts(w);
    if (e == EW_OK && (e = ew_cmd_record(c, w->o->db, &rec)) == EW_OK)
        e = ew_recording_end(&rec, work(w, &rec));
    ew_graph_free(w->before);
    ew_image_set_close(&w->test);
    ew_image_set_close(&w->train);
    ew_classifier_fini(&w->k);
    ew_pruned_fini(&w->r.pruned);
    free(w);
    return e;
}

const struct ew_cmd ew_cmd_prune = {
    .name = "prune",
    .group = EW_CMD_SHRINK,
    .summary = "structured channel pruning, with fine-tuning, accuracy and speed",
    .args = "CKPT|FILE.onnx|NAME",
    .about =
        "Channels that must be removed together are found from the graph: residual "
        "additions, concatenations, splits, groups, depthwise filters, batch norms, shuffles.\n"
        "The result computes what the network would with those channels at zero; its layers "
        "are smaller, so it is faster without special kernels.\n"
        "With --data accuracy is measured, and --epochs fine-tunes the network after each of "
        "--steps pruning steps.",
    .examples =
        "prune best.ckpt --macs 50% --data cifar10 --epochs 5 --lr 0.01 -o half.onnx\n"
        "prune mobilenet_v2.onnx --keep 0.7 --align 8 -o smaller.onnx\n"
        "prune best.ckpt --latency 5ms --global --importance taylor --data cifar10 --steps 4 "
        "--epochs 2 -o fast.onnx",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct ew_prune_opts),
    .opts = fields,
    .run = run,
};
