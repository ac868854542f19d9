/* SPDX-License-Identifier: Apache-2.0 */
/* bench --protocol scale --device dpu: the scaling study's latencies on an FPGA, modelled.
 *
 * The study's three networks on 32x32 images at four widths, one image at a time, one thread.  Its
 * own line stands beside ours (Table 4, ZCU104): ms = 1.7e-7 * parameters + 0.69. */
#include <math.h>
#include <stdio.h>

#include "backend/dpu/dpu_model.h"
#include "base/json.h"
#include "cli/bench_dpu.h"
#include "cli/bench_sweep.h"
#include "edgewise.h"
#include "graph/facts.h"
#include "report/text_table.h"

#define REAL_TIME_MS 16.67

static const double widths[] = {0.25, 0.5, 0.75, 1};
static const struct {
    const char *name, *called;
    bool imagenet; /* built for larger images: made for 32x32 and ten classes */
} networks[] = {{"vgg11_cifar", "VGG-11", false},
                {"mobilenet_v2_cifar", "MobileNetV2", false},
                {"resnet50", "ResNet-50", true}};

#define POINTS (EW_COUNT(networks) * EW_COUNT(widths))

struct point {
    int64_t params;
    struct ew_dpu_times t;
};

static ew_err model(size_t i, const struct ew_dpu_config *c, struct point *out)
{
    const size_t n = i / EW_COUNT(widths);
    struct ew_network_how how = {.opts = {.width = widths[i % EW_COUNT(widths)], .batch = 1},
                                 .shapes = true};
    if (networks[n].imagenet) {
        how.opts.input = (struct ew_ints){.n = 3, .v = {32, 32, 3}};
        how.opts.classes = 10;
    }
    struct ew_network net;
    struct ew_dpu_net layers = {0};
    struct ew_facts facts;
    ew_err e = ew_network_open(networks[n].name, &how, &net);
    if (e == EW_OK)
        e = ew_graph_facts(net.graph, &facts);
    if (e == EW_OK)
        e = ew_dpu_net_init(net.graph, &layers);
    if (e == EW_OK) {
        ew_dpu_time(&layers, c, &out->t);
        out->params = facts.params;
    }
    ew_dpu_net_fini(&layers);
    ew_network_close(&net);
    return e;
}

static double line_ms(const struct point *p)
{
    return EW_SCALE_LINE_MS((double)p->params);
}

/* The least-squares line of latency over parameters, and Pearson's correlation. */
static void fit(const struct point *p, double *slope, double *at_zero, double *r)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    const double n = (double)POINTS;
    for (size_t i = 0; i < POINTS; i++) {
        const double a = (double)p[i].params, b = 1e3 * p[i].t.latency_s;
        x += a / n;
        y += b / n;
        xx += a * a / n;
        yy += b * b / n;
        xy += a * b / n;
    }
    *slope = (xy - x * y) / (xx - x * x);
    *at_zero = y - *slope * x;
    *r = (xy - x * y) / sqrt((xx - x * x) * (yy - y * y));
}

static void print_row(size_t i, const struct point *p, bool power, struct ew_table *t)
{
    char count[EW_TEXT_CHARS];
    const double ms = 1e3 * p->t.latency_s;
    ew_table_cell(t, "%s", networks[i / EW_COUNT(widths)].called);
    ew_table_cell(t, "%.2f", widths[i % EW_COUNT(widths)]);
    ew_table_cell(t, "%s", ew_text_count(p->params, count));
    ew_table_cell(t, "%.3f", 1e3 * p->t.core_s);
    ew_table_cell(t, "%.3f", ms);
    ew_table_cell(t, "%.3f", line_ms(p));
    ew_table_cell(t, "%s", ms < REAL_TIME_MS ? "yes" : "no");
    if (power)
        ew_table_cell(t, "%.1f", 1 / p->t.latency_s / p->t.watts_one);
}

static ew_err print_text(const struct point *p, const struct ew_dpu_config *c)
{
    static const char *const head[] = {"network",    "width",        "parameters", "core ms",
                                       "latency ms", "study's line", "real time",  "images/s/W"};
    const bool power = p[0].t.watts_one > 0;
    double slope, at_zero, r;
    char text[96];
    struct ew_table t;
    ew_table_init(&t, power ? "lrrrrrlr" : "lrrrrrl");
    for (size_t i = 0; i < (power ? EW_COUNT(head) : EW_COUNT(head) - 1); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (size_t i = 0; i < POINTS; i++)
        print_row(i, &p[i], power, &t);
    EW_TRY(ew_table_print(&t, stdout));
    fit(p, &slope, &at_zero, &r);
    ew_dpu_config_text(c, text, sizeof(text));
    printf("%s, int8, one thread; all modelled, nothing was run; real time is under %.2f ms\n",
           text, REAL_TIME_MS);
    printf(
        "line over parameters: ms = %.2g x parameters + %.2f, correlation %.3f; the study's on a "
        "ZCU104: %.2g and %.2f, 0.924\n",
        slope, at_zero, r, EW_SCALE_LINE_SLOPE, EW_SCALE_LINE_START);
    return EW_OK;
}

static ew_err print_json(const struct point *p, const struct ew_dpu_config *c)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (size_t i = 0; i < POINTS; i++) {
        ew_json_object(&j, NULL);
        ew_json_str(&j, "network", networks[i / EW_COUNT(widths)].name);
        ew_json_num(&j, "width", widths[i % EW_COUNT(widths)]);
        ew_json_int(&j, "params", p[i].params);
        ew_json_num(&j, "study_line_ms", line_ms(&p[i]));
        ew_dpu_json_times(&j, c, &p[i].t);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_dpu_scale(const struct ew_cmd_call *c, const char *device)
{
    struct ew_dpu_config config;
    struct point p[POINTS] = {{0}};
    EW_TRY(ew_dpu_config_parse(device + 3 + (device[3] == ':'), &config));
    for (size_t i = 0; i < POINTS; i++)
        EW_TRY(model(i, &config, &p[i]));
    return c->json ? print_json(p, &config) : print_text(p, &config);
}
