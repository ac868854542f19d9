/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling a network into an engine file.
 *
 * Passes run once, at the largest batch; kernels are chosen at the smallest and reused at every
 * other batch where they are offered, so that all batches read the same packed weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/tune.h"
#include "base/num.h"
#include "base/sized.h"
#include "compress/pass.h"
#include "engine/engine.h"
#include "format/image_card.h"
#include "graph/facts.h"
#include "graph/ops.h"

/* An engine being compiled. */
struct build {
    const struct ew_compile_opts *o;
    struct ew_graph *source; /* the caller's, at batch_min */
    struct ew_arena arena;   /* class names */
    struct ew_engine_file file;
    int n_batches;
    struct planned {
        struct ew_graph *g;
        struct ew_plan *p;
    } * planned;          /* by batch - batch_min: the plan, if it owns packed weights; else NULL */
    const char **choices; /* file.choices */
    struct ew_plan_packed *packed; /* the same list as file.packed */
    int *packed_of;                /* by node: see ew_plan_given */
    struct ew_engine_packed *entries;
    int n_packed, cap_packed, cap_entries;
    bool *absent; /* file.absent */
    struct ew_device_found device;
};

/* ---- The graph ---- */

static ew_err same_outputs(const struct ew_graph *a, const struct ew_graph *b, int64_t batch)
{
    char s[EW_SHAPE_TEXT], t[EW_SHAPE_TEXT];
    for (int i = 0; i < a->n_outputs; i++) {
        const struct ew_value *x = &a->values[a->outputs[i]], *y = &b->values[b->outputs[i]];
        EW_CHECK(ew_shape_equal(&x->t.shape, &y->t.shape), EW_ERR_UNSUPPORTED,
                 "at batch %lld output %s would be %s instead of %s: compile it for one batch",
                 (long long)batch, x->name, ew_shape_text(&y->t.shape, t),
                 ew_shape_text(&x->t.shape, s));
    }
    return EW_OK;
}

/* Checks that the graph after the passes has the right output shapes at every batch. */
static ew_err check_batches(const struct build *b)
{
    const struct ew_engine_card *c = &b->file.card;
    struct ew_graph *x = NULL, *y = NULL;
    ew_err e = ew_graph_clone(b->source, &x);
    if (e == EW_OK)
        e = ew_graph_clone(b->file.graph, &y);
    for (int64_t n = c->batch_min + 1; e == EW_OK && n <= c->batch_max; n++) {
        e = ew_graph_set_batch(x, n);
        if (e == EW_OK)
            e = ew_graph_set_batch(y, n);
        if (e == EW_OK)
            e = same_outputs(x, y, n);
    }
    ew_graph_free(x);
    ew_graph_free(y);
    return e;
}

static bool batch_varies(const struct ew_graph *g)
{
    for (int i = 0; i < g->n_inputs; i++)
        if (g->values[g->inputs[i]].dynamic & 1 && g->values[g->inputs[i]].t.shape.rank)
            return true;
    return false;
}

/* A copy of the graph after all passes, valid for every batch, at batch_min. */
static ew_err make_graph(struct build *b, const struct ew_graph *g)
{
    struct ew_engine_card *c = &b->file.card;
    if (!batch_varies(g) && c->batch_min == 1 &&
        c->batch_max == 1) /* no other batch was asked for */
        c->batch_min = c->batch_max = ew_graph_images(g);
    EW_CHECK(batch_varies(g) ||
                 (c->batch_min == c->batch_max && ew_graph_images(g) == c->batch_min),
             EW_ERR_ARG,
             "the batch of %s is fixed at %lld: export it with an open one (PyTorch: dynamic_axes)",
             g->name, (long long)ew_graph_images(g));
    EW_TRY(ew_graph_clone(g, &b->source));
    EW_TRY(ew_graph_set_batch(b->source, c->batch_min));
    EW_TRY(ew_graph_clone(b->source, &b->file.graph));
    /* not at batch 1, where more shapes coincide than at others: a constant added to every image
     * would look like the output, and a reshape to one row like an identity */
    EW_TRY(ew_graph_set_batch(b->file.graph, c->batch_max));
    EW_TRY(ew_plan_passes(&b->device.passes, b->file.graph));
    EW_TRY(ew_graph_sweep(b->file.graph));
    EW_TRY(ew_graph_set_batch(b->file.graph, c->batch_min));
    return check_batches(b);
}

