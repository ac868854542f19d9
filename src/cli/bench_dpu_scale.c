/* SPDX-License-Identifier: Apache-2.0 */
/* bench --protocol scale --device dpu: the scaling study's latencies on an FPGA, modelled.
 *
 * The study's three networks on CIFAR-10 and MobileNetV2 on Tiny ImageNet, at four widths, uniform
 * and by NeuralScale, one image at a time, one thread (Figs 16 and 18 of the study).  The study's
 * regression line is printed beside ours. */
#include <stdio.h>

#include "base/json.h"
#include "cli/bench_dpu.h"
#include "cli/bench_sweep.h"
#include "measure/dpu_protocol.h"
#include "report/text_table.h"

#define REAL_TIME_MS 16.67

static void print_row(const struct ew_dpu_study_point *p, const struct ew_dpu_config *c,
                      struct ew_table *t)
{
    const double ms = 1e3 * p->times.latency_s;
    ew_table_cell(t, "%s", p->of->title);
    ew_table_cell(t, "%s", p->of->data);
    ew_table_cell(t, "%s", p->method);
    ew_table_cell(t, "%.2f", p->ratio);
    ew_table_count(t, p->params);
    ew_table_cell(t, "%.3f", 1e3 * p->times.core_s);
    ew_table_cell(t, "%.3f", ms);
    ew_table_cell(t, "%.3f", EW_SCALE_LINE_MS((double)p->params));
    ew_table_cell(t, "%s", ms < REAL_TIME_MS ? "yes" : "no");
    if (p->times.watts_one > 0) {
        ew_table_cell(t, "%.1f", p->times.watts_one - c->board->idle_w);
        ew_table_cell(t, "%.1f", 1 / p->times.latency_s / p->times.watts_one);
    }
}

static void print_ratios(const struct ew_dpu_study *r)
{
    printf("NeuralScale takes");
    for (size_t i = 0, n = 0; i < EW_DPU_STUDY_NETWORKS; i++)
        if (r->slower[i] > 0) {
            printf("%s %.2f times as long for %s on %s", n++ ? "," : "", r->slower[i],
                   ew_dpu_study_networks[i].title, ew_dpu_study_networks[i].data);
            if (ew_dpu_study_networks[i].published > 0)
                printf(" (the study: %.1f)", ew_dpu_study_networks[i].published);
        }
    printf("; its speed on CIFAR-10 is %.0f %% of uniform widths' (the study: 96 %%)\n",
           100 * r->speed);
}

static ew_err print_text(const struct ew_dpu_study *r, const struct ew_dpu_config *c)
{
    static const char *const head[] = {"network",    "data",      "widths",     "ratio",
                                       "parameters", "core ms",   "latency ms", "study's line",
                                       "real time",  "dynamic W", "images/s/W"};
    const bool power = r->points[0].times.watts_one > 0;
    char text[96];
    struct ew_table t;
    ew_table_init(&t, power ? "lllrrrrrlrr" : "lllrrrrrl");
    for (size_t i = 0; i < (power ? EW_COUNT(head) : EW_COUNT(head) - 2); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < r->n; i++)
        print_row(&r->points[i], c, &t);
    EW_TRY(ew_table_print(&t, stdout));
    ew_dpu_config_text(c, text, sizeof(text));
    printf("%s, int8, one thread; all modelled, nothing was run; real time is under %.2f ms\n",
           text, REAL_TIME_MS);
    print_ratios(r);
    printf("linear fit over parameters, CIFAR-10: ms = %.2g x parameters + %.2f, correlation %.3f, "
           "n = %d; the study's on a ZCU104: %.2g and %.2f, 0.924, 24\n",
           r->line.slope, r->line.intercept, r->line.r, r->line.n, EW_SCALE_LINE_SLOPE,
           EW_SCALE_LINE_START);
    return EW_OK;
}

static ew_err print_json(const struct ew_dpu_study *r, const struct ew_dpu_config *c)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = 0; i < r->n; i++) {
        const struct ew_dpu_study_point *p = &r->points[i];
        ew_json_object(&j, NULL);
        ew_json_str(&j, "network", p->of->name);
        ew_json_str(&j, "method", p->method);
        ew_json_num(&j, "width", p->ratio);
        ew_json_int(&j, "params", p->params);
        ew_json_num(&j, "study_line_ms", EW_SCALE_LINE_MS((double)p->params));
        ew_dpu_json_times(&j, c, &p->times);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_dpu_scale(const struct ew_cmd_call *c, const char *device)
{
    struct ew_dpu_config config;
    struct ew_dpu_study r;
    EW_CHECK(c->n_args == 0, EW_ERR_USAGE,
             "the protocol has its own networks, not %s; --eval takes trained ones", c->args[0]);
    EW_TRY(ew_dpu_config_parse(ew_dpu_arguments(device), &config));
    EW_TRY(ew_dpu_study_run(&config, &r));
    return c->json ? print_json(&r, &config) : print_text(&r, &config);
}
