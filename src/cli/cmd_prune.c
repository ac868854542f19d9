/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise prune: a network with fewer channels, and with what that costs and gains. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/num.h"
#include "bench/bench.h"
#include "cli/data_cmd.h"
#include "cli/prune_cmd.h"
#include "cli/recorded.h"
#include "measure/classifier.h"
#include "train/adapt.h"
#include "train/evaluate.h"
#include "train/trainer.h"

#define FIELD_OF(member) offsetof(struct ew_prune_opts, member)

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "keep", .type = EW_FIELD_FLOAT, .offset = FIELD_OF(keep), .min = 0.001, .max = 1,
     .metavar = "SHARE", .help = "target: this share of the channels that can go"},
    {.name = "macs", .type = EW_FIELD_STR, .offset = FIELD_OF(macs), .metavar = "N|P%",
     .help = "target: at most this many multiply-accumulates, or this share of them"},
    {.name = "params", .type = EW_FIELD_STR, .offset = FIELD_OF(params), .metavar = "N|P%",
     .help = "target: at most this many parameters"},
    {.name = "bytes", .type = EW_FIELD_STR, .offset = FIELD_OF(bytes), .metavar = "N|P%",
     .help = "target: memory of the inference plan, weights and activations"},
    {.name = "latency", .type = EW_FIELD_STR, .offset = FIELD_OF(latency), .metavar = "MS|P%",
     .help = "target: milliseconds of one image, measured here"},
    {.name = "importance", .type = EW_FIELD_ENUM, .offset = FIELD_OF(importance), .def = "l1",
     .choices = ew_importance_names, .help = "what stays: large filters, large batch norm scales, "
     "or what the loss needs (taylor, with --data); random is the control"},
    {.name = "global", .type = EW_FIELD_BOOL, .offset = FIELD_OF(global),
     .help = "all layers compete, instead of each losing the same share"},
    {.name = "align", .type = EW_FIELD_INT, .offset = FIELD_OF(align), .def = "1", .min = 1,
     .max = 1024, .metavar = "N", .help = "layers keep multiples of N channels; kernels like 8 or "
     "16"},
    {.name = "steps", .type = EW_FIELD_INT, .offset = FIELD_OF(steps), .def = "1", .min = 1,
     .max = 1000, .metavar = "N", .help = "reach the target in N cuts, each followed by --epochs"},
    {.name = "score-batches", .type = EW_FIELD_INT, .offset = FIELD_OF(score_batches),
     .def = "16", .min = 1, .max = 1000000, .metavar = "N", .help = "taylor: batches that it is "
     "taken over"},
    {.name = "output", .type = EW_FIELD_STR, .offset = FIELD_OF(output), .metavar = "FILE.onnx",
     .help = "the file to write", .letter = 'o'},
    EW_TRAIN_FIELDS(struct ew_prune_opts, train),
    EW_RECORDING_FIELD(struct ew_prune_opts),
    EW_FIELD_END};
/* clang-format on */

/* One run of the command. */
struct work {
    struct ew_cmd_call *c;
    const struct ew_prune_opts *o;
    bool fine_tune;
    enum ew_prune_by by;
    double base, target; /* of what is to become small */
    struct ew_classifier k;
    struct ew_image_set test, train; /* with --data */
    struct ew_pruned r;
    struct ew_graph *before; /* a copy, for timing */
};

/* ---- What is asked for ---- */

/* "50%" of `base`, or a number. */
static ew_err parse_target(const char *option, const char *text, double base, double *out)
{
    char number[32];
    const size_t n = strlen(text);
    const bool share = n > 1 && text[n - 1] == '%';
    snprintf(number, sizeof(number), "%.*s", (int)(n - share), text);
    EW_CHECK(n < sizeof(number) && ew_num_float(number, out) && *out > 0 && isfinite(*out),
             EW_ERR_USAGE, "--%s: '%.40s' is neither a number nor a share such as 50%%", option,
             text);
    if (share)
        *out *= base / 100;
    return EW_OK;
}

