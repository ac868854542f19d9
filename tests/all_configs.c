/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a graph by all kernels, plans and file formats. */
#include "all_configs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/isa.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "ew_test.h"
#include "plan/plan.h"

/* EW_DEVICE is for what is compared with them. */
#define REFERENCES                                                                                 \
    {                                                                                              \
        .device = "cpu", .threads = 1, .reference = true                                           \
    }

struct work {
    struct ew_graph *g;
    const struct ew_all_configs *o;
    struct ew_plan *want; /* plan of the references, after its run; NULL: they failed */
};

bool ew_graph_has_jumps(const struct ew_graph *g)
{
    static const char *const names[] = {"ceil", "floor",  "mod",   "quantize_linear", "round",
                                        "sign", "shrink", "top_k", "thresholded_relu"};
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        if (n->op->flags & EW_OP_STOCHASTIC)
            return true;
        for (size_t i = 0; i < EW_COUNT(names); i++)
            if (strcmp(n->op->name, names[i]) == 0)
                return true;
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0 && !ew_dtype_is_float(g->values[n->out[i]].t.dtype) &&
                !g->values[n->out[i]].t.data)
                return true;
    }
    return false;
}

/* ---- Inputs and results ---- */

static void fill_input(const struct ew_all_configs *o, int index, struct ew_tensor *t)
{
    for (int64_t i = 0; i < ew_tensor_count(t); i++) {
        double v = ew_rng_normal(o->seed, (uint64_t)index, (uint64_t)i);
        if (o->any_byte && (t->dtype == EW_U8 || t->dtype == EW_S8))
            v = fmin(fmax(floor(70 * v), -128), 127) + (t->dtype == EW_U8 ? 128 : 0);
        else if (!ew_dtype_is_float(t->dtype))
            v = floor(2 * fabs(v));
        ew_tensor_store(t, i, 1, &v);
    }
}

static ew_err run_plan(const struct work *w, struct ew_graph *g, const struct ew_plan_opts *opts,
                       struct ew_plan **out)
{
    EW_TRY(ew_plan_compile(g, opts, out));
    for (int i = 0; i < g->n_inputs; i++)
        fill_input(w->o, i, ew_plan_input(*out, i));
    return ew_plan_run(*out);
}

/* The largest magnitude; -1 if an element is not finite. */
static double magnitude(const struct ew_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < ew_tensor_count(t); i++) {
        const double v = fabs(ew_tensor_get(t, i));
        if (!(v < 1e30))
            return -1;
        most = fmax(most, v);
    }
    return most;
}

/* Infinities, and what follows from them, may depend on rounding: only finite results are
 * compared. */
static ew_err compare(const struct work *w, int output, const struct ew_tensor *got,
                      const char *way)
{
    const struct ew_tensor *want = ew_plan_output(w->want, output);
    const char *name = w->g->values[w->g->outputs[output]].name;
    EW_CHECK(got->dtype == want->dtype && ew_shape_equal(&got->shape, &want->shape), EW_ERR_SHAPE,
             "%s: output %s has another type or shape", way, name);
    const double most = magnitude(want), tolerance = w->o->tolerance;
    if (tolerance <= 0 || most < 0)
        return EW_OK;
    for (int64_t i = 0; i < ew_tensor_count(want); i++) {
        const double a = ew_tensor_get(got, i), b = ew_tensor_get(want, i);
        EW_CHECK(fabs(a - b) <= tolerance * fmax(most, 1e-3), EW_ERR_ARG,
                 "%s: output %s, element %lld is %.9g, by the references %.9g (largest %.3g)", way,
                 name, (long long)i, a, b, most);
    }
    return EW_OK;
}

static ew_err compare_plan(const struct work *w, const struct ew_plan *p, const char *way)
{
    for (int i = 0; i < w->g->n_outputs; i++)
        EW_TRY(compare(w, i, ew_plan_output(p, i), way));
    return EW_OK;
}

/* ---- Plans ---- */

/* A configuration must run if and only if the references ran. */
static ew_err judge(const struct work *w, ew_err e, const char *way)
{
    EW_CHECK(e == EW_OK || !w->want, EW_ERR_ARG, "%s fails, the references do not: %.200s", way,
             ew_error_message());
    EW_CHECK(e != EW_OK || w->want, EW_ERR_ARG, "%s works, the references fail", way);
    return EW_OK;
}

