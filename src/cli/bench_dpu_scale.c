/* SPDX-License-Identifier: Apache-2.0 */
/* bench --protocol scale --device dpu: the scaling study's latencies on an FPGA, modelled.
 *
 * The study's three networks on CIFAR-10's images and MobileNetV2 on tiny ImageNet's, at four
 * widths, uniform and by NeuralScale, one image at a time, one thread (its Figs 16 and 18).  Its
 * own line stands beside ours (Table 4, ZCU104): ms = 1.7e-7 * parameters + 0.69.
 *
 * NeuralScale's widths are those of its authors' published descents.  The study searched anew, and
 * ResNet-50 too, without publishing what it found: that network has uniform widths only. */
#include <math.h>
#include <stdio.h>

#include "backend/dpu/dpu_model.h"
#include "base/json.h"
#include "base/regress.h"
#include "cli/bench_dpu.h"
#include "cli/bench_sweep.h"
#include "edgewise.h"
#include "graph/facts.h"
#include "report/text_table.h"
#include "scale/power_law.h"

#define REAL_TIME_MS 16.67

static const double ratios[] = {0.25, 0.5, 0.75, 1};
static const struct study_network {
    const char *name, *called, *data;
    int64_t side, classes;
    bool in_line;     /* of Table 4, which is CIFAR-10's */
    double published; /* NeuralScale's latency by that of uniform widths; 0: not stated */
} networks[] = {{"vgg11_cifar", "VGG-11", "CIFAR-10", 32, 10, true, 0},
                {"mobilenet_v2_cifar", "MobileNetV2", "CIFAR-10", 32, 10, true, 1.1},
                {"resnet50", "ResNet-50", "CIFAR-10", 32, 10, true, 0},
                {"mobilenet_v2_tiny", "MobileNetV2", "tiny ImageNet", 64, 200, false, 1.6}};

#define RATIOS ((int)EW_COUNT(ratios))
#define POINTS ((int)(EW_COUNT(networks) * 2) * RATIOS)

struct point {
    const struct study_network *of;
    const char *method;
    double ratio;
    int64_t params;
    struct ew_dpu_times t;
};

struct protocol {
    struct ew_dpu_config config;
    struct point p[POINTS]; /* by network, method, ratio */
    int n;
    struct ew_line line;               /* of ours, over the study's networks */
    double slower[EW_COUNT(networks)]; /* NeuralScale's latency by uniform; 0: no such widths */
    double speed;                      /* uniform by NeuralScale's latency, mean of all pairs */
};

/* ---- Networks ---- */

static ew_err time_graph(const struct ew_graph *g, const struct ew_dpu_config *c, struct point *out)
{
    struct ew_dpu_net layers = {0};
    struct ew_facts facts;
    EW_TRY(ew_graph_facts(g, &facts));
    const ew_err e = ew_dpu_net_init(g, &layers);
    if (e == EW_OK)
        ew_dpu_time(&layers, c, &out->t);
    ew_dpu_net_fini(&layers);
    out->params = facts.params;
    return e;
}

static ew_err model(const struct ew_dpu_config *c, const struct ew_power_law *law,
                    struct point *out)
{
    struct ew_model_opts o = {.size = sizeof(o),
                              .height = out->of->side,
                              .width = out->of->side,
                              .classes = out->of->classes};
    struct ew_scaling s;
    struct ew_widths_found found;
    struct ew_graph *g;
    double target;
    EW_TRY(ew_scaling_open(out->of->name, &o, &s));
    if (law) {
        EW_TRY(ew_scaling_target(&s, out->ratio, &target));
        EW_TRY(ew_power_law_widths(&s, law, target, &found));
    } else
        EW_TRY(ew_scaling_uniform(&s, out->ratio, found.widths));
    o.filters = found.widths;
    o.n_filters = s.n;
    EW_TRY(ew_model_build(out->of->name, &o, &g));
    const ew_err e = time_graph(g, c, out);
    ew_graph_free(g);
    return e;
}

static ew_err add_points(struct protocol *r, const struct study_network *of, bool neuralscale)
{
    const struct ew_power_law *law = neuralscale ? ew_power_law_published(of->name) : NULL;
    for (int i = 0; i < RATIOS && (law || !neuralscale); i++) {
        struct point *p = &r->p[r->n++];
        *p =
            (struct point){.of = of, .method = law ? "NeuralScale" : "uniform", .ratio = ratios[i]};
        EW_TRY(model(&r->config, law, p));
    }
    return EW_OK;
}

/* ---- What they say together ---- */

static ew_err fit(struct protocol *r)
{
    double x[POINTS], y[POINTS];
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        if (!r->p[i].of->in_line)
            continue;
        x[n] = (double)r->p[i].params;
        y[n++] = 1e3 * r->p[i].t.latency_s;
    }
    return ew_line_fit(x, y, n, &r->line);
}