static ew_err find_target(struct work *w)
{
    const struct ew_prune_opts *o = w->o;
    const struct {
        const char *option, *text;
        enum ew_prune_by by;
    } all[] = {{"macs", o->macs, EW_PRUNE_MACS},
               {"params", o->params, EW_PRUNE_PARAMS},
               {"bytes", o->bytes, EW_PRUNE_BYTES},
               {"latency", o->latency, EW_PRUNE_LATENCY}};
    w->by = EW_PRUNE_KEEP;
    w->target = o->keep;
    for (size_t i = 0; i < EW_COUNT(all); i++) {
        if (!all[i].text)
            continue;
        w->by = all[i].by;
        EW_TRY(parse_target(all[i].option, all[i].text, 100, &w->target)); /* before any work */
        EW_TRY(ew_prune_measure(w->k.net, w->by, (int)o->train.threads, &w->base));
        EW_TRY(parse_target(all[i].option, all[i].text, w->base, &w->target));
        EW_CHECK(w->target < w->base, EW_ERR_ARG,
                 "--%s: %.6g are asked for, %s has no more than %.6g", all[i].option, w->target,
                 w->k.net->name, w->base);
        return EW_OK;
    }
    w->base = 1;
    return EW_OK;
}

static ew_err check_opts(struct work *w)
{
    const struct ew_prune_opts *o = w->o;
    const int n = (o->keep > 0) + !!o->macs + !!o->params + !!o->bytes + !!o->latency;
    w->fine_tune = ew_cmd_given(w->c, "epochs") || o->steps > 1;
    EW_CHECK(o->output, EW_ERR_USAGE, "--output says which file to write");
    EW_CHECK(n == 1, EW_ERR_USAGE,
             "one of --keep, --macs, --params, --bytes and --latency says how small");
    EW_CHECK(o->train.data || !w->fine_tune, EW_ERR_USAGE,
             "--epochs and --steps fine-tune: --data says on what");
    EW_CHECK(o->train.data || o->importance != EW_IMPORTANCE_TAYLOR, EW_ERR_USAGE,
             "--importance taylor needs --data");
    return EW_OK;
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
    EW_TRY(ew_data_hint(w->c, test, ew_image_set_open(test, &w->k, false, &w->test)));
    EW_TRY(ew_data_hint(w->c, w->o->train.data,
                        ew_image_set_open(w->o->train.data, &w->k, true, &w->train)));
    const struct ew_dataset_info *info = ew_dataset_info(w->train.data);
    EW_CHECK(out->rank == 2 && out->dim[1] >= info->classes, EW_ERR_ARG,
             "%s: data set %s has %lld classes, more than the network's output", g->name,
             info->name, (long long)info->classes);
    return EW_OK;
}

static ew_err open_network(struct work *w)
{
    const struct ew_image_opts images = {.mean = w->o->train.mean, .std = w->o->train.std};
    if (w->o->train.data)
        return ew_classifier_load(w->c->args[0], &images, &w->k);
    const struct ew_network_how how = {.seed = (uint64_t)w->o->train.seed};
    EW_TRY(ew_network_open(w->c->args[0], &how, &w->k.network));
    w->k.net = w->k.network.graph;
    return EW_OK;
}

static ew_err note_layers(struct work *w, const struct ew_channels *c)
{
    struct ew_pruned *r = &w->r;
    r->layers = calloc((size_t)c->n_makers + 1, sizeof(*r->layers));
    EW_CHECK(r->layers, EW_ERR_MEMORY, "no memory for %d layers", c->n_makers);
    for (int i = 0; i < c->n_makers; i++) {
        const struct ew_channel_maker *m = &c->makers[i];
        r->layers[r->n_layers++] =
            (struct ew_pruned_layer){.name = w->k.net->nodes[m->node].name,
                                     .weight = m->weight,
                                     .axis = m->axis,
                                     .before = w->k.net->values[m->weight].t.shape.dim[m->axis]};
    }
    return EW_OK;
}