static ew_err try_plan(const struct work *w, bool optimize, int threads, const char *isa)
{
    char way[80];
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.optimize = optimize, .backend = {.threads = threads}};
    snprintf(way, sizeof(way), "%s, %s, %d threads", isa, optimize ? "passes" : "no passes",
             threads);
    ew_err e = run_plan(w, w->g, &o, &p);
    const bool ran = e == EW_OK;
    e = judge(w, e, way);
    if (e == EW_OK && ran)
        e = compare_plan(w, p, way);
    ew_plan_free(p);
    return e;
}

static ew_err try_references(const struct work *w)
{
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.backend = REFERENCES};
    ew_err e = judge(w, run_plan(w, w->g, &o, &p), "its own references");
    if (e == EW_OK)
        e = compare_plan(w, p, "its own references");
    ew_plan_free(p);
    return e;
}

static ew_err try_isas(const struct work *w)
{
    const struct ew_kernels *isa;
    const char *forced = getenv("EW_ISA"), *device = getenv("EW_DEVICE");
    forced = forced && *forced ? forced : device; /* which has no instruction sets */
    if (forced && *forced) {
        EW_TRY(try_plan(w, false, 1, forced));
        return try_plan(w, true, 1, forced);
    }
    ew_err e = EW_OK;
    for (int i = 0; e == EW_OK && (isa = ew_isa_at(i)); i++) {
        setenv("EW_ISA", isa->isa, 1);
        e = try_plan(w, false, 1, isa->isa);
        if (e == EW_OK)
            e = try_plan(w, true, 1, isa->isa);
    }
    unsetenv("EW_ISA");
    return e;
}

/* ---- Files ---- */

static ew_err run_engine(const struct work *w, const struct ew_engine *engine, int64_t batch,
                         const char *way)
{
    struct ew_context *c = NULL;
    EW_TRY(ew_context_new(engine, 1, &c));
    ew_err e = ew_context_set_batch(c, batch);
    if (e != EW_OK) {
        ew_context_free(c);
        return e;
    }
    for (int i = 0; i < w->g->n_inputs; i++) {
        struct ew_tensor t = w->g->values[w->g->inputs[i]].t;
        size_t bytes = 0;
        t.data = ew_context_input(c, i, &bytes);
        fill_input(w->o, i, &t);
    }
    e = ew_context_run(c);
    for (int i = 0; e == EW_OK && i < w->g->n_outputs; i++)
        e = compare(w, i, ew_plan_output(ew_context_plan(c), i), way);
    ew_context_free(c);
    return e;
}

static ew_err try_engine(const struct work *w, bool compact)
{
    const char *path = ew_test_path("every.ewe");
    int64_t batch = 1;
    EW_TRY(ew_graph_batch(w->g, &batch));
    const struct ew_compile_opts o = {.size = sizeof(o),
                                      .batch_min = batch,
                                      .batch_max = batch,
                                      .threads = 1,
                                      .compact = compact};
    struct ew_engine *engine = NULL;
    EW_TRY(ew_fail_in(ew_engine_compile(w->g, &o, path), "engine"));
    EW_TRY(ew_fail_in(ew_engine_load(path, &engine), "engine"));
    batch = engine->file.card.batch_min; /* the graph's batch is fixed: use it */
    const ew_err e = run_engine(w, engine, batch, compact ? "compact engine" : "engine");
    ew_engine_free(engine);
    return e;
}

/* Runs one batch size of an engine for several. */
static ew_err try_batch(const struct work *w, const struct ew_engine *engine, int64_t batch)
{
    char way[40];
    struct work now = {.g = w->g, .o = w->o};
    struct ew_graph *by = w->o->by ? w->o->by : w->g;
    const struct ew_plan_opts reference = {.backend = REFERENCES};
    snprintf(way, sizeof(way), "engine at batch %d", (int)batch);
    EW_TRY(ew_graph_set_batch(now.g, batch));
    EW_TRY(ew_graph_set_batch(by, batch));
    ew_err e = run_plan(&now, by, &reference, &now.want);
    if (e == EW_OK)
        e = run_engine(&now, engine, batch, way);
    ew_plan_free(now.want);
    return e;
}