/* True if the network has integer nodes with 8-bit weights. */
static bool is_int8(const struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        const bool moves = n->op == &ew_op_quantize_linear || n->op == &ew_op_dequantize_linear;
        for (int i = 1; i < n->n_in && !moves; i++) {
            const struct ew_value *v = n->in[i] < 0 ? NULL : &g->values[n->in[i]];
            if (v && v->t.dtype == EW_S8 && v->t.data && v->t.shape.rank >= 2)
                return true;
        }
    }
    return false;
}

static ew_err check_precision(struct build *b)
{
    const char *want = b->o->precision ? b->o->precision : "auto";
    const bool int8 = is_int8(b->file.graph);
    b->file.card.precision = int8 ? "int8" : "fp32";
    EW_CHECK(strcmp(want, "auto") == 0 || strcmp(want, "fp32") == 0 || strcmp(want, "int8") == 0,
             EW_ERR_ARG, "precision %s is none of fp32, int8, auto", want);
    EW_CHECK(strcmp(want, "int8") != 0 || int8, EW_ERR_ARG,
             "%s has no quantised layers: edgewise quantize makes them", b->source->name);
    EW_CHECK(strcmp(want, "fp32") != 0 || !int8, EW_ERR_ARG,
             "%s is quantised: compile the network that it was made from", b->source->name);
    return EW_OK;
}

/* ---- Kernels and packed weights ---- */

static ew_err add_packed(struct build *b, const struct ew_plan_packed *p)
{
    EW_TRY(ew_grow((void **)&b->packed, &b->cap_packed, b->n_packed + 1, sizeof(*b->packed)));
    EW_TRY(ew_grow((void **)&b->entries, &b->cap_entries, b->n_packed + 1, sizeof(*b->entries)));
    b->packed[b->n_packed] = *p;
    b->packed[b->n_packed].next = b->packed_of[p->node];
    b->packed_of[p->node] = b->n_packed;
    b->entries[b->n_packed++] = (struct ew_engine_packed){
        .node = p->node, .kernel = p->kernel, .bytes = p->bytes, .data = p->data};
    return EW_OK;
}

static bool have_packed(const struct build *b, const struct ew_plan_packed *p)
{
    for (int i = b->packed_of[p->node]; i >= 0; i = b->packed[i].next)
        if (b->packed[i].bytes == p->bytes && strcmp(b->packed[i].kernel, p->kernel) == 0)
            return true;
    return false;
}

/* Records the plan's kernels, and its packed weights if `add`; *missing: some were not in the list.
 */
static ew_err note_choices(struct build *b, int row, struct ew_plan *p, bool add, bool *missing)
{
    const int nodes = b->file.graph->n_nodes;
    *missing = false;
    for (int k = 0; k < nodes; k++) {
        struct ew_plan_packed e = {.node = k};
        e.kernel = ew_plan_node_kernel(p, k, &e.data, &e.bytes);
        b->choices[(size_t)row * (size_t)nodes + (size_t)k] = e.kernel;
        if (!e.kernel || !e.bytes || have_packed(b, &e))
            continue;
        *missing = true;
        if (add)
            EW_TRY(add_packed(b, &e));
    }
    return EW_OK;
}

static ew_err compile(const struct build *b, int row, struct ew_tuner *tuner, bool dry,
                      struct planned *out)
{
    const struct ew_plan_given given = {
        .kernels = row ? b->choices : NULL, .packed = b->packed, .packed_of = b->packed_of};
    const struct ew_plan_opts o = {.mode = EW_PLAN_INFER,
                                   .tuner = tuner,
                                   .given = &given,
                                   .dry = dry,
                                   .memory_limit = (size_t)b->o->memory_limit,
                                   .backend = {.threads = b->o->threads}};
    EW_TRY(ew_graph_clone(b->file.graph, &out->g));
    EW_TRY(ew_graph_set_batch(out->g, b->file.card.batch_min + row));
    return ew_plan_compile(out->g, &o, &out->p);
}