/* Says why, where nothing can go. */
static ew_err check_groups(const struct ew_graph *g, const struct ew_channels *c)
{
    if (c->n_groups > 0)
        return EW_OK;
    for (int u = 0; u < c->n_units; u++)
        if (c->units[u].keeper >= 0) {
            const struct ew_node *n = &g->nodes[c->units[u].keeper];
            return ew_fail(EW_ERR_UNSUPPORTED,
                           "%s: no channel can go; %s (%s) needs all that it reads", g->name,
                           n->name, n->op->name);
        }
    return ew_fail(EW_ERR_UNSUPPORTED, "%s: no channel can go; it has no layer between others",
                   g->name);
}

/* ---- One cut ---- */

static ew_err score(struct work *w, const struct ew_channels *c, double *scores)
{
    const struct ew_prune_opts *o = w->o;
    struct ew_taylor_opts t = {
        .loader = w->train.loader, .batches = o->score_batches, .threads = (int)o->train.threads};
    if (o->importance != EW_IMPORTANCE_TAYLOR)
        return ew_importance_of_weights(w->k.net, c, (enum ew_importance)o->importance,
                                        (uint64_t)o->train.seed, scores);
    t.loader.batch = o->train.batch;
    t.loader.seed = (uint64_t)o->train.seed;
    return ew_importance_taylor(w->k.net, c, &t, scores);
}

static struct ew_prune_job job_of(struct work *w, const struct ew_channels *c, const double *scores,
                                  double target)
{
    return (struct ew_prune_job){.g = w->k.net,
                                 .channels = c,
                                 .scores = scores,
                                 .by = w->by,
                                 .target = target,
                                 .rule = {.global = w->o->global,
                                          .align = (int)w->o->align,
                                          .threads = (int)w->o->train.threads}};
}

static ew_err cut_units(struct work *w, const struct ew_channels *c, double target)
{
    EW_CLEANUP(ew_free_ptr) void *scores = calloc((size_t)c->n_units + 1, sizeof(double));
    EW_CLEANUP(ew_free_ptr) void *gone = calloc((size_t)c->n_units + 1, sizeof(bool));
    struct ew_prune_found found;
    EW_CHECK(scores && gone, EW_ERR_MEMORY, "no memory for %d channels", c->n_units);
    EW_TRY(score(w, c, scores));
    EW_TRY(ew_graph_set_batch(w->k.net, 1));
    const struct ew_prune_job j = job_of(w, c, scores, target);
    EW_TRY(ew_prune_search(&j, gone, &found));
    return ew_channels_remove(w->k.net, c, gone, false);
}

static ew_err cut(struct work *w, double target)
{
    struct ew_channels c;
    EW_TRY(ew_graph_set_batch(w->k.net, 1));
    ew_err e = ew_channels_find(w->k.net, &c);
    if (e == EW_OK)
        e = cut_units(w, &c, target);
    ew_channels_fini(&c);
    return e;
}

/* Whether it can be done at all, and what there is to cut. */
static ew_err look(struct work *w, const struct ew_channels *c)
{
    EW_CLEANUP(ew_free_ptr) void *scores = calloc((size_t)c->n_units + 1, sizeof(double));
    EW_CLEANUP(ew_free_ptr) void *gone = calloc((size_t)c->n_units + 1, sizeof(bool));
    double least;
    EW_CHECK(scores && gone, EW_ERR_MEMORY, "no memory for %d channels", c->n_units);
    EW_TRY(check_groups(w->k.net, c));
    EW_TRY(note_layers(w, c));
    const struct ew_prune_job j = job_of(w, c, scores, w->target);
    EW_TRY(ew_prune_reach(&j, gone, &least));
    if (w->o->importance == EW_IMPORTANCE_TAYLOR)
        return EW_OK;
    return score(w, c, scores);
}