static ew_err try_batches(const struct work *w)
{
    const char *path = ew_test_path("batches.ewe");
    const struct ew_compile_opts o = {
        .size = sizeof(o), .batch_min = 1, .batch_max = w->o->most_batch, .threads = 1};
    struct ew_engine *engine = NULL;
    EW_TRY(ew_fail_in(ew_engine_compile(w->g, &o, path), "batches"));
    EW_TRY(ew_fail_in(ew_engine_load(path, &engine), "batches"));
    ew_err e = EW_OK;
    for (int64_t b = w->o->most_batch; e == EW_OK && b >= 1; b--)
        e = try_batch(w, engine, b);
    ew_engine_free(engine);
    return e;
}

static ew_err try_export(const struct work *w)
{
    const char *path = ew_test_path("every.onnx");
    struct ew_graph *back = NULL;
    struct ew_plan *p = NULL;
    const struct ew_plan_opts o = {.backend = REFERENCES};
    if (ew_onnx_save(w->g, path, NULL) != EW_OK)
        return EW_OK; /* ONNX has no such operator */
    EW_TRY(ew_fail_in(ew_onnx_load(path, NULL, &back), "export and import"));
    int64_t batch = 1;
    ew_err e = ew_graph_batch(w->g, &batch);
    if (e == EW_OK)
        e = ew_graph_set_batch(back, batch);
    if (e == EW_OK)
        e = run_plan(w, back, &o, &p);
    if (e == EW_OK)
        e = compare_plan(w, p, "export and import");
    ew_plan_free(p);
    ew_graph_free(back);
    return ew_fail_in(e, "export and import");
}

/* ---- All ---- */

static ew_err fits(struct ew_graph *g, const struct ew_all_configs *o, bool *out)
{
    struct ew_cost cost;
    struct ew_plan *p = NULL;
    struct ew_plan_stats s;
    *out = false;
    EW_TRY(ew_graph_cost(g, &cost, NULL));
    EW_TRY(ew_plan_compile(g, &(struct ew_plan_opts){.dry = true, .backend = {.threads = 1}}, &p));
    ew_plan_stats(p, &s);
    ew_plan_free(p);
    *out = (!o->most_flops ||
            (cost.flops >= 0 && cost.flops <= o->most_flops && cost.bytes <= 16 * o->most_flops)) &&
           (!o->most_bytes || s.arena_bytes <= o->most_bytes);
    return EW_OK;
}

ew_err ew_run_all_configs(struct ew_graph *g, const struct ew_all_configs *o)
{
    static const int threads[] = {2, 3, 7};
    struct work w = {.g = g, .o = o};
    bool small = false;
    const ew_err planned = fits(g, o, &small);
    if (planned != EW_OK || !small)
        return o->must_run || planned == EW_ERR_INTERNAL ? planned : EW_OK;
    const struct ew_plan_opts reference = {.backend = REFERENCES};
    ew_err e = run_plan(&w, o->by ? o->by : g, &reference, &w.want);
    if (e != EW_OK) {
        ew_plan_free(w.want);
        w.want = NULL;
        if (o->must_run)
            return ew_fail_in(e, "by the references");
    }
    e = try_isas(&w);
    for (size_t i = 0; e == EW_OK && !o->one_thread && i < EW_COUNT(threads); i++)
        e = try_plan(&w, true, threads[i], "first");
    if (e == EW_OK && o->by && w.want)
        e = try_references(&w);
    if (e == EW_OK && o->files && w.want)
        e = try_engine(&w, false);
    if (e == EW_OK && o->files && w.want)
        e = try_engine(&w, true);
    if (e == EW_OK && o->files && w.want)
        e = try_export(&w);
    if (e == EW_OK && o->files && o->most_batch && w.want)
        e = try_batches(&w);
    ew_plan_free(w.want);
    return e;
}

static bool has_common_sizes(const struct ew_graph *g)
{
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_tensor *t = &g->values[v].t;
        if (!t->data || !ew_dtype_is_float(t->dtype))
            continue;
        const double most = magnitude(t);
        if (most < 0 || most > 1e3)
            return false;
    }
    return true;
}

ew_err ew_run_all_configs_small(struct ew_graph *g)
{
    const struct ew_all_configs o = {.seed = 5,
                                     .most_flops = (int64_t)1 << 18,
                                     .most_bytes = (size_t)1 << 20,
                                     .tolerance =
                                         ew_graph_has_jumps(g) || !has_common_sizes(g) ? 0 : 1e-2,
                                     .one_thread = true};
    return ew_run_all_configs(g, &o);
}
