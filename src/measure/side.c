/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the networks of a comparison. */
#include "measure/side.h"

#include <string.h>

#include "base/clock.h"
#include "base/spawn.h"

void ew_side_fini(struct ew_side *s)
{
    if (!s->network.engine) {
        ew_plan_free(s->p);
        ew_graph_free(s->g);
    }
    ew_network_close(&s->network);
    *s = (struct ew_side){0};
}

/* Fills in the properties of the plan. */
static void describe(struct ew_side *s)
{
    struct ew_plan_stats stats;
    ew_plan_stats(s->p, &stats);
    s->activation_bytes = (int64_t)stats.block_bytes;
    s->weight_bytes = (int64_t)(stats.weight_bytes + stats.packed_bytes);
    const struct ew_device_info *device = ew_backend_info(ew_plan_backend(s->p));
    s->threads = device->threads;
    s->isa = device->label;
    ew_bench_fill(s->p, s->g, 2, 1);
}

/* ---- Engines ---- */

static ew_err take_engine(const struct ew_side_opts *o, struct ew_side *s)
{
    const struct ew_network *n = &s->network;
    const struct ew_engine_card *c = &n->engine->file.card;
    EW_CHECK(!o->plain && !o->reference, EW_ERR_USAGE,
             "%s: is a compiled engine; options that change a network do not apply", s->name);
    s->g = n->graph;
    s->p = ew_context_plan(n->context);
    s->form = "engine";
    s->facts = c->facts;
    s->precision = c->precision;
    s->batch = ew_max_i64(c->batch_min, o->net.batch);
    describe(s);
    /* Unpacked weights stay mapped from the file; only packed ones are in memory. */
    s->weight_bytes = 0;
    for (int i = 0; i < n->engine->n_packed; i++)
        s->weight_bytes += (int64_t)n->engine->packed[i].bytes;
    return EW_OK;
}

/* ---- Networks ---- */

/* "int8" if the graph has 8-bit weights, as quantised files do. */
static const char *precision_of(const struct ew_graph *g)
{
    for (int v = 0; v < g->n_values; v++)
        if (g->values[v].kind != EW_VALUE_ACT && g->values[v].t.dtype == EW_S8 &&
            g->values[v].t.shape.rank >= 2)
            return "int8";
    return "fp32";
}

static ew_err one_image_facts(const struct ew_graph *g, struct ew_facts *out)
{
    struct ew_graph *one;
    EW_TRY(ew_graph_clone(g, &one));
    ew_err e = ew_graph_set_batch(one, 1);
    if (e == EW_OK)
        e = ew_graph_facts(one, out);
    ew_graph_free(one);
    return e;
}

ew_err ew_side_take(struct ew_graph *g, const char *name, const struct ew_side_opts *o,
                    struct ew_side *out)
{
    const struct ew_plan_opts po = {.mode = EW_PLAN_INFER,
                                    .optimize = !o->plain && !o->reference,
                                    .tuner = o->tuner,
                                    .backend = {.threads = o->threads, .reference = o->reference}};
    *out = (struct ew_side){.name = name,
                            .g = g,
                            .precision = precision_of(g),
                            .form = o->reference ? "reference"
                                    : o->plain   ? "plain graph"
                                                 : "network"};
    out->batch = ew_graph_images(g);
    EW_TRY(one_image_facts(g, &out->facts));
    EW_TRY(ew_plan_compile(g, &po, &out->p));
    describe(out);
    return EW_OK;
}

ew_err ew_side_load(const char *what, const struct ew_side_opts *o, struct ew_side *out)
{
    const struct ew_network_open_opts how = {
        .opts = o->net, .seed = 1, .engines = true, .threads = o->threads};
    struct ew_network n;
    *out = (struct ew_side){.name = what};
    ew_err e = ew_network_open(what, &how, &n);
    if (e == EW_OK && !n.engine)
        e = ew_side_take(ew_network_take_graph(&n), what, o, out);
    out->network = n;
    out->file_bytes = n.file_bytes;
    out->prep = n.card.prep;
    return e == EW_OK && n.engine ? take_engine(o, out) : e;
}

/* ---- Memory ---- */

#define RUNS 3

struct resident_call {
    const char *what;
    const struct ew_side_opts *o;
};

static void resident_here(void *arg, void *out)
{
    const struct resident_call *c = arg;
    struct ew_side s;
    int64_t bytes = 0;
    ew_err e = ew_side_load(c->what, c->o, &s);
    for (int i = 0; e == EW_OK && i < RUNS; i++)
        e = ew_plan_run(s.p);
    if (e == EW_OK)
        bytes = ew_bench_resident();
    ew_side_fini(&s);
    memcpy(out, &bytes, sizeof(bytes));
}

int64_t ew_side_resident(const char *what, const struct ew_side_opts *o)
{
    struct resident_call call = {what, o};
    int64_t bytes = 0;
    return ew_spawn_function(resident_here, &call, &bytes, sizeof(bytes)) == EW_OK ? bytes : 0;
}

/* ---- Power ---- */

#define POLL_NS 100000000LL

ew_err ew_side_power(struct ew_side *s, struct ew_power_meter *m, double seconds,
                     struct ew_bench_power *out)
{
    int64_t runs = 0;
    for (int i = 0; i < RUNS; i++)
        EW_TRY(ew_plan_run(s->p));
    ew_power_meter_begin(m);
    const int64_t start = ew_clock_ns(), until = start + (int64_t)(seconds * 1e9);
    int64_t now = start;
    for (int64_t polled = start; now < until; now = ew_clock_ns(), runs++) {
        EW_TRY(ew_plan_run(s->p));
        if (now - polled < POLL_NS)
            continue;
        ew_power_meter_poll(m);
        polled = now;
    }
    EW_TRY(ew_power_meter_end(m, out));
    out->images_per_s = (double)(runs * s->batch) * 1e9 / (double)(now - start);
    return EW_OK;
}
