/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise quantize`: layers, corrections, accuracy and time before and after. */
#include "cli/quantize_show.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "report/text_table.h"

static const char *remedy_name(const struct ew_quant_remedy *w)
{
    static const char *const names[2][2] = {{"as it is", "biases corrected"},
                                            {"equalised", "equalised, biases corrected"}};
    return names[w->equalized][w->corrected];
}

/* Milliseconds, or "-". */
static void time_cell(struct ew_table *t, double s)
{
    if (s < 0)
        ew_table_cell(t, "-");
    else
        ew_table_cell(t, "%.3f", 1e3 * s);
}

/* The output of a layer may stay float32, without a range. */
static void range_cell(struct ew_table *t, const struct ew_quant_layer *l, float v)
{
    if (l->lo <= l->hi)
        ew_table_cell(t, "%.3g", (double)v);
    else
        ew_table_cell(t, "-");
}

static ew_err print_layers(const struct ew_quant_result *r)
{
    struct ew_table t;
    ew_table_init(&t, "llrrrrrll");
    static const char *const heads[] = {"layer",      "op",      "from", "to",     "SQNR dB",
                                        "float32 ms", "int8 ms", "as",   "because"};
    for (size_t i = 0; i < EW_COUNT(heads); i++)
        ew_table_cell(&t, "%s", heads[i]);
    for (int i = 0; i < r->n_layers; i++) {
        const struct ew_quant_layer *l = &r->layers[i];
        ew_table_cell(&t, "%s", l->name);
        ew_table_cell(&t, "%s", l->op);
        range_cell(&t, l, l->lo);
        range_cell(&t, l, l->hi);
        ew_table_cell(&t, "%.1f", l->sqnr_db);
        time_cell(&t, l->float_s);
        time_cell(&t, l->int8_s);
        ew_table_cell(&t, "%s", l->is_float ? "float32" : "int8");
        ew_table_cell(&t, "%s", l->reason);
    }
    return ew_table_print(&t, stdout);
}

ew_err ew_quant_print(const struct ew_quant_result *r, const char *file, int64_t bytes)
{
    char size[EW_TEXT_CHARS], before[EW_TEXT_CHARS], after[EW_TEXT_CHARS];
    const struct ew_value *x = &r->graph->values[r->graph->inputs[0]];
    const char *kind = ew_text_samples(x->t.shape.rank == 5);
    EW_TRY(print_layers(r));
    printf("\nlayers:    %d of %d in int8; ranges from %lld %s\n", r->n_layers - r->n_float,
           r->n_layers, (long long)r->calibrated, kind);
    printf("prepared:  %s; tried:", remedy_name(&r->remedies[r->remedy]));
    for (int i = 0; i < r->n_remedies; i++)
        printf("%s %s %.1f dB", i ? "," : "", remedy_name(&r->remedies[i]), r->remedies[i].sqnr_db);
    printf("\n");
    if (r->n_float < r->n_layers)
        printf("output:    SQNR %.1f dB, %lld %s\n", r->sqnr_db, (long long)r->probed, kind);
    if (r->float_s > 0)
        printf("time:      float32 %.3f ms, int8 %.3f ms at batch 1: %.2f times as fast (each "
               "step's best time, summed)\n",
               1e3 * r->float_s, 1e3 * r->int8_s, r->float_s / r->int8_s);
    if (r->evaluated)
        printf("accuracy:  float32 %.2f %%, int8 %.2f %%: %+.2f points, %lld %s\n",
               100 * r->before.accuracy, 100 * r->after.accuracy,
               100 * (r->after.accuracy - r->before.accuracy), (long long)r->after.samples, kind);
    printf("%s:%*s --mean %s --std %s, as the file says\n", kind, (int)(9 - strlen(kind)), "",
           ew_graph_note(r->graph, "edgewise.mean"), ew_graph_note(r->graph, "edgewise.std"));
    printf("weights:   float32 %s, now %s (%.2f of that)\n", ew_text_bytes(r->float_bytes, before),
           ew_text_bytes(r->int8_bytes, after), (double)r->int8_bytes / (double)r->float_bytes);
    printf("file:      %s, %s\n", file, ew_text_bytes(bytes, size));
    return EW_OK;
}

/* Writes a number; null if not known. */
static void json_known(struct ew_json *j, const char *key, bool known, double value)
{
    if (known)
        ew_json_num(j, key, value);
    else
        ew_json_null(j, key);
}

static void json_layer(struct ew_json *j, const struct ew_quant_layer *l)
{
    ew_json_object(j, NULL);
    ew_json_str(j, "name", l->name);
    ew_json_str(j, "op", l->op);
    ew_json_num(j, "lo", (double)l->lo);
    ew_json_num(j, "hi", (double)l->hi);
    ew_json_num(j, "sqnr_db", l->sqnr_db);
    json_known(j, "float_ms", l->float_s >= 0, 1e3 * l->float_s);
    json_known(j, "int8_ms", l->int8_s >= 0, 1e3 * l->int8_s);
    ew_json_str(j, "precision", l->is_float ? "float32" : "int8");
    ew_json_str(j, "reason", l->reason[0] ? l->reason : NULL);
    ew_json_end(j);
}

ew_err ew_quant_print_json(const struct ew_quant_result *r, const char *file, int64_t bytes)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "file", file);
    ew_json_int(&j, "bytes", bytes);
    ew_json_int(&j, "float_weight_bytes", r->float_bytes);
    ew_json_int(&j, "weight_bytes", r->int8_bytes);
    ew_json_int(&j, "calibration_images", r->calibrated);
    ew_json_str(&j, "prepared", remedy_name(&r->remedies[r->remedy]));
    ew_json_num(&j, "sqnr_db", r->sqnr_db);
    ew_json_int(&j, "layers_int8", r->n_layers - r->n_float);
    ew_json_int(&j, "layers_float32", r->n_float);
    json_known(&j, "float_ms", r->float_s > 0, 1e3 * r->float_s);
    json_known(&j, "int8_ms", r->int8_s > 0, 1e3 * r->int8_s);
    json_known(&j, "float_accuracy", r->evaluated, r->before.accuracy);
    json_known(&j, "int8_accuracy", r->evaluated, r->after.accuracy);
    ew_json_int(&j, "evaluated_images", r->evaluated ? r->after.samples : 0);
    ew_json_bool(&j, "max_drop_met", r->drop_met);
    ew_json_array(&j, "remedies");
    for (int i = 0; i < r->n_remedies; i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", remedy_name(&r->remedies[i]));
        ew_json_num(&j, "sqnr_db", r->remedies[i].sqnr_db);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_array(&j, "layers");
    for (int i = 0; i < r->n_layers; i++)
        json_layer(&j, &r->layers[i]);
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}