/* NeuralScale against uniform widths of the same ratio, which have as many parameters. */
static void compare(struct protocol *r)
{
    int pairs = 0;
    for (int i = 0; i + RATIOS < r->n; i++) {
        const struct point *p = &r->p[i], *scaled = &r->p[i + RATIOS];
        if (scaled->of != p->of || scaled->method == p->method)
            continue;
        const double ratio = scaled->t.latency_s / p->t.latency_s;
        r->slower[p->of - networks] += ratio / RATIOS;
        if (p->of->in_line) {
            r->speed += 1 / ratio;
            pairs++;
        }
    }
    r->speed /= pairs ? pairs : 1;
}

static ew_err run(const char *device, struct protocol *r)
{
    EW_TRY(ew_dpu_config_parse(ew_dpu_arguments(device), &r->config));
    for (size_t i = 0; i < EW_COUNT(networks); i++)
        for (int neuralscale = 0; neuralscale < 2; neuralscale++)
            EW_TRY(add_points(r, &networks[i], neuralscale));
    compare(r);
    return fit(r);
}

/* ---- Showing it ---- */

static void print_row(const struct point *p, const struct ew_dpu_config *c, struct ew_table *t)
{
    const double ms = 1e3 * p->t.latency_s;
    ew_table_cell(t, "%s", p->of->called);
    ew_table_cell(t, "%s", p->of->data);
    ew_table_cell(t, "%s", p->method);
    ew_table_cell(t, "%.2f", p->ratio);
    ew_table_count(t, p->params);
    ew_table_cell(t, "%.3f", 1e3 * p->t.core_s);
    ew_table_cell(t, "%.3f", ms);
    ew_table_cell(t, "%.3f", EW_SCALE_LINE_MS((double)p->params));
    ew_table_cell(t, "%s", ms < REAL_TIME_MS ? "yes" : "no");
    if (p->t.watts_one > 0) {
        ew_table_cell(t, "%.1f", p->t.watts_one - c->board->idle_w);
        ew_table_cell(t, "%.1f", 1 / p->t.latency_s / p->t.watts_one);
    }
}

static void print_ratios(const struct protocol *r)
{
    printf("NeuralScale takes");
    for (size_t i = 0, n = 0; i < EW_COUNT(networks); i++)
        if (r->slower[i] > 0) {
            printf("%s %.2f times as long for %s on %s", n++ ? "," : "", r->slower[i],
                   networks[i].called, networks[i].data);
            if (networks[i].published > 0)
                printf(" (the study: %.1f)", networks[i].published);
        }
    printf("; its speed on CIFAR-10 is %.0f %% of uniform widths' (the study: 96 %%)\n",
           100 * r->speed);
}

static ew_err print_text(const struct protocol *r)
{
    static const char *const head[] = {"network",    "data",      "widths",     "ratio",
                                       "parameters", "core ms",   "latency ms", "study's line",
                                       "real time",  "dynamic W", "images/s/W"};
    const bool power = r->p[0].t.watts_one > 0;
    char text[96];
    struct ew_table t;
    ew_table_init(&t, power ? "lllrrrrrlrr" : "lllrrrrrl");
    for (size_t i = 0; i < (power ? EW_COUNT(head) : EW_COUNT(head) - 2); i++)
        ew_table_cell(&t, "%s", head[i]);
    for (int i = 0; i < r->n; i++)
        print_row(&r->p[i], &r->config, &t);
    EW_TRY(ew_table_print(&t, stdout));
    ew_dpu_config_text(&r->config, text, sizeof(text));
    printf("%s, int8, one thread; all modelled, nothing was run; real time is under %.2f ms\n",
           text, REAL_TIME_MS);
    print_ratios(r);
    printf("line over parameters, CIFAR-10: ms = %.2g x parameters + %.2f, correlation %.3f, n = "
           "%d; the study's on a ZCU104: %.2g and %.2f, 0.924, 24\n",
           r->line.slope, r->line.intercept, r->line.r, r->line.n, EW_SCALE_LINE_SLOPE,
           EW_SCALE_LINE_START);
    return EW_OK;
}

static ew_err print_json(const struct protocol *r)
{
    struct ew_json j;
    ew_json_init(&j, stdout);
    ew_json_array(&j, NULL);
    for (int i = 0; i < r->n; i++) {
        const struct point *p = &r->p[i];
        ew_json_object(&j, NULL);
        ew_json_str(&j, "network", p->of->name);
        ew_json_str(&j, "method", p->method);
        ew_json_num(&j, "width", p->ratio);
        ew_json_int(&j, "params", p->params);
        ew_json_num(&j, "study_line_ms", EW_SCALE_LINE_MS((double)p->params));
        ew_dpu_json_times(&j, &r->config, &p->t);
        ew_json_end(&j);
    }
    ew_json_end(&j);
    return ew_json_finish(&j);
}

ew_err ew_bench_dpu_scale(const struct ew_cmd_call *c, const char *device)
{
    struct protocol r = {0};
    EW_CHECK(c->n_args == 0, EW_ERR_USAGE,
             "the protocol has its own networks, not %s; --eval judges trained ones", c->args[0]);
    EW_TRY(run(device, &r));
    return c->json ? print_json(&r) : print_text(&r);
}
