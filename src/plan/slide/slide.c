/* SPDX-License-Identifier: Apache-2.0 */
/* Kept features of a sliding window: ring buffers of time positions, indexed by frame. */
#include "plan/slide/slide.h"

#include <stdlib.h>
#include <string.h>

#include "compress/slide_graph.h"

/* Ring buffer of the time positions of one kept value. */
struct ring {
    int64_t slots;
    size_t outer, inner; /* a position is `outer` runs of `inner` bytes */
    char *data;          /* [slots][outer][inner] */
};

struct ew_slide {
    struct ew_slide_graph graphs;
    struct ew_plan *full, *step; /* full: freed after the first windows */
    struct ring *rings;          /* by kept value */
    struct ew_tensor window;
    int64_t windows, warm; /* windows run so far; number that must run in full */
    double share;
};

static size_t span(const struct ew_shape *s, int from, int to)
{
    size_t n = 1;
    for (int i = from; i < to; i++)
        n *= (size_t)s->dim[i];
    return n;
}

/* ---- Access to positions ---- */

static char *slot_of(const struct ring *r, const struct ew_slide_kept *k, int64_t start, int64_t t)
{
    const int64_t at = (start + t * k->step) / k->unit % r->slots;
    return r->data + (size_t)at * r->outer * r->inner;
}

/* Copies position i of `count` in a tensor to the slot (store), or from it. */
static void move(const struct ring *r, char *tensor, int64_t count, int64_t i, char *slot,
                 bool store)
{
    for (size_t o = 0; o < r->outer; o++) {
        char *at = tensor + (o * (size_t)count + (size_t)i) * r->inner;
        memcpy(store ? slot + o * r->inner : at, store ? at : slot + o * r->inner, r->inner);
    }
}

/* Stores positions [from, end) of the current window; the tensor begins at position `first`. */
static void store(const struct ew_slide *s, int kept, const struct ew_tensor *y, int64_t from,
                  int64_t first)
{
    const struct ew_slide_kept *k = &s->graphs.kept[kept];
    const struct ring *r = &s->rings[kept];
    const int64_t start = s->windows * s->graphs.hop;
    for (int64_t t = from; t < k->end; t++)
        move(r, y->data, y->shape.dim[k->axis], t - first, slot_of(r, k, start, t), true);
}

static void load_bands(const struct ew_slide *s)
{
    const int64_t start = s->windows * s->graphs.hop;
    for (int i = 0; i < s->graphs.n_bands; i++) {
        const struct ew_slide_band *b = &s->graphs.bands[i];
        const struct ring *r = &s->rings[b->kept];
        struct ew_tensor *x = ew_plan_input(s->step, b->input);
        for (int64_t j = 0; j < b->count; j++)
            move(r, x->data, b->count, j, slot_of(r, &s->graphs.kept[b->kept], start, b->first + j),
                 false);
    }
}

/* ---- Runs ---- */

static ew_err run_full(struct ew_slide *s)
{
    struct ew_tensor *x = ew_plan_input(s->full, 0);
    memcpy(x->data, s->window.data, ew_tensor_bytes(x));
    EW_TRY(ew_plan_run(s->full));
    for (int i = 0; i < s->graphs.n_kept; i++)
        store(s, i, ew_plan_output(s->full, s->graphs.kept[i].full), s->graphs.kept[i].lo, 0);
    return EW_OK;
}

/* Copies the last `hop` frames of the window to the step plan's input. */
static void load_frames(const struct ew_slide *s)
{
    const struct ew_slide_graph *g = &s->graphs;
    struct ew_tensor *x = ew_plan_input(s->step, 0);
    const struct ew_shape *shape = &s->window.shape;
    const size_t inner = span(shape, g->axis + 1, shape->rank) * ew_dtype_size(x->dtype);
    const size_t whole = (size_t)g->frames * inner, part = (size_t)g->hop * inner;
    for (size_t o = 0; o < span(shape, 0, g->axis); o++)
        memcpy((char *)x->data + o * part, (const char *)s->window.data + (o + 1) * whole - part,
               part);
}

static ew_err run_step(struct ew_slide *s)
{
    load_frames(s);
    load_bands(s);
    EW_TRY(ew_plan_run(s->step));
    for (int i = 0; i < s->graphs.n_kept; i++) {
        const struct ew_slide_kept *k = &s->graphs.kept[i];
        store(s, i, ew_plan_output(s->step, k->part), k->hi, k->hi - k->lo);
    }
    return EW_OK;
}

