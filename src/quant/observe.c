/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a network's values over the calibration images. */
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "edgewise.h"
#include "graph/ops.h"
#include "graph/readers.h"
#include "quant/quant_impl.h"

void ew_quant_variant_fini(struct ew_quant_variant *v)
{
    ew_graph_free(v->g);
    ew_graph_free(v->parent);
    ew_arena_fini(&v->arena);
    *v = (struct ew_quant_variant){0};
}

/* True if the only use of the value is a relu or clip, so that it is never stored. */
static bool is_inner(const struct ew_graph *g, const struct ew_readers *r, int value)
{
    const int reader = ew_readers_only(r, value);
    const struct ew_op *op = reader < 0 ? NULL : g->nodes[reader].op;
    return op == &ew_op_relu || op == &ew_op_clip;
}

static ew_err choose_values(struct ew_graph *g, int *values, int *n)
{
    EW_CLEANUP(ew_readers_free_ptr) struct ew_readers *r = NULL;
    EW_TRY(ew_readers_new(g, &r));
    *n = 0;
    for (int v = 0; v < g->n_values; v++) {
        const struct ew_value *x = &g->values[v];
        if (!ew_value_is_weight(x) && x->t.dtype == EW_F32 && !x->t.data &&
            ew_readers_count(r, v) > 0 && !is_inner(g, r, v))
            values[(*n)++] = v;
    }
    return EW_OK;
}

/* Runs all images through the calibrator, once per pass. */
static ew_err feed(const struct ew_quant_job *job, struct ew_loader *l, struct ew_calibrator *c,
                   const char *what)
{
    struct ew_progress bar;
    const int passes = ew_calibrator_passes(c);
    ew_progress_begin(&bar, job->talk, what, passes * ew_loader_samples(l));
    ew_err e = EW_OK;
    int64_t done = 0;
    for (int pass = 0; e == EW_OK && pass < passes; pass++) {
        ew_calibrator_start(c, pass);
        e = ew_loader_start(l, 0, 0);
        const struct ew_batch *b = NULL;
        while (e == EW_OK && (e = ew_loader_next(l, &b)) == EW_OK && b) {
            if (b->n > 0)
                e = ew_calibrator_feed(c, b->images, b->n);
            done += b->n;
            ew_loader_release(l, b);
            ew_progress_update(&bar, done);
        }
    }
    ew_progress_end(&bar);
    return e;
}

static const float *keep_floats(struct ew_arena *a, const float *x, int64_t n)
{
    float *copy = ew_arena_alloc(a, (size_t)n * sizeof(*copy));
    if (copy)
        memcpy(copy, x, (size_t)n * sizeof(*copy));
    return copy;
}

static ew_err collect(const struct ew_calibrator *c, const int *values, int n,
                      struct ew_quant_variant *v)
{
    for (int i = 0; i < v->g->n_values; i++)
        v->ranges[i] = (struct ew_range){.lo = 1, .hi = -1};
    for (int i = 0; i < n; i++) {
        struct ew_value_range r;
        EW_TRY(ew_calibrator_range(c, i, &r));
        v->ranges[values[i]] = (struct ew_range){r.lo, r.hi};
        v->positions[values[i]] = r.position;
        v->means[values[i]] = keep_floats(&v->arena, r.mean, r.channels);
        v->peaks[values[i]] = keep_floats(&v->arena, r.peak, r.channels);
    }
    EW_CHECK(!v->arena.failed, EW_ERR_MEMORY, "no memory for the statistics of %d values", n);
    return EW_OK;
}

static ew_err observe(const struct ew_quant_job *job, const char *what, int *values,
                      struct ew_quant_variant *v)
{
    const struct ew_calibrate_opts o = {.method = job->opts.method,
                                        .percentile = job->opts.percentile,
                                        .positions = job->opts.scheme == EW_QUANTIZE_POW2,
                                        .backend = {.threads = job->opts.threads}};
    struct ew_calibrator *c = NULL;
    struct ew_loader *l = NULL;
    int n;
    EW_TRY(choose_values(v->g, values, &n));
    struct ew_loader_opts lo = job->calibration;
    lo.batch = EW_QUANT_BATCH;
    ew_err e = ew_loader_open(&lo, &l);
    if (e == EW_OK)
        e = ew_calibrator_new(v->g, values, n, &o, &c);
    if (e == EW_OK)
        e = feed(job, l, c, what);
    if (e == EW_OK)
        e = collect(c, values, n, v);
    if (l)
        v->images = ew_loader_samples(l);
    ew_calibrator_free(c);
    ew_loader_close(l);
    return e;
}

ew_err ew_quant_observe(const struct ew_quant_job *job, const struct ew_graph *g, const char *what,
                        struct ew_quant_variant *out)
{
    *out = (struct ew_quant_variant){0};
    ew_arena_init(&out->arena);
    EW_TRY(ew_graph_clone(g, &out->g));
    EW_TRY(ew_graph_need_batch(out->g, EW_QUANT_BATCH));
    EW_TRY(ew_quantize_prepare(out->g));
    const size_t n = (size_t)out->g->n_values;
    out->ranges = ew_arena_array(&out->arena, n, sizeof(*out->ranges));
    out->positions = ew_arena_array(&out->arena, n, sizeof(*out->positions));
    out->means = ew_arena_array(&out->arena, n, sizeof(*out->means));
    out->peaks = ew_arena_array(&out->arena, n, sizeof(*out->peaks));
    EW_CLEANUP(ew_free_ptr) int *values = calloc(n + 1, sizeof(*values));
    EW_CHECK(values && !out->arena.failed, EW_ERR_MEMORY, "no memory for ranges");
    return observe(job, what, values, out);
}