static void drop(struct planned *p)
{
    ew_plan_free(p->p);
    ew_graph_free(p->g);
    *p = (struct planned){0};
}

/* Plans one batch.  Beyond the first a dry plan is tried, since usually nothing new is packed. */
static ew_err plan_batch(struct build *b, int row, struct ew_tuner *tuner)
{
    struct planned *kept = &b->planned[row];
    bool missing = true;
    if (row > 0) {
        EW_TRY(compile(b, row, tuner, true, kept));
        EW_TRY(note_choices(b, row, kept->p, false, &missing));
    }
    if (missing) {
        drop(kept);
        EW_TRY(compile(b, row, tuner, false, kept));
        EW_TRY(note_choices(b, row, kept->p, true, &missing));
    }
    struct ew_plan_stats s;
    ew_plan_stats(kept->p, &s);
    b->file.card.block_bytes = ew_max_i64(b->file.card.block_bytes, (int64_t)s.block_bytes);
    if (!missing)
        drop(kept);
    return EW_OK;
}

static ew_err plan_batches(struct build *b)
{
    const struct ew_engine_card *c = &b->file.card;
    const size_t nodes = (size_t)b->file.graph->n_nodes;
    b->n_batches = (int)(c->batch_max - c->batch_min) + 1;
    b->planned = calloc((size_t)b->n_batches, sizeof(*b->planned));
    b->choices = calloc((size_t)b->n_batches * nodes + 1, sizeof(*b->choices));
    b->packed_of = calloc(nodes + 1, sizeof(*b->packed_of));
    EW_CHECK(b->planned && b->choices && b->packed_of, EW_ERR_MEMORY, "no memory to compile %s",
             b->source->name);
    for (size_t k = 0; k < nodes; k++)
        b->packed_of[k] = -1;
    struct ew_tuner *tuner = NULL;
    if (b->o->tune)
        EW_TRY(ew_tuner_open(b->o->tune_cache, &tuner));
    ew_err e = EW_OK;
    for (int row = 0; e == EW_OK && row < b->n_batches; row++)
        e = plan_batch(b, row, tuner);
    ew_tuner_close(tuner);
    return e;
}

/* Finds the weights that all kernels read in packed form only, and so need not be in a compact
 * file. */
static ew_err find_absent(struct build *b)
{
    const struct ew_graph *g = b->file.graph;
    b->absent = calloc((size_t)g->n_values + 1, sizeof(*b->absent));
    EW_CHECK(b->absent, EW_ERR_MEMORY, "no memory to compile %s", b->source->name);
    if (b->n_packed == 0)
        return EW_OK; /* and no plan was kept */
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_in; i++)
            if (g->nodes[k].in[i] >= 0 && ew_plan_node_packs(b->planned[0].p, k, i))
                b->absent[g->nodes[k].in[i]] = true;
    for (int row = 0; row < b->n_batches; row++) /* plans that packed were kept */
        for (int k = 0; b->planned[row].p && k < g->n_nodes; k++)
            for (int i = 0; i < g->nodes[k].n_in; i++)
                if (g->nodes[k].in[i] >= 0 && !ew_plan_node_packs(b->planned[row].p, k, i))
                    b->absent[g->nodes[k].in[i]] = false;
    for (int i = 0; i < g->n_outputs; i++)
        b->absent[g->outputs[i]] = false;
    b->file.absent = b->absent;
    return EW_OK;
}

/* ---- Compile ---- */

/* Fills the image card from the options, else from the network. */
static ew_err fill_images(struct build *b, const struct ew_graph *g)
{
    const struct ew_compile_opts *o = b->o;
    struct ew_engine_card *c = &b->file.card;
    struct ew_image_card card;
    bool scaled = false;
    EW_TRY(ew_image_card_get(g, &b->arena, &card));
    for (int i = 0; i < EW_SAMPLE_CHANNELS; i++)
        scaled |= fabs(o->std[i]) > 0 || isnan(o->std[i]);
    c->prep = card.prep;
    c->prep.resize = o->resize ? o->resize : card.prep.resize;
    c->classes = o->classes ? o->classes : card.classes;
    c->n_classes = o->classes ? o->n_classes : card.n_classes;
    EW_CHECK(c->n_classes >= 0, EW_ERR_ARG, "%d classes", c->n_classes);
    for (int i = 0; i < c->n_classes; i++)
        EW_CHECK(c->classes[i], EW_ERR_ARG, "class %d of %d has no name", i, c->n_classes);
    c->prep.normalised |= scaled;
    for (int i = 0; scaled && i < EW_SAMPLE_CHANNELS; i++) {
        EW_CHECK(o->std[i] > 0 && o->std[i] < 1e30 && o->mean[i] > -1e30 && o->mean[i] < 1e30,
                 EW_ERR_ARG, "channel %d: mean %g, std %g", i, o->mean[i], o->std[i]);
        c->prep.mean[i] = o->mean[i];
        c->prep.std[i] = o->std[i];
    }
    return EW_OK;
}

