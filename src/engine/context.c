/* SPDX-License-Identifier: Apache-2.0 */
/* Execution contexts of an engine.
 *
 * A context has a plan for every batch that it was asked for.  Only one is active, so they share
 * one block of memory and one thread pool; weights are the engine's. */
#include <stdlib.h>

#include "base/num.h"
#include "base/order_stats.h"
#include "engine/engine.h"
#include "format/image_input.h"
#include "format/pixels.h"

struct batch_plan {
    struct ew_graph *g;
    struct ew_plan *p;
};

struct ew_context {
    const struct ew_engine *e;
    struct ew_backend *be;
    struct ew_memory *block;    /* sized for batch_max; untouched pages take no memory */
    struct batch_plan *batches; /* by batch - batch_min; p NULL: not compiled yet */
    struct batch_plan *now;
    bool started;                  /* an asynchronous run is in flight */
    struct ew_image_input *images; /* made for the first image */
    struct ew_bytes frame;         /* conversion buffer of ew_context_put_pixels */
};

/* ---- Life ---- */

static ew_err compile(struct ew_context *c, int64_t batch, struct batch_plan *out)
{
    struct ew_plan_given given;
    struct ew_plan_opts o;
    ew_engine_plan_opts(c->e, batch, &given, &o);
    given.backend = c->be;
    given.block = c->block;
    EW_TRY(ew_engine_graph_at(c->e, batch, &out->g));
    const ew_err err = ew_plan_compile(out->g, &o, &out->p);
    if (err != EW_OK) {
        ew_graph_free(out->g);
        *out = (struct batch_plan){0};
    }
    return err;
}

static ew_err check_idle(const struct ew_context *c)
{
    EW_CHECK(!c->started, EW_ERR_ARG, "engine %s: a run that was started was not waited for",
             c->e->file.card.name);
    return EW_OK;
}

EW_API ew_err ew_context_set_batch(struct ew_context *c, int64_t batch)
{
    EW_NEED(c);
    const struct ew_engine_card *card = &c->e->file.card;
    EW_TRY(check_idle(c));
    EW_CHECK(batch >= card->batch_min && batch <= card->batch_max, EW_ERR_ARG,
             "batch %lld, engine %s is for %lld to %lld", (long long)batch, card->name,
             (long long)card->batch_min, (long long)card->batch_max);
    struct batch_plan *b = &c->batches[batch - card->batch_min];
    if (!b->p)
        EW_TRY(compile(c, batch, b));
    c->now = b;
    return EW_OK;
}

static ew_err take_memory(struct ew_context *c)
{
    const struct ew_engine_card *card = &c->e->file.card;
    c->batches = calloc((size_t)(card->batch_max - card->batch_min) + 1, sizeof(*c->batches));
    EW_CHECK(c->batches, EW_ERR_MEMORY, "engine %s: no memory for a context", card->name);
    size_t bytes = 0;
    EW_TRY(ew_engine_block(c->e, c->be, &bytes));
    return ew_fail_in(ew_backend_alloc(c->be, bytes, &c->block), "engine %s", card->name);
}

static ew_err start(struct ew_context *c, int threads)
{
    const struct ew_engine_card *card = &c->e->file.card;
    const struct ew_backend_opts o = {.threads = threads ? threads : (int)card->threads};
    EW_TRY(ew_backend_open(&o, &c->be));
    EW_TRY(take_memory(c));
    return ew_context_set_batch(c, card->batch_min);
}

EW_API ew_err ew_context_new(const struct ew_engine *e, int threads, struct ew_context **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(e);
    struct ew_context *c = calloc(1, sizeof(*c));
    EW_CHECK(c, EW_ERR_MEMORY, "engine %s: no memory for a context", e->file.card.name);
    c->e = e;
    const ew_err err = start(c, threads);
    if (err != EW_OK)
        ew_context_free(c);
    else
        *out = c;
    return err;
}

EW_API void ew_context_free(struct ew_context *c)
{
    if (!c)
        return;
    const struct ew_engine_card *card = &c->e->file.card;
    for (int64_t i = 0; c->batches && i <= card->batch_max - card->batch_min; i++) {
        ew_plan_free(c->batches[i].p);
        ew_graph_free(c->batches[i].g);
    }
    ew_backend_free(c->block);
    ew_image_input_free(c->images);
    free(c->frame.at);
    ew_backend_close(c->be);
    free(c->batches);
    free(c);
}

struct ew_plan *ew_context_plan(struct ew_context *c)
{
    return c->now->p;
}

const struct ew_engine_card *ew_context_card(const struct ew_context *c)
{
    return &c->e->file.card;
}

struct ew_graph *ew_context_graph(struct ew_context *c)
{
    return c->now->g;
}

/* ---- In and out ---- */

