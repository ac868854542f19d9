/* SPDX-License-Identifier: Apache-2.0 */
/* The probe: the SQNR of a changed network's scores on a few images, and times of layers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edgewise.h"
#include "plan/plan.h"
#include "quant/quant_impl.h"

#define PROBES      32 /* images */
#define NOTHING_DB  200
#define TIMED_RUNS  15
#define WARMUP_RUNS 3

void ew_quant_probe_fini(struct ew_quant_probe *p)
{
    free(p->images);
    free(p->scores);
    *p = (struct ew_quant_probe){0};
}

/* Scores of all probe images, into `to`. */
static ew_err run_probe(const struct ew_quant_probe *p, const struct ew_graph *g, int threads,
                        float *to)
{
    struct ew_graph *copy = NULL;
    struct ew_plan *plan = NULL;
    const struct ew_plan_opts o = {.optimize = true, .backend = {.threads = threads}};
    ew_err e = ew_graph_clone(g, &copy);
    if (e == EW_OK)
        e = ew_graph_need_batch(copy, EW_QUANT_BATCH);
    if (e == EW_OK)
        e = ew_plan_compile(copy, &o, &plan);
    for (int64_t at = 0; e == EW_OK && at < p->n; at += EW_QUANT_BATCH) {
        const int64_t n = ew_min_i64(EW_QUANT_BATCH, p->n - at);
        memcpy(ew_plan_input(plan, 0)->data, p->images + at * p->image,
               (size_t)(n * p->image) * sizeof(float));
        e = ew_plan_run(plan);
        if (e == EW_OK)
            memcpy(to + at * p->classes, ew_plan_output(plan, 0)->data,
                   (size_t)(n * p->classes) * sizeof(float));
    }
    ew_plan_free(plan);
    ew_graph_free(copy);
    return e;
}

static ew_err gather(const struct ew_quant_job *job, struct ew_quant_probe *p)
{
    struct ew_loader_opts o = job->calibration;
    struct ew_loader *l = NULL;
    o.batch = EW_QUANT_BATCH;
    EW_TRY(ew_loader_open(&o, &l));
    ew_err e = ew_loader_start(l, 0, 0);
    const struct ew_batch *b = NULL;
    while (e == EW_OK && p->n < p->room && (e = ew_loader_next(l, &b)) == EW_OK && b) {
        const int64_t n = ew_min_i64(b->n, p->room - p->n);
        memcpy(p->images + p->n * p->image, b->images, (size_t)(n * p->image) * sizeof(float));
        p->n += n;
        ew_loader_release(l, b);
    }
    ew_loader_close(l);
    return e;
}

ew_err ew_quant_probe_fill(const struct ew_quant_job *job, struct ew_quant_probe *p)
{
    const struct ew_graph *g = job->net;
    const struct ew_shape *in = &g->values[g->inputs[0]].t.shape;
    const struct ew_shape *out = &g->values[g->outputs[0]].t.shape;
    *p = (struct ew_quant_probe){.room = PROBES,
                                 .image = ew_shape_span(in, 1, in->rank),
                                 .classes = ew_shape_span(out, 1, out->rank)};
    p->images = calloc((size_t)(PROBES * p->image), sizeof(float));
    p->scores = calloc((size_t)(PROBES * p->classes), sizeof(float));
    EW_CHECK(p->images && p->scores, EW_ERR_MEMORY, "no memory for %d images", PROBES);
    EW_TRY(gather(job, p));
    EW_CHECK(p->n > 0, EW_ERR_ARG, "there is no image to calibrate with");
    return run_probe(p, g, job->opts.threads, p->scores);
}

ew_err ew_quant_probe_sqnr(const struct ew_quant_probe *p, const struct ew_graph *g, int threads,
                           double *db)
{
    const int64_t n = p->n * p->classes;
    EW_CLEANUP(ew_free_ptr) float *got = calloc((size_t)n, sizeof(*got));
    EW_CHECK(got, EW_ERR_MEMORY, "no memory for scores");
    EW_TRY(run_probe(p, g, threads, got));
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)p->scores[i];
        signal += (double)p->scores[i] * (double)p->scores[i];
        noise += d * d;
    }
    if (isnan(noise) || isinf(noise))
        *db = -NOTHING_DB; /* NaN among the scores */
    else
        *db = noise > 0 && signal > 0 ? fmin(10 * log10(signal / noise), NOTHING_DB) : NOTHING_DB;
    return EW_OK;
}

/* ---- Times ---- */

static double layer_time(const struct ew_plan *plan, const int64_t *ns, const char *name)
{
    double sum = -1;
    for (int k = 0; k < ew_plan_step_count(plan); k++) {
        struct ew_step_info info;
        ew_plan_step_info(plan, k, &info);
        if (info.name && strcmp(info.name, name) == 0)
            sum = (sum < 0 ? 0 : sum) + (double)ns[k] * 1e-9;
    }
    return sum;
}

/* The minimum time of each step, since disturbances only add. */
static ew_err least_times(struct ew_plan *plan, int64_t *least, int64_t *now)
{
    const int n = ew_plan_step_count(plan);
    for (int run = -WARMUP_RUNS; run < TIMED_RUNS; run++) {
        EW_TRY(ew_plan_run_timed(plan, now));
        for (int k = 0; k < n && run >= 0; k++)
            least[k] = run == 0 || now[k] < least[k] ? now[k] : least[k];
    }
    return EW_OK;
}

static ew_err time_plan(struct ew_plan *plan, const struct ew_quant_layer *layers, int n,
                        double *layer_s, double *all_s)
{
    const int steps = ew_plan_step_count(plan);
    EW_CLEANUP(ew_free_ptr) int64_t *ns = calloc(2 * (size_t)steps + 1, sizeof(*ns));
    EW_CHECK(ns, EW_ERR_MEMORY, "no memory for the times of %d steps", steps);
    EW_TRY(least_times(plan, ns, ns + steps));
    *all_s = 0;
    for (int k = 0; k < steps; k++)
        *all_s += (double)ns[k] * 1e-9;
    for (int i = 0; i < n; i++)
        layer_s[i] = layer_time(plan, ns, layers[i].name);
    return EW_OK;
}

ew_err ew_quant_time(const struct ew_graph *g, int threads, const struct ew_quant_layer *layers,
                     int n, double *layer_s, double *all_s)
{
    struct ew_graph *copy = NULL;
    struct ew_plan *plan = NULL;
    const struct ew_plan_opts o = {.optimize = true, .backend = {.threads = threads}};
    ew_err e = ew_graph_clone(g, &copy);
    if (e == EW_OK)
        e = ew_graph_set_batch(copy, 1);
    if (e == EW_OK)
        e = ew_plan_compile(copy, &o, &plan);
    if (e == EW_OK)
        e = time_plan(plan, layers, n, layer_s, all_s);
    ew_plan_free(plan);
    ew_graph_free(copy);
    return e;
}
