/* SPDX-License-Identifier: Apache-2.0 */
/* bench --protocol engine: the engine study's comparison beside the published figures. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/progress.h"
#include "cli/bench_cmd.h"
#include "report/text_table.h"

/* The regression of the speed-up on the FLOPs. */
static void print_trend(const struct ew_engine_result *r, int n, bool theirs)
{
    struct ew_line l;
    if (n >= 3 && ew_engine_protocol_trend(r, n, theirs, &l) == EW_OK)
        printf("%s %+.2f for ten times the FLOPs (R2 %.2f, Pearson %.2f, p %.2g, %d networks)\n",
               theirs ? "the study's:" : "speed-up by FLOPs:", l.slope, l.r * l.r, l.r, l.p, l.n);
}

static ew_err print_text(const struct ew_engine_result *r, int n)
{
    static const char *const head[] = {"network",      "reference ms", "before ms",  "after ms",
                                       "of reference", "speed-up",     "parameters", "FLOPs",
                                       "engine",       "study: model", "before s",   "after s",
                                       "its speed-up"};
    char a[EW_TEXT_CHARS];
    struct ew_table t;
    ew_table_init(&t, "lrrrrrrrrlrrr");
    for (size_t i = 0; i < EW_COUNT(head); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < n; i++) {
        ew_table_cell(&t, "%s", r[i].study->name);
        ew_table_cell(&t, "%.1f", r[i].reference.median_ms);
        ew_table_cell(&t, "%.2f", r[i].before.time.median_ms);
        ew_table_cell(&t, "%.2f", r[i].after.time.median_ms);
        ew_table_cell(&t, "%.0f x", r[i].reference.median_ms / r[i].after.time.median_ms);
        ew_table_cell(&t, "%.2f x", r[i].after.ratio);
        ew_table_cell(&t, "%s", ew_text_count(r[i].facts.params, a));
        ew_table_cell(&t, "%s", ew_text_count(r[i].facts.flops, a));
        ew_table_cell(&t, "%s", ew_text_bytes(r[i].engine_bytes, a));
        ew_table_cell(&t, "%s", r[i].study->called);
        ew_table_cell(&t, "%.4f", r[i].study->before_s);
        ew_table_cell(&t, "%.4f", r[i].study->after_s);
        ew_table_cell(&t, "%.2f x", r[i].study->speedup);
    }
    EW_TRY(ew_table_print(&t, stdout));
    printf("speed-up %.2f x here (geometric mean), %lld threads, %s, batch 1; times are medians of "
           "%lld interleaved runs, speed-ups medians over the rounds\n",
           ew_engine_protocol_mean(r, n), (long long)r[0].threads, r[0].isa,
           (long long)r[0].before.time.n);
    print_trend(r, n, false);
    print_trend(r, n, true);
    printf("reference: operator by operator in plain C, like an eager framework without optimised "
           "kernels; before: the same steps with optimised kernels, nothing folded, fused or "
           "tuned; after: the engine\n");
    printf("study: Jetson Nano, before: PyTorch, after: TensorRT; its mean is 7.01 x; the layers "
           "of its video networks are not published, ours have the same parameter counts\n");
    return EW_OK;
}

static void json_trend(struct ew_json *j, const char *key, const struct ew_engine_result *r, int n,
                       bool theirs)
{
    struct ew_line l;
    if (n < 3 || ew_engine_protocol_trend(r, n, theirs, &l) != EW_OK)
        return;
    ew_json_object(j, key);
    ew_json_num(j, "slope", l.slope); /* per factor of ten in FLOPs */
    ew_json_num(j, "intercept", l.intercept);
    ew_json_num(j, "r2", l.r * l.r);
    ew_json_num(j, "pearson", l.r);
    ew_json_num(j, "p", l.p);
    ew_json_end(j);
}

static ew_err print_json(const struct ew_engine_result *r, int n)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_object(&j, NULL);
    ew_json_str(&j, "protocol", "engine");
    ew_json_int(&j, "threads", r[0].threads);
    ew_json_str(&j, "isa", r[0].isa);
    ew_json_int(&j, "batch", 1);
    ew_json_num(&j, "speedup_mean", ew_engine_protocol_mean(r, n));
    json_trend(&j, "trend", r, n, false);
    json_trend(&j, "study_trend", r, n, true);
    ew_json_array(&j, "networks");
    for (int i = 0; i < n; i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "name", r[i].study->name);
        ew_json_num(&j, "reference_ms", r[i].reference.median_ms);
        ew_json_num(&j, "before_ms", r[i].before.time.median_ms);
        ew_json_num(&j, "before_sd_ms", r[i].before.time.sd_ms);
        ew_json_num(&j, "after_ms", r[i].after.time.median_ms);
        ew_json_num(&j, "after_sd_ms", r[i].after.time.sd_ms);
        ew_json_num(&j, "speedup", r[i].after.ratio);
        ew_json_num(&j, "speedup_low", r[i].after.ratio_low);
        ew_json_num(&j, "speedup_high", r[i].after.ratio_high);
        ew_json_int(&j, "params", r[i].facts.params);
        ew_json_int(&j, "flops", r[i].facts.flops);
        ew_json_int(&j, "cdl", r[i].facts.cdl);
        ew_json_int(&j, "engine_bytes", r[i].engine_bytes);
        ew_json_int(&j, "before_activation_bytes", r[i].plain_activation_bytes);
        ew_json_int(&j, "after_activation_bytes", r[i].activation_bytes);
        ew_json_num(&j, "study_before_ms", 1e3 * r[i].study->before_s);
        ew_json_num(&j, "study_after_ms", 1e3 * r[i].study->after_s);
        ew_json_num(&j, "study_speedup", r[i].study->speedup);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    ew_json_end(&j);
    return ew_json_finish(&j);
}

/* The networks in the arguments, or all of the study. */
static ew_err choose(const struct ew_cmd_call *c, const struct ew_engine_study *study,
                     struct ew_engine_result *r, int *n)
{
    EW_CHECK(c->n_args <= EW_ENGINE_STUDY_NETWORKS, EW_ERR_USAGE, "the study has %d networks",
             EW_ENGINE_STUDY_NETWORKS);
    *n = c->n_args ? c->n_args : EW_ENGINE_STUDY_NETWORKS;
    for (int i = 0; i < *n; i++) {
        for (int k = 0; k < EW_ENGINE_STUDY_NETWORKS; k++)
            if (c->n_args ? strcmp(study[k].name, c->args[i]) == 0 : k == i)
                r[i].study = &study[k];
        EW_CHECK(r[i].study, EW_ERR_USAGE, "%s is none of the study's networks", c->args[i]);
    }
    return EW_OK;
}

ew_err ew_bench_protocol_engine(struct ew_cmd_call *c, const struct ew_compare_opts *o)
{
    struct ew_engine_result r[EW_ENGINE_STUDY_NETWORKS] = {0};
    struct ew_engine_study study[EW_ENGINE_STUDY_NETWORKS];
    ew_err e = EW_OK;
    int n = 0;
    EW_TRY(ew_engine_study_load(study));
    EW_TRY(choose(c, study, r, &n));
    struct ew_progress bar;
    ew_progress_begin(&bar, stderr, "networks", n);
    for (int i = 0; e == EW_OK && i < n; i++) {
        e = ew_engine_protocol_measure(o, &r[i]);
        ew_progress_update(&bar, i + 1);
    }
    ew_progress_end(&bar);
    EW_TRY(e);
    return c->json ? print_json(r, n) : print_text(r, n);
}
