/* SPDX-License-Identifier: Apache-2.0 */
/* The scaling study's protocol on an FPGA.
 *
 * NeuralScale's widths are those published by its authors.  The study ran its own searches, also
 * for ResNet-50, without publishing the widths: that network has uniform widths only. */
#include "measure/dpu_protocol.h"

#include <stdio.h>
#include <string.h>

#include "edgewise.h"
#include "measure/classifier.h"
#include "quant/quant_run.h"
#include "scale/power_law.h"

#define CALIBRATION 500 /* images, as in the study */

static const double ratios[EW_DPU_STUDY_RATIOS] = {0.25, 0.5, 0.75, 1};
const struct ew_dpu_study_network ew_dpu_study_networks[EW_DPU_STUDY_NETWORKS] = {
    {"vgg11_cifar", "VGG-11", "CIFAR-10", 32, 10, true, 0},
    {"mobilenet_v2_cifar", "MobileNetV2", "CIFAR-10", 32, 10, true, 1.1},
    {"resnet50", "ResNet-50", "CIFAR-10", 32, 10, true, 0},
    {"mobilenet_v2_tiny", "MobileNetV2", "tiny ImageNet", 64, 200, false, 1.6}};

/* ---- Networks ---- */

static ew_err time_graph(struct ew_graph *g, const struct ew_dpu_config *c,
                         struct ew_dpu_times *out)
{
    struct ew_dpu_net layers = {0};
    EW_TRY(ew_graph_set_batch(g, 1));
    const ew_err e = ew_dpu_net_init(g, &layers);
    if (e == EW_OK)
        ew_dpu_time(&layers, c, out);
    ew_dpu_net_fini(&layers);
    return e;
}

static ew_err time_widths(const struct ew_dpu_config *c, const struct ew_power_law *law,
                          struct ew_dpu_study_point *out)
{
    struct ew_model_opts o = {.size = sizeof(o),
                              .height = out->of->side,
                              .width = out->of->side,
                              .classes = out->of->classes};
    struct ew_scaling s;
    struct ew_widths_found found;
    struct ew_facts facts = {0};
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
    ew_err e = ew_graph_facts(g, &facts);
    if (e == EW_OK)
        e = time_graph(g, c, &out->times);
    out->params = facts.params;
    ew_graph_free(g);
    return e;
}

static ew_err add_points(struct ew_dpu_study *r, const struct ew_dpu_config *c,
                         const struct ew_dpu_study_network *of, bool neuralscale)
{
    const struct ew_power_law *law = neuralscale ? ew_power_law_published(of->name) : NULL;
    for (int i = 0; i < EW_DPU_STUDY_RATIOS && (law || !neuralscale); i++) {
        struct ew_dpu_study_point *p = &r->points[r->n++];
        *p = (struct ew_dpu_study_point){
            .of = of, .method = law ? "NeuralScale" : "uniform", .ratio = ratios[i]};
        EW_TRY(time_widths(c, law, p));
    }
    return EW_OK;
}

/* ---- What they say together ---- */

static ew_err fit(struct ew_dpu_study *r)
{
    double x[EW_DPU_STUDY_POINTS], y[EW_DPU_STUDY_POINTS];
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        if (!r->points[i].of->in_line)
            continue;
        x[n] = (double)r->points[i].params;
        y[n++] = 1e3 * r->points[i].times.latency_s;
    }
    return ew_line_fit(x, y, n, &r->line);
}

/* Compares NeuralScale with uniform widths of the same ratio, which have as many parameters. */
static void compare(struct ew_dpu_study *r)
{
    int pairs = 0;
    for (int i = 0; i + EW_DPU_STUDY_RATIOS < r->n; i++) {
        const struct ew_dpu_study_point *p = &r->points[i],
                                        *scaled = &r->points[i + EW_DPU_STUDY_RATIOS];
        if (scaled->of != p->of || scaled->method == p->method)
            continue;
        const double ratio = scaled->times.latency_s / p->times.latency_s;
        r->slower[p->of - ew_dpu_study_networks] += ratio / EW_DPU_STUDY_RATIOS;
        if (p->of->in_line) {
            r->speed += 1 / ratio;
            pairs++;
        }
    }
    r->speed /= pairs ? pairs : 1;
}

ew_err ew_dpu_study_run(const struct ew_dpu_config *c, struct ew_dpu_study *out)
{
    *out = (struct ew_dpu_study){0};
    for (int i = 0; i < EW_DPU_STUDY_NETWORKS; i++)
        for (int neuralscale = 0; neuralscale < 2; neuralscale++)
            EW_TRY(add_points(out, c, &ew_dpu_study_networks[i], neuralscale));
    compare(out);
    return fit(out);
}

/* ---- Trained networks ---- */

/* The calibration set: the data set of --eval with the calibration's number of images. */
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
        e = ew_image_set_open(eval, k, EW_FOR_EVALUATION, &test);
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

ew_err ew_dpu_trained_run(const char *name, const char *eval, const struct ew_dpu_config *c,
                          struct ew_dpu_trained *out)
{
    const struct ew_image_opts images = {0};
    struct ew_classifier k;
    struct ew_quant_result r = {0};
    EW_CHECK(ew_network_has_weights(name), EW_ERR_USAGE,
             "--eval: %s has no trained weights to quantise", name);
    ew_err e = ew_classifier_load(name, &images, &k);
    if (e == EW_OK)
        e = ew_graph_facts(k.net, &out->facts);
    if (e == EW_OK)
        e = judge(&k, eval, &r);
    if (e == EW_OK)
        e = time_graph(r.graph, c, &out->times);
    if (e == EW_OK) {
        out->name = name;
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
