/* SPDX-License-Identifier: Apache-2.0 */
/* edgewise quantize: converts a network to int8, and compares accuracy, time and size before and
 * after. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/pool.h"
#include "cli/bench_times.h"
#include "cli/data_cmd.h"
#include "cli/device_opt.h"
#include "cli/quantize_show.h"
#include "cli/recorded.h"
#include "cli/status_line.h"
#include "edgewise.h"
#include "measure/classifier.h"

struct opts {
    const char *device;
    struct ew_image_opts images;
    const char *calib, *eval, *output;
    int scheme; /* enum ew_quantize_scheme */
    int method; /* enum ew_calibrate_method */
    double percentile, max_drop, min_sqnr;
    bool is_signed, equalize, correct_bias, time;
    int64_t threads;
    const char *db;
};

/* clang-format off */
static const struct ew_field fields[] = {
    {.name = "calib", .type = EW_FIELD_STR, .offset = offsetof(struct opts, calib),
     .metavar = "DATA[:N]",
     .help = "calibration images; N of the training split, 1000 by default"},
    {.name = "eval", .type = EW_FIELD_STR, .offset = offsetof(struct opts, eval),
     .metavar = "DATA[:N]", .help = "measure accuracy in both precisions on the test split"},
    {.name = "scheme", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, scheme),
     .def = "channel", .choices = ew_quantize_names,
     .help = "per-channel scales, or int8 with power-of-two scales throughout (for FPGAs)"},
    {.name = "max-drop", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, max_drop),
     .def = "0.5", .min = 0, .max = 100, .metavar = "POINTS",
     .help = "largest accepted drop of accuracy in percentage points (with --eval); layers go "
     "back to float32 until it is met"},
    {.name = "method", .type = EW_FIELD_ENUM, .offset = offsetof(struct opts, method),
     .def = "minmax", .choices = ew_calibrate_names, .help = "how activation ranges are chosen"},
    {.name = "percentile", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, percentile),
     .def = "99.99", .min = 50, .max = 100, .metavar = "P",
     .help = "--method percentile: percentage of values inside the range"},
    {.name = "min-sqnr", .type = EW_FIELD_FLOAT, .offset = offsetof(struct opts, min_sqnr),
     .def = "10", .min = -100, .max = 200, .metavar = "DB",
     .help = "a layer stays float32 if quantising it alone leaves the network's output with less "
     "SQNR than this"},
    {.name = "signed", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, is_signed),
     .help = "int8 activations instead of uint8"},
    {.name = "equalize", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, equalize),
     .def = "true", .help = "try cross-layer equalisation of channels"},
    {.name = "correct-bias", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, correct_bias),
     .def = "true", .help = "try bias correction"},
    {.name = "time", .type = EW_FIELD_BOOL, .offset = offsetof(struct opts, time),
     .def = "true",
     .help = "time layers and combinations, and keep float32 where that makes the network faster"},
    EW_PREPROCESS_FIELDS(struct opts, images),
    EW_DEVICE_FIELD(struct opts),
    {.name = "threads", .type = EW_FIELD_INT, .offset = offsetof(struct opts, threads),
     .def = "0", .min = 0, .max = 256, .metavar = "N",
     .help = "number of threads; 0: one per CPU"},
    {.name = "output", .type = EW_FIELD_STR, .offset = offsetof(struct opts, output),
     .metavar = "FILE.onnx", .help = "ONNX file to write, in QDQ form", .letter = 'o'},
    EW_RECORDING_FIELD(struct opts),
    EW_FIELD_END};
/* clang-format on */

static struct ew_quant_opts quant_opts(const struct opts *o)
{
    return (struct ew_quant_opts){.scheme = (enum ew_quantize_scheme)o->scheme,
                                  .method = (enum ew_calibrate_method)o->method,
                                  .percentile = o->percentile,
                                  .is_signed = o->is_signed,
                                  .equalize = o->equalize,
                                  .correct_bias = o->correct_bias,
                                  .time = o->time,
                                  .min_sqnr_db = o->min_sqnr,
                                  .max_drop = o->max_drop,
                                  .threads = (int)o->threads};
}

static ew_err record(struct ew_recording *rec, const struct ew_quant_result *r, int64_t bytes)
{
    const double nothing = NAN;
    const bool seen = r->evaluated;
    const struct {
        const char *name, *unit;
        double value;
        enum ew_better better;
    } all[] = {
        {"float32_ms", "ms", 1e3 * r->float_s, EW_BETTER_LOWER},
        {"int8_ms", "ms", 1e3 * r->int8_s, EW_BETTER_LOWER},
        {"int8_speedup", NULL, r->float_s / r->int8_s, EW_BETTER_HIGHER},
        {"float32_accuracy", NULL, seen ? r->before.accuracy : nothing, EW_BETTER_HIGHER},
        {"int8_accuracy", NULL, seen ? r->after.accuracy : nothing, EW_BETTER_HIGHER},
        {"test_accuracy", NULL, seen ? r->after.accuracy : nothing, EW_BETTER_HIGHER},
        {"float32_f1", NULL, seen ? r->before.f1 : nothing, EW_BETTER_HIGHER},
        {"int8_f1", NULL, seen ? r->after.f1 : nothing, EW_BETTER_HIGHER},
        {"int8_sqnr_db", "dB", r->sqnr_db, EW_BETTER_HIGHER},
        {"layers_float32", NULL, r->n_float, EW_BETTER_LOWER},
        {"file_bytes", "B", (double)bytes, EW_BETTER_LOWER},
    };
    for (size_t i = 0; i < EW_COUNT(all); i++)
        if (!isnan(all[i].value))
            EW_TRY(ew_recording_metric(rec, all[i].name, all[i].value, all[i].unit, all[i].better));
    return EW_OK;
}

