/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise compile: a network as an engine file. */
#include <stdio.h>
#include <string.h>

#include "backend/tune.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "cli/bench_dpu.h"
#include "cli/cmd.h"
#include "cli/data_cmd.h"
#include "cli/device_opt.h"
#include "cli/dpu_placement.h"
#include "cli/status_line.h"
#include "engine/engine.h"
#include "measure/classifier.h"
#include "quant/quant_run.h"
#include "report/text_table.h"

struct opts {
    const char *device;
    struct ew_network_opts net;
    struct ew_image_opts image;
    const char *output, *batch, *calib;
    int64_t threads, seed, memory_limit;
    bool tune, compact;
    int precision;
};

enum precision { PRECISION_AUTO, PRECISION_FP32, PRECISION_INT8 };
static const char *const precisions[] = {"auto", "fp32", "int8", NULL};

#define MIN_SQNR_DB 10 /* the default of `quantize` */

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output),
     .metavar = "FILE.ewe", .help = "engine file to write", .letter = 'o'},
    EW_NETWORK_SIZE_FIELDS(struct opts, net),
    {.name = "batch", .type = EW_FIELD_STR, .offset = offsetof(struct opts, batch), .def = "1",
     .metavar = "B|A-B", .help = "batch size, or a range from which each run chooses"},
    EW_DEVICE_FIELD(struct opts),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads), .def = "0",
     .min = 0, .max = 256, .metavar = "N", .help = "threads of its runs; 0: one per CPU"},
    {.name = "tune", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, tune),
     .help = "choose kernels by measuring them here, instead of by rules; the result is "
     "remembered"},
    {.name = "memory-limit", .type = EW_FIELD_SIZE, .offset = offsetof(struct opts, memory_limit),
     .min = 0, .max = 1e15, .metavar = "BYTES",
     .help = "fit a context into this much memory, weights included, with slower kernels that pack less"},
    {.name = "precision", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, precision),
     .def = "auto", .choices = precisions,
     .help = "int8: as quantised in the file, or by --calib; auto: as in the file, with --calib "
     "the faster one for each layer"},
    {.name = "calib", .type = EW_FIELD_STR, .offset = offsetof(struct opts, calib),
     .metavar = "DATA[:N]",
     .help = "quantise a float32 network, calibrated on N images of the training split (1000); "
     "`quantize` shows what that costs"},
    {.name = "compact", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, compact),
     .help = "leave out weights that kernels have packed: a smaller file, for this instruction "
     "set only"},
    EW_CLASS_NAMES_FIELD(struct opts, image),
    EW_PREPROCESS_FIELDS(struct opts, image),
    {.name = "seed", .type = EW_FIELD_INT, .offset = offsetof(struct opts, seed), .def = "1",
     .metavar = "N", .help = "seed of the random weights of a zoo network"},
    EW_FIELD_END};
/* clang-format on */

/* Parses "4" or "1-8". */
static ew_err parse_batches(const char *text, struct ew_compile_opts *o)
{
    char first[32];
    const char *dash = strchr(text, '-');
    const size_t n = dash ? (size_t)(dash - text) : strlen(text);
    EW_CHECK(n < sizeof(first), EW_ERR_USAGE, "--batch: \"%s\" is neither a number nor a range",
             text);
    memcpy(first, text, n);
    first[n] = 0;
    EW_CHECK(ew_num_int(first, &o->batch_min) &&
                 ew_num_int(dash ? dash + 1 : first, &o->batch_max) && o->batch_min >= 1 &&
                 o->batch_max >= o->batch_min && o->batch_max <= 1 << 20,
             EW_ERR_USAGE, "--batch: \"%s\" is neither a number nor a range such as 1-8", text);
    return EW_OK;
}

/* Class names and preprocessing from the network's image card. */
static void describe_images(const struct ew_image_card *card, struct ew_compile_opts *out)
{
    out->classes = card->classes;
    out->n_classes = card->n_classes;
    out->resize = card->prep.resize;
    if (!card->prep.normalised)
        return;
    memcpy(out->mean, card->prep.mean, sizeof(out->mean));
    memcpy(out->std, card->prep.std, sizeof(out->std));
}

/* ---- What was made ---- */

static ew_err print(const struct ew_cmd_call *c, const struct ew_graph *g,
                    const struct ew_engine_info *i, double seconds)
{
    const struct opts *o = c->opts;
    char a[EW_TEXT_CHARS], b[EW_TEXT_CHARS], d[EW_TEXT_CHARS];
    if (!c->json) {
        printf("%s: %s, %s, batch %lld", o->output, i->name, i->precision, (long long)i->batch_min);
        if (i->batch_max > i->batch_min)
            printf("-%lld", (long long)i->batch_max);
        printf(", for %s %s\n", i->arch, i->isa);
        printf("file %s, of which inference reads %s; activations %s per context\n",
               ew_text_bytes(i->file_bytes, a), ew_text_bytes(i->packed_bytes, b),
               ew_text_bytes(i->activation_bytes, d));
        EW_INFO("compiled in %.2f s", seconds);
        if (!ew_dpu_device())
            return EW_OK;
        printf("\n");
        return ew_dpu_placement(g, NULL);
    }
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "name", i->name);
    ew_json_str(&j, "file", o->output);
    ew_json_str(&j, "precision", i->precision);
    ew_json_str(&j, "arch", i->arch);
    ew_json_str(&j, "isa", i->isa);
    ew_json_int(&j, "batch_min", i->batch_min);
    ew_json_int(&j, "batch_max", i->batch_max);
    ew_json_int(&j, "threads", i->threads);
    ew_json_int(&j, "bytes", i->file_bytes);
    ew_json_int(&j, "packed_bytes", i->packed_bytes);
    ew_json_int(&j, "activation_bytes", i->activation_bytes);
    ew_json_num(&j, "seconds", seconds);
    if (ew_dpu_device())
        EW_TRY(ew_dpu_placement(g, &j));
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* ---- The command ---- */