static ew_err fill_card(struct build *b, const struct ew_graph *g)
{
    const struct ew_compile_opts *o = b->o;
    struct ew_engine_card *c = &b->file.card;
    EW_TRY(ew_backend_probe(NULL, &b->device));
    c->name = g->name;
    c->program = EW_VERSION;
    c->arch = ew_engine_arch();
    c->isa = b->device.target;
    c->kernels = b->device.kernels;
    c->batch_min = o->batch_min ? o->batch_min : 1;
    c->batch_max = o->batch_max ? o->batch_max : c->batch_min;
    c->threads = o->threads;
    EW_CHECK(c->batch_min >= 1 && c->batch_max >= c->batch_min &&
                 c->batch_max - c->batch_min < EW_ENGINE_BATCHES,
             EW_ERR_ARG, "batches %lld to %lld are no range of at most %d", (long long)c->batch_min,
             (long long)c->batch_max, EW_ENGINE_BATCHES);
    EW_CHECK(o->threads >= 0 && o->threads <= 1024, EW_ERR_ARG, "%d threads are out of range",
             o->threads);
    EW_CHECK(o->resize >= EW_RESIZE_COVER && o->resize <= EW_RESIZE_MAX, EW_ERR_ARG,
             "resizing to %lld pixels is out of range", (long long)o->resize);
    return fill_images(b, g);
}

/* Facts of the network before the passes, at batch 1 if it can vary. */
static ew_err fill_facts(struct build *b)
{
    struct ew_graph *one;
    EW_TRY(ew_graph_clone(b->source, &one));
    ew_err e = ew_graph_set_batch(one, 1);
    if (e == EW_OK)
        e = ew_graph_facts(one, &b->file.card.facts);
    ew_graph_free(one);
    return e;
}

static ew_err build(struct build *b, const struct ew_graph *g, const char *path)
{
    int64_t size;
    EW_TRY(fill_card(b, g));
    EW_TRY(make_graph(b, g));
    EW_TRY(fill_facts(b));
    EW_TRY(check_precision(b));
    EW_TRY(plan_batches(b));
    if (b->o->compact)
        EW_TRY(find_absent(b));
    b->file.choices = b->choices;
    b->file.packed = b->entries;
    b->file.n_packed = b->n_packed;
    return ew_engine_file_write(path, &b->file, &size);
}

EW_API ew_err ew_engine_compile(struct ew_graph *g, const struct ew_compile_opts *opts,
                                const char *path)
{
    EW_C_LOCALE;
    EW_NEED(g);
    EW_NEED(path);
    struct ew_compile_opts o;
    EW_TRY(ew_sized_import(opts, &o, sizeof(o)));
    EW_CHECK(o.memory_limit >= 0, EW_ERR_ARG, "a memory limit of %lld bytes",
             (long long)o.memory_limit);
    EW_CHECK(!o.tune || !o.memory_limit, EW_ERR_ARG,
             "a memory limit chooses kernels by what they pack: it is not for tuning");
    struct build b = {.o = &o};
    ew_arena_init(&b.arena);
    const ew_err e = build(&b, g, path);
    for (int i = 0; i < b.n_batches && b.planned; i++)
        drop(&b.planned[i]);
    free(b.planned);
    free(b.choices);
    free(b.packed);
    free(b.packed_of);
    free(b.entries);
    free(b.absent);
    ew_graph_free(b.file.graph);
    ew_graph_free(b.source);
    ew_arena_fini(&b.arena);
    return e;
}