/* Writes the file and prints the result even if --max-drop is exceeded, then fails. */
static ew_err finish(struct ew_cmd_call *c, struct ew_quant_result *r, struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    struct stat st;
    EW_TRY(ew_graph_set_batch(r->graph, 1));
    EW_TRY(ew_onnx_save(r->graph, o->output, NULL));
    const int64_t bytes = stat(o->output, &st) == 0 ? (int64_t)st.st_size : 0;
    EW_TRY(record(rec, r, bytes));
    EW_TRY(c->json ? ew_quant_print_json(r, o->output, bytes)
                   : ew_quant_print(r, o->output, bytes));
    if (r->drop_met)
        return EW_OK;
    ew_cmd_hint(c, "try --method entropy or percentile, more images, or a larger --max-drop");
    return ew_fail(EW_ERR_LIMIT,
                   "the drop of %.2f points exceeds --max-drop %g although only the layers that "
                   "the table shows as int8 are quantised",
                   100 * (r->before.accuracy - r->after.accuracy), o->max_drop);
}

/* Calibrating on the evaluation images overestimates the accuracy of int8. */
static void warn_same_images(const struct ew_image_set *calib, const struct ew_image_set *eval)
{
    const struct ew_dataset_info *a = ew_dataset_info(calib->data),
                                 *b = ew_dataset_info(eval->data);
    const bool same =
        a->path && b->path ? strcmp(a->path, b->path) == 0 : strcmp(a->name, b->name) == 0;
    if (same && calib->loader.split == eval->loader.split)
        EW_WARN("--calib and --eval are the same images (%s, %s split): accuracy on others may be "
                "lower",
                a->name, ew_split_name(calib->loader.split));
}

static ew_err quantize(struct ew_cmd_call *c, const struct ew_classifier *k,
                       struct ew_recording *rec)
{
    const struct opts *o = c->opts;
    struct ew_image_set calib = {0}, eval = {0};
    struct ew_quant_result r = {0};
    ew_err e = ew_data_hint(c, o->calib, ew_image_set_open_calib(o->calib, k, &calib));
    if (e == EW_OK && o->eval)
        e = ew_data_hint(c, o->eval, ew_image_set_open(o->eval, k, EW_FOR_EVALUATION, &eval));
    if (e == EW_OK && o->eval)
        warn_same_images(&calib, &eval);
    if (e == EW_OK) {
        const struct ew_quant_job job = {.net = k->net,
                                         .calibration = calib.loader,
                                         .evaluation = o->eval ? &eval.loader : NULL,
                                         .opts = quant_opts(o),
                                         .talk = stderr};
        const struct ew_cpu_use before = ew_cpu_use_now();
        ew_status_line("quantising %s ...", c->args[0]);
        e = ew_quant_run(&job, &r);
        ew_status_clear();
        const struct ew_cpu_use after = ew_cpu_use_now();
        if (e == EW_OK && o->time)
            ew_times_warn_busy(ew_cpu_use_others(&before, &after, ew_pool_cpus()));
    }
    if (e == EW_OK)
        e = finish(c, &r, rec);
    ew_quant_result_fini(&r);
    ew_image_set_close(&eval);
    ew_image_set_close(&calib);
    return e;
}

static ew_err run(struct ew_cmd_call *c)
{
    const struct opts *o = c->opts;
    struct ew_classifier k;
    EW_CHECK(o->calib, EW_ERR_USAGE, "quantize: no calibration images: --calib DIR or NAME");
    EW_CHECK(o->output, EW_ERR_USAGE, "no output file: --output FILE");
    EW_TRY(ew_file_out_check(o->output)); /* fail early */
    struct ew_recording rec;
    EW_TRY(ew_cmd_record(c, o->db, &rec));
    ew_status_line("loading %s ...", c->args[0]);
    ew_err e = ew_classifier_load(c->args[0], &o->images, &k);
    ew_status_clear();
    if (e == EW_OK)
        e = quantize(c, &k, &rec);
    ew_classifier_fini(&k);
    return ew_recording_end(&rec, e);
}

const struct ew_cmd ew_cmd_quantize = {
    .name = "quantize",
    .group = EW_CMD_SHRINK,
    .summary = "post-training quantisation to int8, with accuracy and speed",
    .args = "CKPT|FILE.onnx",
    .about =
        "Weights become int8 with a scale per channel, activations uint8 with a scale per "
        "tensor.\n"
        "Cross-layer equalisation and bias correction are tried, and used where they help.\n"
        "Each layer is also quantised alone and timed in both precisions. Layers that cost "
        "too much accuracy stay float32, and so do layers where the whole network, "
        "conversions included, is measured to be faster that way; the table gives the reason.\n"
        "--scheme pow2 is for FPGAs: every tensor, biases and outputs included, is int8 with "
        "one power-of-two scale and zero point 0; no layer stays float32.\n"
        "The output is an ONNX file in QDQ form, which other runtimes read too.",
    .examples = "quantize best.ckpt --calib cifar10 --eval cifar10 -o int8.onnx\n"
                "quantize mobilenet_v2.onnx --mean 0.5 --std 0.5 --calib photos/:200 -o int8.onnx\n"
                "quantize best.ckpt --scheme pow2 --calib cifar10:500 --eval cifar10 -o dpu.onnx",
    .min_args = 1,
    .max_args = 1,
    .opts_size = sizeof(struct opts),
    .opts = fields,
    .run = run,
    .starts_nothing = true,
};