static ew_err check_work(struct work *w)
{
    struct ew_channels c;
    ew_err e = ew_channels_find(w->k.net, &c);
    if (e == EW_OK)
        e = look(w, &c);
    ew_channels_fini(&c);
    return e;
}

/* ---- Learning again ---- */

static ew_err evaluate(struct work *w, double *out)
{
    struct ew_evaluator e;
    struct ew_scores s;
    *out = (double)NAN;
    if (!w->o->train.data)
        return EW_OK;
    EW_TRY(ew_evaluator_open(&w->test.loader, w->k.net, (int)w->o->train.threads, &e));
    const ew_err err = ew_evaluator_run(&e, w->k.net, &s);
    ew_evaluator_close(&e);
    *out = s.accuracy;
    return err;
}

static ew_err fine_tune(struct work *w)
{
    const struct ew_train_job job = {.net = w->k.net,
                                     .data = w->train.data,
                                     .opts = w->o->train,
                                     .options = "",
                                     .prep = w->k.prep};
    struct ew_trainer *t;
    enum ew_train_event event = EW_TRAIN_BATCH;
    for (int v = 0; v < w->k.net->n_values; v++)
        w->k.net->values[v].frozen = false;
    EW_TRY(ew_trainer_open(&job, &t));
    ew_err e = EW_OK;
    while (e == EW_OK && event != EW_TRAIN_DONE) {
        e = ew_trainer_step(t, &event);
        if (e == EW_OK && event == EW_TRAIN_EPOCH) {
            const struct ew_epoch_row *row = ew_trainer_epoch(t);
            fprintf(stderr, "epoch %lld: loss %.4f, accuracy %.2f %%, %.1f s\n",
                    (long long)row->epoch, row->train_loss, 100 * row->accuracy, row->wall_s);
        }
    }
    if (e == EW_OK)
        w->r.accuracy_after = ew_trainer_result(t).last.accuracy;
    ew_trainer_close(t);
    return e;
}

/* Cuts come in equal ratios, so that each takes the same share of what is left. */
static ew_err prune(struct work *w)
{
    const struct ew_prune_opts *o = w->o;
    EW_TRY(evaluate(w, &w->r.accuracy_before));
    for (int64_t i = 1; i <= o->steps; i++) {
        const double all = w->base * pow(w->target / w->base, (double)i / (double)o->steps);
        const double step = pow(w->target, 1.0 / (double)o->steps);
        EW_TRY(cut(w, w->by == EW_PRUNE_KEEP ? step : i == o->steps ? w->target : all));
        EW_TRY(evaluate(w, &w->r.accuracy_cut));
        w->r.accuracy_after = w->r.accuracy_cut;
        if (o->train.data)
            fprintf(stderr, "cut %lld of %lld: accuracy %.2f %%\n", (long long)i,
                    (long long)o->steps, 100 * w->r.accuracy_cut);
        if (w->fine_tune)
            EW_TRY(fine_tune(w));
    }
    if (!w->fine_tune)
        w->r.accuracy_cut = (double)NAN; /* the same as after */
    return EW_OK;
}

/* ---- Before and after ---- */

/* The network as it was, with weights of its own where cutting and learning change them. */
static ew_err keep_before(struct work *w)
{
    EW_TRY(ew_graph_clone(w->k.net, &w->before));
    return ew_graph_cost(w->before, &w->r.cost_before, NULL);
}

static ew_err compare_speed(struct work *w)
{
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER, .optimize = true, .backend = {.threads = (int)w->o->train.threads}};
    const struct ew_bench_opts b = {.warmup = 3, .iters = 32, .trials = 1};
    struct ew_bench_side sides[2] = {{0}};
    struct ew_graph *const graphs[2] = {w->before, w->k.net};
    ew_err e = EW_OK;
    for (int i = 0; e == EW_OK && i < 2; i++) {
        e = ew_graph_set_batch(graphs[i], 1);
        if (e == EW_OK)
            e = ew_plan_compile(graphs[i], &po, &sides[i].p);
        if (e == EW_OK)
            ew_bench_fill(sides[i].p, graphs[i], 2, 1);
    }
    if (e == EW_OK)
        e = ew_bench_interleave(sides, 2, &b, NULL, NULL);
    w->r.ms_before = sides[0].time.median_ms;
    w->r.ms_after = sides[1].time.median_ms;
    w->r.ratio = sides[1].ratio;
    ew_plan_free(sides[0].p);
    ew_plan_free(sides[1].p);
    return e;
}

