/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation and quantising for programs (edgewise_train.h), over measure/ and quant/. */
#include <math.h>

#include "base/num.h"
#include "base/sized.h"
#include "edgewise_train.h"
#include "engine/engine.h"
#include "measure/eval_run.h"
#include "model/loss_table.h"
#include "quant/quant_run.h"

#define USUAL_BATCH  32
#define USUAL_IMAGES 1000 /* to measure ranges on */
#define USUAL_SQNR   10

/* ---- Evaluation ---- */

static ew_err options(const struct ew_evaluate_opts *opts, struct ew_evaluate_opts *out)
{
    EW_TRY(ew_sized_import(opts, out, sizeof(*out)));
    EW_CHECK(out->batch >= 0 && out->workers >= 0 && out->threads >= 0 && out->samples >= 0,
             EW_ERR_ARG, "batch, workers, threads and samples are not negative");
    out->batch = out->batch ? out->batch : USUAL_BATCH;
    return EW_OK;
}

static ew_err evaluate(const struct ew_eval_target *t, const struct ew_classifier *k,
                       const struct ew_dataset *data, const struct ew_evaluate_opts *o,
                       struct ew_evaluation *out)
{
    struct ew_image_set set = {0};
    struct ew_eval_run r = {0};
    EW_TRY(ew_sized_check(out));
    EW_CHECK(!ew_net_reconstructs(t->graph), EW_ERR_UNSUPPORTED,
             "%s gives back its input: it has no accuracy", t->name);
    ew_err e =
        ew_image_set_of(data, k, o->train ? EW_FOR_TRAINING : EW_FOR_EVALUATION, o->samples, &set);
    set.loader.workers = o->workers;
    if (e == EW_OK)
        e = ew_eval_run(t, &set.loader, false, NULL, &r);
    if (e == EW_OK) {
        const struct ew_scores s = ew_confusion_scores(&r.confusion);
        const struct ew_evaluation v = {.accuracy = s.accuracy,
                                        .top5_accuracy =
                                            s.samples ? (double)r.in_top / (double)s.samples : 0,
                                        .precision = s.precision,
                                        .recall = s.recall,
                                        .f1 = s.f1,
                                        .loss = s.loss,
                                        .samples = s.samples,
                                        .unreadable = r.bad};
        ew_sized_export(&v, sizeof(v), out);
    }
    ew_eval_run_fini(&r);
    ew_image_set_close(&set);
    return e;
}

/* What the graph says of its images. */
static ew_err card_of(const struct ew_graph *net, struct ew_classifier *k)
{
    struct ew_arena a;
    struct ew_image_card card;
    ew_arena_init(&a);
    const ew_err e = ew_image_card_get(net, &a, &card);
    if (e == EW_OK)
        k->prep = card.prep;
    ew_arena_fini(&a);
    return e;
}

static ew_err evaluate_copy(struct ew_graph *g, const struct ew_dataset *data,
                            const struct ew_evaluate_opts *o, struct ew_evaluation *out)
{
    const struct ew_plan_opts po = {
        .mode = EW_PLAN_INFER, .optimize = true, .backend = {.threads = (int)o->threads}};
    struct ew_classifier k = {.net = g};
    struct ew_eval_target t = {.name = g->name, .graph = g};
    EW_TRY(card_of(g, &k));
    EW_TRY(ew_graph_set_batch(g, o->batch));
    t.batch = ew_graph_images(g); /* another, where it is fixed */
    EW_TRY(ew_plan_compile(g, &po, &t.plan));
    const ew_err e = evaluate(&t, &k, data, o, out);
    ew_plan_free(t.plan);
    return e;
}

EW_API ew_err ew_evaluate_graph(const struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_evaluate_opts *opts, struct ew_evaluation *out)
{
    EW_C_LOCALE;
    EW_NEED(net);
    EW_NEED(data);
    EW_NEED(out);
    struct ew_evaluate_opts o;
    struct ew_graph *g;
    EW_TRY(options(opts, &o));
    EW_TRY(ew_graph_clone(net, &g));
    const ew_err e = evaluate_copy(g, data, &o, out);
    ew_graph_free(g);
    return e;
}