ew_err ew_slide_run(struct ew_slide *s)
{
    const bool whole = s->windows < s->warm;
    if (!whole && s->full) {
        ew_plan_free(s->full);
        s->full = NULL;
    }
    EW_TRY(whole ? run_full(s) : run_step(s));
    s->windows++;
    return EW_OK;
}

struct ew_tensor *ew_slide_input(struct ew_slide *s)
{
    return &s->window;
}

const struct ew_tensor *ew_slide_output(const struct ew_slide *s, int i)
{
    return ew_plan_output(s->full ? s->full : s->step, i);
}

double ew_slide_share(const struct ew_slide *s)
{
    return s->share;
}

/* ---- Making one ---- */

static ew_err new_rings(struct ew_slide *s)
{
    const struct ew_slide_graph *g = &s->graphs;
    s->rings = calloc((size_t)g->n_kept, sizeof(*s->rings));
    EW_CHECK(s->rings, EW_ERR_MEMORY, "no memory for kept features");
    for (int i = 0; i < g->n_kept; i++) {
        const struct ew_slide_kept *k = &g->kept[i];
        const struct ew_tensor *y = &g->full->values[g->full->outputs[k->full]].t;
        struct ring *r = &s->rings[i];
        r->slots = k->frames * k->step / k->unit; /* of all windows that overlap */
        r->outer = span(&y->shape, 0, k->axis);
        r->inner = span(&y->shape, k->axis + 1, y->shape.rank) * ew_dtype_size(y->dtype);
        s->warm = ew_max_i64(s->warm, k->step / k->unit);
        r->data = calloc((size_t)r->slots * r->outer, r->inner);
        EW_CHECK(r->data, EW_ERR_MEMORY, "no memory for %lld positions of kept features",
                 (long long)r->slots);
    }
    return EW_OK;
}

/* Warm-up: the first run is slow everywhere. */
static ew_err first_run(struct ew_plan *p, int inputs)
{
    for (int i = 0; i < inputs; i++)
        memset(ew_plan_input(p, i)->data, 0, ew_tensor_bytes(ew_plan_input(p, i)));
    return ew_plan_run(p);
}

static ew_err new_plans(struct ew_slide *s, const struct ew_plan_opts *o)
{
    struct ew_cost whole, part;
    EW_TRY(ew_graph_cost(s->graphs.full, &whole, NULL));
    EW_TRY(ew_graph_cost(s->graphs.step, &part, NULL));
    s->share = whole.macs > 0 ? (double)part.macs / (double)whole.macs : 1;
    struct ew_plan_opts opts = *o;
    opts.consume = false; /* both plans read the weights */
    EW_TRY(ew_plan_compile(s->graphs.full, &opts, &s->full));
    EW_TRY(ew_plan_compile(s->graphs.step, &opts, &s->step));
    s->window = *ew_plan_input(s->full, 0);
    s->window.data = calloc(1, ew_tensor_bytes(&s->window));
    EW_CHECK(s->window.data, EW_ERR_MEMORY, "no memory for a window");
    EW_TRY(first_run(s->full, s->graphs.full->n_inputs));
    return first_run(s->step, s->graphs.step->n_inputs);
}

ew_err ew_slide_new(const struct ew_graph *g, int64_t hop, const struct ew_plan_opts *o,
                    struct ew_slide **out)
{
    *out = NULL;
    struct ew_slide *s = calloc(1, sizeof(*s));
    EW_CHECK(s, EW_ERR_MEMORY, "no memory for a sliding window");
    ew_err e = ew_slide_graph_new(g, hop, o->optimize, &s->graphs);
    if (e == EW_OK && s->graphs.step) {
        e = new_rings(s);
        if (e == EW_OK)
            e = new_plans(s, o);
    }
    if (e != EW_OK || !s->graphs.step) {
        ew_slide_free(s);
        return e;
    }
    *out = s;
    return EW_OK;
}

void ew_slide_free(struct ew_slide *s)
{
    if (!s)
        return;
    ew_plan_free(s->full);
    ew_plan_free(s->step);
    for (int i = 0; s->rings && i < s->graphs.n_kept; i++)
        free(s->rings[i].data);
    free(s->rings);
    free(s->window.data);
    ew_slide_graph_free(&s->graphs);
    free(s);
}