EW_API void *ew_context_input(struct ew_context *c, int i, size_t *bytes)
{
    if (!c)
        return NULL;
    if (i < 0 || i >= c->now->g->n_inputs)
        return NULL;
    const struct ew_tensor *t = ew_plan_input(c->now->p, i);
    if (bytes)
        *bytes = ew_tensor_bytes(t);
    return t->data;
}

EW_API const void *ew_context_output(const struct ew_context *c, int i, size_t *bytes)
{
    if (!c)
        return NULL;
    if (i < 0 || i >= c->now->g->n_outputs)
        return NULL;
    const struct ew_tensor *t = ew_plan_output(c->now->p, i);
    if (bytes)
        *bytes = ew_tensor_bytes(t);
    return t->data;
}

EW_API ew_err ew_context_input_port(const struct ew_context *c, int i, struct ew_port *out)
{
    EW_C_LOCALE;
    EW_NEED(c);
    EW_NEED(out);
    return ew_port_of_input(c->now->g, i, out);
}

EW_API ew_err ew_context_output_port(const struct ew_context *c, int i, struct ew_port *out)
{
    EW_C_LOCALE;
    EW_NEED(c);
    EW_NEED(out);
    return ew_port_of_output(c->now->g, i, out);
}

static ew_err open_images(struct ew_context *c)
{
    const struct ew_engine_card *card = &c->e->file.card;
    EW_TRY(check_idle(c));
    EW_CHECK(c->now->g->n_inputs > 0, EW_ERR_ARG, "engine %s has no input", card->name);
    if (c->images)
        return EW_OK;
    const struct ew_value *v = &c->now->g->values[c->now->g->inputs[0]];
    return ew_image_input_new(v, &card->prep, card->name, &c->images);
}

EW_API ew_err ew_context_read_image(struct ew_context *c, int64_t index, const char *path)
{
    EW_C_LOCALE;
    EW_NEED(c);
    EW_NEED(path);
    EW_TRY(open_images(c));
    return ew_image_input_read(c->images, path, index, ew_plan_input(c->now->p, 0));
}

EW_API ew_err ew_context_put_pixels(struct ew_context *c, int64_t index, const struct ew_pixels *p)
{
    EW_NEED(c);
    EW_NEED(p);
    struct ew_sample image;
    EW_TRY(open_images(c));
    EW_TRY(ew_pixels_sample(p, &c->frame, &image));
    return ew_image_input_put(c->images, &image, index, ew_plan_input(c->now->p, 0));
}

/* ---- Running ---- */

EW_API ew_err ew_context_run(struct ew_context *c)
{
    EW_NEED(c);
    EW_TRY(check_idle(c));
    return ew_plan_run(c->now->p);
}

EW_API ew_err ew_context_start(struct ew_context *c)
{
    EW_NEED(c);
    EW_TRY(check_idle(c));
    EW_TRY(ew_plan_start(c->now->p));
    c->started = true;
    return EW_OK;
}

EW_API ew_err ew_context_wait(struct ew_context *c)
{
    EW_NEED(c);
    EW_CHECK(c->started, EW_ERR_ARG, "engine %s: no run is under way", c->e->file.card.name);
    c->started = false;
    return ew_plan_wait(c->now->p, NULL);
}

EW_API ew_err ew_context_profile(struct ew_context *c, int runs, struct ew_step_time *steps,
                                 int max, int *n)
{
    EW_C_LOCALE;
    EW_NEED(c);
    EW_NEED(n);
    EW_CHECK(steps || max <= 0, EW_ERR_ARG, "%s: steps is NULL", __func__);
    struct ew_plan *p = c->now->p;
    *n = ew_plan_step_count(p);
    EW_TRY(check_idle(c));
    EW_CHECK(runs >= 1 && runs <= 1000000, EW_ERR_ARG, "%d runs", runs);
    /* [step][run], to sort each step's times */
    EW_CLEANUP(ew_free_ptr) int64_t *all = calloc((size_t)*n * (size_t)runs + 1, sizeof(*all));
    EW_CLEANUP(ew_free_ptr) int64_t *one = calloc((size_t)*n + 1, sizeof(*one));
    EW_CHECK(all && one, EW_ERR_MEMORY, "no memory to profile %d steps", *n);
    for (int i = 0; i < runs; i++) {
        EW_TRY(ew_plan_run_timed(p, one));
        for (int k = 0; k < *n; k++)
            all[(size_t)k * (size_t)runs + (size_t)i] = one[k];
    }
    for (int k = 0; k < *n && k < max; k++) {
        struct ew_step_info s;
        ew_plan_step_info(p, k, &s);
        int64_t *times = all + (size_t)k * (size_t)runs;
        ew_sort_i64(times, runs);
        steps[k] = (struct ew_step_time){.name = s.name,
                                         .op = s.op ? s.op : "",
                                         .kernel = s.kernel,
                                         .us = 1e-3 * ew_median_i64(times, runs),
                                         .flops = s.flops};
    }
    return EW_OK;
}
