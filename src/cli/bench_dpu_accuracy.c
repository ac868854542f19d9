/* SPDX-License-Identifier: Apache-2.0 */
/* bench FILE... --protocol scale --device dpu --eval DATA: the scaling study's protocol on trained
 * networks. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/bench_dpu.h"
#include "cli/bench_sweep.h"
#include "cli/recorded.h"
#include "measure/dpu_protocol.h"
#include "report/text_table.h"

/* Records a run for each network if `db` names a store. */
static ew_err keep(const struct ew_cmd_call *c, int i, const char *db,
                   const struct ew_dpu_config *config, const struct ew_dpu_trained *r)
{
    struct ew_cmd_call one = *c;
    struct ew_recording rec;
    one.args = &c->args[i];
    one.n_args = 1;
    EW_TRY(ew_cmd_record(&one, db, &rec));
    ew_err e = ew_dpu_record(&rec, &r->facts, config, &r->times);
    if (e == EW_OK)
        e = ew_recording_metric(&rec, "float32_accuracy", r->before, NULL, EW_BETTER_HIGHER);
    if (e == EW_OK)
        e = ew_recording_metric(&rec, "dpu_accuracy", r->after, NULL, EW_BETTER_HIGHER);
    return ew_recording_end(&rec, e);
}

static ew_err print_text(const struct ew_dpu_trained *rows, int n, const struct ew_dpu_config *c)
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
        ew_table_cell(&t, "%.3f", 1e3 * rows[i].times.core_s);
        ew_table_cell(&t, "%.3f", 1e3 * rows[i].times.latency_s);
        ew_table_cell(&t, "%.3f", EW_SCALE_LINE_MS((double)rows[i].facts.params));
    }
    EW_TRY(ew_table_print(&t, stdout));
    ew_dpu_config_text(c, text, sizeof(text));
    printf("%s, int8 with power-of-two scales, %lld calibration images, %lld test images in the "
           "DPU's arithmetic, one thread; times are modelled\n",
           text, (long long)rows[0].calibrated, (long long)rows[0].images);
    return EW_OK;
}

static ew_err print_json(const struct ew_dpu_trained *rows, int n, const struct ew_dpu_config *c)
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
        ew_dpu_json_times(&j, c, &rows[i].times);
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
    struct ew_dpu_trained *rows = calloc((size_t)c->n_args, sizeof(*rows));
    EW_CHECK(rows, EW_ERR_MEMORY, "no memory for %d networks", c->n_args);
    ew_err e = EW_OK;
    for (int i = 0; i < c->n_args && e == EW_OK; i++) {
        e = ew_dpu_trained_run(c->args[i], eval, &config, &rows[i]);
        if (e == EW_OK)
            e = keep(c, i, db, &config, &rows[i]);
    }
    if (e == EW_OK)
        e = c->json ? print_json(rows, c->n_args, &config) : print_text(rows, c->n_args, &config);
    free(rows);
    return e;
}