static ew_err record(struct ew_recording *rec, const struct ew_pruned *r)
{
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
               {"file_bytes", "B", (double)r->file_bytes, EW_BETTER_LOWER}};
    for (size_t i = 0; i < EW_COUNT(all); i++)
        if (!isnan(all[i].value))
            EW_TRY(ew_recording_metric(rec, all[i].name, all[i].value, all[i].unit, all[i].better));
    return EW_OK;
}

static ew_err finish(struct work *w, struct ew_recording *rec)
{
    const struct ew_onnx_save_opts save = {0};
    struct stat st;
    w->r.g = w->k.net;
    w->r.file = w->o->output;
    EW_TRY(ew_graph_set_batch(w->k.net, 1));
    EW_TRY(ew_graph_cost(w->k.net, &w->r.cost_after, NULL));
    EW_TRY(ew_onnx_save(w->k.net, w->o->output, &save));
    w->r.file_bytes = stat(w->o->output, &st) == 0 ? (int64_t)st.st_size : 0;
    EW_TRY(compare_speed(w));
    EW_TRY(record(rec, &w->r));
    return w->c->json ? ew_prune_print_json(&w->r) : ew_prune_print(&w->r);
}

static ew_err work(struct work *w, struct ew_recording *rec)
{
    EW_TRY(open_network(w));
    if (w->o->train.data)
        EW_TRY(open_data(w));
    EW_TRY(ew_graph_set_batch(w->k.net, 1));
    EW_TRY(find_target(w));
    EW_TRY(check_work(w));
    EW_TRY(keep_before(w));
    EW_TRY(prune(w));
    return finish(w, rec);
}

static ew_err run(struct ew_cmd_call *c)
{
    struct work *w = calloc(1, sizeof(*w));
    struct ew_recording rec;
    EW_CHECK(w, EW_ERR_MEMORY, "no memory");
    w->c = c;
    w->o = c->opts;
    ew_err e = check_opts(w);
    if (e == EW_OK && (e = ew_cmd_record(c, w->o->db, &rec)) == EW_OK)
        e = ew_recording_end(&rec, work(w, &rec));
    ew_graph_free(w->before);
    ew_image_set_close(&w->test);
    ew_image_set_close(&w->train);
    ew_classifier_fini(&w->k);
    free(w->r.layers);
    free(w);
    return e;
}

const struct ew_cmd ew_cmd_prune = {
    .name = "prune",
    .group = EW_CMD_SHRINK,
    .summary = "take whole channels out of a network; what that costs and gains",
    .args = "CKPT|FILE.onnx|NAME",
    .about =
        "What has to go together is found from the graph: channels that additions put on top of "
        "each other, concatenations, splits, groups, depthwise filters, batch norms, shuffles.\n"
        "The result computes what the network did with those channels at zero; layers are smaller, "
        "so it is faster without any special kernel.\n"
        "With --data accuracy is measured; --epochs teaches the network again after each of "
        "--steps cuts.",
    .examples = "prune best.ckpt --macs 50% --data cifar10 --epochs 5 --lr 0.01 -o half.onnx\n"
                "prune mobilenet_v2.onnx --keep 0.7 --align 8 -o smaller.onnx\n"
                "prune best.ckpt --latency 5 --global --importance taylor --data cifar10 --steps 4 "
                "--epochs 2 -o fast.onnx",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct ew_prune_opts),
    .opts = fields,
    .run = run,
};