static ew_err compile(struct ew_cmd_call *c, struct ew_graph *g, const struct ew_image_card *card)
{
    const struct opts *o = c->opts;
    char cache[EW_TUNE_PATH];
    struct ew_compile_opts co = {.size = sizeof(co),
                                 .threads = (int)o->threads,
                                 .tune = o->tune,
                                 .tune_cache = o->tune ? ew_tuner_default_path(cache) : NULL,
                                 .precision = precisions[o->precision],
                                 .compact = o->compact,
                                 .memory_limit = o->memory_limit};
    EW_TRY(parse_batches(o->batch, &co));
    describe_images(card, &co);
    if (o->tune)
        EW_INFO("measuring kernels; what was measured before is remembered");
    const int64_t start = ew_clock_ns();
    ew_status_line("compiling %s ...", c->args[0]);
    const ew_err made = ew_engine_compile(g, &co, o->output);
    ew_status_clear();
    EW_TRY(made);
    const double seconds = (double)(ew_clock_ns() - start) * 1e-9;
    struct ew_engine *e;
    struct ew_engine_info info = {.size = sizeof(info)};
    EW_TRY(ew_engine_load(o->output, &e)); /* checks that the file can be loaded */
    ew_err err = ew_engine_info(e, &info);
    if (err == EW_OK)
        err = print(c, g, &info, seconds);
    ew_engine_free(e);
    return err;
}

/* Quantises with the defaults of `quantize`; --precision int8 skips its time comparison. */
static ew_err quantize(struct ew_cmd_call *c, const struct ew_classifier *k)
{
    const struct opts *o = c->opts;
    struct ew_image_set calib = {0};
    struct ew_quant_result r = {0};
    ew_err e = ew_data_hint(c, o->calib, ew_image_set_open_calib(o->calib, k, &calib));
    const struct ew_quant_job job = {.net = k->net,
                                     .calibration = calib.loader,
                                     .opts = {.equalize = true,
                                              .correct_bias = true,
                                              .time = o->precision == PRECISION_AUTO,
                                              .min_sqnr_db = MIN_SQNR_DB,
                                              .threads = (int)o->threads},
                                     .talk = stderr};
    if (e == EW_OK)
        e = ew_quant_run(&job, &r);
    if (e == EW_OK) {
        EW_INFO("%d of %d layers in int8, SQNR of the scores %.1f dB", r.n_layers - r.n_float,
                r.n_layers, r.sqnr_db);
        e = ew_graph_set_batch(r.graph, 1);
    }
    if (e == EW_OK)
        e = compile(c, r.graph, &k->network.card);
    ew_quant_result_fini(&r);
    ew_image_set_close(&calib);
    return e;
}

static ew_err run_calibrated(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    struct ew_classifier k;
    EW_CHECK(o->precision != PRECISION_FP32, EW_ERR_USAGE,
             "--calib quantises: it does not go with --precision fp32");
    EW_CHECK(ew_network_has_weights(c->args[0]), EW_ERR_USAGE,
             "--calib: %s has no trained weights to quantise", c->args[0]);
    ew_err e = ew_classifier_load(c->args[0], &o->image, &k);
    if (e == EW_OK)
        e = quantize(c, &k);
    ew_classifier_fini(&k);
    return e;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    struct ew_network_open_opts how = {.opts = o->net, .seed = (uint64_t)o->seed};
    struct ew_network n;
    EW_CHECK(o->output, EW_ERR_USAGE, "compile needs -o FILE.ewe");
    if (o->calib)
        return run_calibrated(c);
    how.opts.batch = 1;
    ew_err e = ew_network_open(c->args[0], &how, &n);
    if (e == EW_OK && n.random)
        EW_INFO("%s has random weights (seed %lld)", c->args[0], (long long)o->seed);
    if (e == EW_OK)
        e = ew_image_opts_apply(&o->image, n.graph, &n.arena, &n.card);
    if (e == EW_OK)
        e = compile(c, n.graph, &n.card);
    if (e == EW_ERR_ARG && o->precision == PRECISION_INT8)
        ew_cmd_hint(c, "--calib DATA quantises it with ranges from those images");
    ew_network_close(&n);
    return e;
}

const struct ew_cmd ew_cmd_compile = {
    .name = "compile",
    .group = EW_CMD_SHRINK,
    .summary = "compile a network into an engine file for this machine",
    .args = "NAME|FILE.onnx|CKPT",
    .about = "An engine holds the optimised graph with its kernels chosen and their weights "
             "packed; it is memory-mapped and runs as it is, so that loading takes milliseconds.\n"
             "The same network, options and machine give the same bytes.\n"
             "With --device dpu a table shows which parts run on the DPU, which on the host, and "
             "why.",
    .examples = "compile resnet50.onnx -o resnet50.ewe --mean imagenet --class-names classes.txt\n"
                "compile model.ckpt -o model.ewe --batch 1-8 --tune\n"
                "compile best.ckpt -o int8.ewe --calib cifar10\n"
                "compile dpu.onnx --device dpu:B4096 -o dpu.ewe\n"
                "run resnet50.ewe cat.jpg",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .starts_nothing = true,
};
