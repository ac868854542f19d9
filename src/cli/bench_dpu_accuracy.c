/* SPDX-License-Identifier: Apache-2.0 */
/* bench FILE... --protocol scale --device dpu --eval DATA: the scaling study's protocol on trained
 * networks.  Each is quantised with power-of-two scales on 500 training images and evaluated on the
 * test images by the DPU's arithmetic, one thread; times are modelled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dpu/dpu_model.h"
#include "base/json.h"
#include "cli/bench_dpu.h"
#include "cli/bench_sweep.h"
#include "cli/recorded.h"
#include "edgewise.h"
#include "graph/facts.h"
#include "measure/classifier.h"
#include "quant/quant_run.h"
#include "report/text_table.h"

#define CALIBRATION 500 /* images, the study's */

struct row {
    const char *name;
    struct ew_facts facts;
    int64_t calibrated, images;
    double before, after, sqnr_db; /* accuracies: float32, the DPU's */
    struct ew_dpu_times t;
};

/* The data set of --eval without its number of images, with the calibration's instead. */
static ew_err calibration_of(const char *eval, char *buf, size_t size)
{
    const char *colon = strrchr(eval, ':');
    size_t chars = strlen(eval);
    if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1))
        chars = (size_t)(colon - eval);
    const int n = snprintf(buf, size, "%.*s:%d", (int)chars, eval, CALIBRATION);
    EW_CHECK(n > 0 && (size_t)n < size, EW_ERR_LIMIT, "--eval %s: is too long", eval);
    return EW_OK;
}

static ew_err judge(const struct ew_classifier *k, const char *eval, struct ew_quant_result *r)
{
    struct ew_image_set calib = {0}, test = {0};
    char name[512];
    EW_TRY(calibration_of(eval, name, sizeof(name)));
    ew_err e = ew_image_set_open_calib(name, k, &calib);
    if (e == EW_OK)
        e = ew_image_set_open(eval, k, false, &test);
    const struct ew_quant_job job = {
        .net = k->net,
        .calibration = calib.loader,
        .evaluation = &test.loader,
        .opts = {.scheme = EW_QUANTIZE_POW2, .equalize = true, .correct_bias = true, .threads = 1},
        .talk = stderr};
    if (e == EW_OK)
        e = ew_quant_run(&job, r);
    ew_image_set_close(&test);
    ew_image_set_close(&calib);
    return e;
}

static ew_err model(struct ew_graph *g, const struct ew_dpu_config *c, struct ew_dpu_times *out)
{
    struct ew_dpu_net layers = {0};
    EW_TRY(ew_graph_set_batch(g, 1));
    const ew_err e = ew_dpu_net_init(g, &layers);
    if (e == EW_OK)
        ew_dpu_time(&layers, c, out);
    ew_dpu_net_fini(&layers);
    return e;
}

static ew_err measure(const char *what, const char *eval, const struct ew_dpu_config *c,
                      struct row *out)
{
    const struct ew_image_opts images = {0};
    struct ew_classifier k;
    struct ew_quant_result r = {0};
    EW_CHECK(ew_network_has_weights(what), EW_ERR_USAGE,
             "--eval: %s has no trained weights to quantise", what);
    ew_err e = ew_classifier_load(what, &images, &k);
    if (e == EW_OK)
        e = ew_graph_facts(k.net, &out->facts);
    if (e == EW_OK)
        e = judge(&k, eval, &r);
    if (e == EW_OK)
        e = model(r.graph, c, &out->t);
    if (e == EW_OK) {
        out->name = what;
        out->before = r.before.accuracy;
        out->after = r.after.accuracy;
        out->calibrated = r.calibrated;
        out->images = r.after.samples;
        out->sqnr_db = r.sqnr_db;
    }
    ew_quant_result_fini(&r);
    ew_classifier_fini(&k);
    return e;
}