EW_API ew_err ew_evaluate_context(struct ew_context *c, const struct ew_dataset *data,
                                  const struct ew_evaluate_opts *opts, struct ew_evaluation *out)
{
    EW_C_LOCALE;
    EW_NEED(c);
    EW_NEED(data);
    EW_NEED(out);
    struct ew_evaluate_opts o;
    const struct ew_engine_card *card = ew_context_card(c);
    struct ew_graph *g = ew_context_graph(c);
    const struct ew_classifier k = {.net = g, .prep = card->prep};
    const struct ew_eval_target t = {
        .name = card->name, .graph = g, .plan = ew_context_plan(c), .batch = ew_graph_images(g)};
    EW_TRY(options(opts, &o));
    return evaluate(&t, &k, data, &o, out);
}

/* ---- Quantising ---- */

static ew_err run_quant(const struct ew_classifier *k, const struct ew_dataset *data,
                        const struct ew_quantization_opts *o, struct ew_quant_result *r)
{
    struct ew_image_set calib = {0}, eval = {0};
    const bool judged = o->max_drop > 0;
    ew_err e =
        ew_image_set_of(data, k, EW_FOR_CALIBRATION, o->images ? o->images : USUAL_IMAGES, &calib);
    if (e == EW_OK && judged)
        e = ew_image_set_of(data, k, EW_FOR_EVALUATION, 0, &eval);
    if (e == EW_OK) {
        const struct ew_quant_job job = {
            .net = k->net,
            .calibration = calib.loader,
            .evaluation = judged ? &eval.loader : NULL,
            .opts = {.scheme = o->power_of_two ? EW_QUANTIZE_POW2 : EW_QUANTIZE_CHANNEL,
                     .method = EW_CALIBRATE_MINMAX,
                     .equalize = true,
                     .correct_bias = true,
                     .min_sqnr_db = o->min_sqnr_db > 0 ? o->min_sqnr_db : USUAL_SQNR,
                     .max_drop = judged ? o->max_drop : 100,
                     .threads = (int)o->threads}};
        e = ew_quant_run(&job, r);
    }
    ew_image_set_close(&eval);
    ew_image_set_close(&calib);
    return e;
}

static void fill_report(const struct ew_quant_result *r, struct ew_quantization *out)
{
    const double none = (double)NAN;
    const struct ew_quantization q = {.sqnr_db = r->sqnr_db,
                                      .float_accuracy = r->evaluated ? r->before.accuracy : none,
                                      .int8_accuracy = r->evaluated ? r->after.accuracy : none,
                                      .layers = r->n_layers,
                                      .float_layers = r->n_float,
                                      .float_bytes = r->float_bytes,
                                      .int8_bytes = r->int8_bytes};
    ew_sized_export(&q, sizeof(q), out);
}

/* The quantised graph, which leaves the result. */
static ew_err take(struct ew_quant_result *r, const struct ew_quantization_opts *o,
                   struct ew_graph **out)
{
    EW_CHECK(r->drop_met, EW_ERR_LIMIT,
             "int8 costs %.2f points of accuracy, %g are allowed: more images may help",
             100 * (r->before.accuracy - r->after.accuracy), o->max_drop);
    EW_TRY(ew_graph_set_batch(r->graph, 1));
    *out = r->graph;
    r->graph = NULL;
    return EW_OK;
}

EW_API ew_err ew_quantize_graph(const struct ew_graph *net, const struct ew_dataset *data,
                                const struct ew_quantization_opts *opts,
                                struct ew_quantization *report, struct ew_graph **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(net);
    EW_NEED(data);
    struct ew_quantization_opts o;
    struct ew_quant_result r = {0};
    struct ew_classifier k = {0};
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    if (report)
        EW_TRY(ew_sized_check(report));
    EW_CHECK(o.images >= 0 && o.threads >= 0, EW_ERR_ARG, "images and threads are not negative");
    EW_TRY(card_of(net, &k));
    struct ew_graph *g; /* shares the network's weights */
    EW_TRY(ew_graph_clone(net, &g));
    k.net = g;
    ew_err e = run_quant(&k, data, &o, &r);
    if (e == EW_OK && report)
        fill_report(&r, report);
    if (e == EW_OK)
        e = take(&r, &o, out);
    ew_quant_result_fini(&r);
    ew_graph_free(g);
    return e;
}