/* A run for each network, where a store is named. */
static ew_err keep(const struct ew_cmd_call *c, int i, const char *db,
                   const struct ew_dpu_config *config, const struct row *r)
{
    struct ew_cmd_call one = *c;
    struct ew_recording rec;
    one.args = &c->args[i];
    one.n_args = 1;
    EW_TRY(ew_cmd_record(&one, db, &rec));
    ew_err e = ew_dpu_record(&rec, &r->facts, config, &r->t);
    if (e == EW_OK)
        e = ew_recording_metric(&rec, "float32_accuracy", r->before, NULL, EW_BETTER_HIGHER);
    if (e == EW_OK)
        e = ew_recording_metric(&rec, "dpu_accuracy", r->after, NULL, EW_BETTER_HIGHER);
    return ew_recording_end(&rec, e);
}

static ew_err print_text(const struct row *rows, int n, const struct ew_dpu_config *c)
{
    static const char *const head[] = {"network", "parameters", "float32",    "on the DPU",
                                       "points",  "core ms",    "latency ms", "study's line"};
    char text[96], count[EW_TEXT_CHARS];
    struct ew_table t;
    ew_table_init(&t, "lrrrrrrr");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < n; i++) {
        ew_table_cell(&t, "%s", rows[i].name);
        ew_table_cell(&t, "%s", ew_text_count(rows[i].facts.params, count));
        ew_table_cell(&t, "%.2f %%", 100 * rows[i].before);
        ew_table_cell(&t, "%.2f %%", 100 * rows[i].after);
        ew_table_cell(&t, "%+.2f", 100 * (rows[i].after - rows[i].before));
        ew_table_cell(&t, "%.3f", 1e3 * rows[i].t.core_s);
        ew_table_cell(&t, "%.3f", 1e3 * rows[i].t.latency_s);
        ew_table_cell(&t, "%.3f", EW_SCALE_LINE_MS((double)rows[i].facts.params));
    }
    EW_TRY(ew_table_print(&t, stdout));
    ew_dpu_config_text(c, text, sizeof(text));
    printf("%s, int8 by powers of two, %lld calibration images, %lld test images by the DPU's "
           "arithmetic, one thread; times are modelled\n",
           text, (long long)rows[0].calibrated, (long long)rows[0].images);
    return EW_OK;
}

static ew_err print_json(const struct row *rows, int n, const struct ew_dpu_config *c)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = 0; i < n; i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "network", rows[i].name);
        ew_json_int(&j, "params", rows[i].facts.params);
        ew_json_int(&j, "calibration_images", rows[i].calibrated);
        ew_json_int(&j, "test_images", rows[i].images);
        ew_json_num(&j, "float32_accuracy", rows[i].before);
        ew_json_num(&j, "dpu_accuracy", rows[i].after);
        ew_json_num(&j, "sqnr_db", rows[i].sqnr_db);
        ew_json_num(&j, "study_line_ms", EW_SCALE_LINE_MS((double)rows[i].facts.params));
        ew_dpu_json_times(&j, c, &rows[i].t);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_dpu_accuracy(const struct ew_cmd_call *c, const char *device, const char *eval,
                             const char *db)
{
    struct ew_dpu_config config;
    EW_TRY(ew_dpu_config_parse(ew_dpu_arguments(device), &config));
    EW_CHECK(c->n_args > 0, EW_ERR_USAGE,
             "--eval with --protocol scale: which trained networks? FILE.onnx or checkpoints");
    struct row *rows = calloc((size_t)c->n_args, sizeof(*rows));
    EW_CHECK(rows, EW_ERR_MEMORY, "no memory for %d networks", c->n_args);
    ew_err e = EW_OK;
    for (int i = 0; i < c->n_args && e == EW_OK; i++) {
        e = measure(c->args[i], eval, &config, &rows[i]);
        if (e == EW_OK)
            e = keep(c, i, db, &config, &rows[i]);
    }
    if (e == EW_OK)
        e = c->json ? print_json(rows, c->n_args, &config) : print_text(rows, c->n_args, &config);
    free(rows);
    return e;
}
