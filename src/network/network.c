/* SPDX-License-Identifier: Apache-2.0 */
/* Opening networks of every kind. */
#include "network/network.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/field.h"
#include "base/text.h"
#include "engine/engine.h"
#include "format/checkpoint.h"
#include "format/xir.h"
#include "model/model.h"
#include "network/trained.h"
#include "network/width_list.h"

bool ew_network_is_xir(const char *what)
{
    return ew_ends_with(what, ".xmodel");
}

bool ew_network_is_file(const char *what)
{
    struct stat st;
    return strchr(what, '/') || ew_ends_with(what, ".onnx") || ew_network_is_xir(what) ||
           ew_ends_with(what, ".ckpt") || ew_ends_with(what, ".ewe") ||
           (stat(what, &st) == 0 && !S_ISDIR(st.st_mode)); /* folders are often named so */
}

static bool in_zoo(const char *what)
{
    const struct ew_family *family;
    const struct ew_variant *v;
    return ew_variant_find(what, &family, &v) == EW_OK;
}

bool ew_network_has_weights(const char *what)
{
    char path[EW_TRAINED_PATH];
    return ew_network_is_file(what) || (!in_zoo(what) && ew_trained_find(what, path));
}

static bool is_scaled(const struct ew_network_opts *o)
{
    return o->width > 0 && (o->width < 1 || o->width > 1);
}

/* `list` has room for EW_MAX_GATES. */
static ew_err model_opts(const struct ew_network_opts *o, int32_t *list, struct ew_model_opts *out)
{
    *out = (struct ew_model_opts){.size = sizeof(struct ew_model_opts),
                                  .height = o->input.v[0],
                                  .width = o->input.n > 1 ? o->input.v[1] : o->input.v[0],
                                  .channels = o->input.n > 2 ? o->input.v[2] : 0,
                                  .classes = o->classes,
                                  .batch = o->batch,
                                  .scale = o->width};
    if (!o->widths)
        return EW_OK;
    EW_CHECK(!is_scaled(o), EW_ERR_USAGE, "--width and --width-list: give one of them");
    EW_TRY(ew_width_list_read(o->widths, list, EW_MAX_GATES, &out->n_filters));
    out->filters = list;
    out->scale = 0;
    return EW_OK;
}

static int64_t batch_of(const struct ew_network_open_opts *how)
{
    return how->opts.batch > 0 ? how->opts.batch : 1;
}

ew_err ew_network_filters(const char *name, const struct ew_network_opts *o, int32_t *filters,
                          int max, int *n)
{
    int32_t list[EW_MAX_GATES];
    struct ew_model_opts m;
    EW_TRY(model_opts(o, list, &m));
    return ew_model_filters(name, &m, filters, max, n);
}

/* Files name their graphs "torch_jit", "main_graph" and the like: the file's own name says more. */
static ew_err name_after(const char *path, struct ew_graph *g)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const int n = dot > base ? (int)(dot - base) : (int)strlen(base);
    const char *name = ew_arena_printf(&g->arena, "%.*s", n, base);
    EW_CHECK(name, EW_ERR_MEMORY, "%s: no memory", path);
    g->name = name;
    return EW_OK;
}

/* What its inputs are, as given, or by the size asked for: a file's images are [N, C, H, W]. */
static ew_err from_onnx(const char *path, const struct ew_network_open_opts *how,
                        struct ew_graph **out)
{
    const struct ew_ints *in = &how->opts.input;
    const int64_t dims[] = {batch_of(how), in->v[2], in->v[0], in->v[1]};
    const struct ew_onnx_input sized = {.rank = in->n ? 4 : -1, .dims = dims};
    struct ew_onnx_opts opts = {.size = sizeof(opts), .inputs = &sized, .n_inputs = 1};
    if (how->n_inputs) {
        opts.inputs = how->inputs;
        opts.n_inputs = how->n_inputs;
    }
    EW_CHECK(in->n == 0 || in->n == 3, EW_ERR_USAGE,
             "%s: the size of a file's input needs all of HxWxC", path);
    EW_TRY(ew_onnx_load(path, &opts, out));
    return name_after(path, *out);
}

/* Its sizes are the file's. */
static ew_err from_xir(const char *path, const struct ew_network_open_opts *how,
                       struct ew_graph **out)
{
    EW_CHECK(how->opts.input.n == 0 && how->n_inputs == 0, EW_ERR_USAGE,
             "%s: the size of an XIR file's input cannot be changed", path);
    EW_TRY(ew_xir_load(path, out));
    return name_after(path, *out);
}

static ew_err from_checkpoint(const char *path, const struct ew_network_open_opts *how,
                              struct ew_network *n)
{
    struct ew_checkpoint c;
    EW_CHECK(how->opts.input.n == 0, EW_ERR_USAGE,
             "%s: the size of a checkpoint's input cannot be changed", path);
    EW_TRY(ew_checkpoint_read(path, &c));
    n->graph = c.graph;
    n->loss = ew_loss_of_options(c.options, c.graph);
    c.graph = NULL;
    ew_checkpoint_fini(&c);
    return EW_OK;
}

/* A network's batch; what is given for its inputs may have fixed it. */
static ew_err set_batch(struct ew_graph *g, int64_t batch)
{
    EW_TRY(ew_graph_set_batch(g, batch));
    const struct ew_shape *s = g->n_inputs ? &g->values[g->inputs[0]].t.shape : NULL;
    EW_CHECK(batch == 1 || !s || s->rank == 0 || s->dim[0] == batch, EW_ERR_ARG,
             "its batch is fixed at %lld: export it with an open one (PyTorch: dynamic_axes)",
             (long long)s->dim[0]);
    return EW_OK;
}

/* ---- Kinds ---- */

static ew_err open_zoo(const struct ew_network_open_opts *how, struct ew_network *n)
{
    int32_t list[EW_MAX_GATES];
    struct ew_model_opts m;
    EW_TRY(model_opts(&how->opts, list, &m));
    const ew_err e = ew_model_build(n->what, &m, &n->graph);
    if (e != EW_OK)
        return how->opts.widths ? ew_fail_in(e, "%s", how->opts.widths) : e;
    if (how->shapes)
        return EW_OK;
    n->random = true;
    EW_TRY(ew_image_card_random(n->graph, true));
    return ew_model_init(n->what, how->seed, n->graph);
}

static ew_err open_engine(const struct ew_network_open_opts *how, struct ew_network *n)
{
    const struct ew_network_opts *o = &how->opts;
    EW_CHECK(how->engines, EW_ERR_USAGE, "%s: is an engine, which info, run, eval and bench take",
             n->what);
    EW_CHECK(o->input.n == 0 && o->classes == 0 && !o->widths, EW_ERR_USAGE,
             "%s: is a compiled engine; options that change a network do not apply", n->what);
    EW_TRY(ew_engine_load(n->what, &n->engine));
    EW_TRY(ew_context_new(n->engine, how->threads, &n->context));
    const struct ew_engine_card *c = &n->engine->file.card;
    if (c->batch_max > c->batch_min || batch_of(how) > 1)
        EW_TRY(ew_context_set_batch(n->context, ew_max_i64(batch_of(how), c->batch_min)));
    n->graph = ew_context_graph(n->context);
    n->card =
        (struct ew_image_card){.prep = c->prep, .classes = c->classes, .n_classes = c->n_classes};
    return EW_OK;
}

/* A file has its own classes and widths. */
static ew_err open_graph_file(const struct ew_network_open_opts *how, struct ew_network *n)
{
    const struct ew_network_opts *o = &how->opts;
    const bool checkpoint = n->kind == EW_NETWORK_CHECKPOINT;
    EW_CHECK(o->classes == 0, EW_ERR_USAGE, "%s: --classes is for networks of the zoo", n->what);
    EW_CHECK(!is_scaled(o), EW_ERR_USAGE, "%s: --width is for networks of the zoo", n->what);
    EW_CHECK(!o->widths, EW_ERR_USAGE, "%s: --width-list is for networks of the zoo", n->what);
    EW_CHECK(checkpoint || !ew_ends_with(n->what, ".ckpt"), EW_ERR_FORMAT, "%s: not a checkpoint",
             n->what);
    EW_CHECK(!ew_ends_with(n->what, ".ewe"), EW_ERR_FORMAT, "%s: not an engine file", n->what);
    EW_TRY(checkpoint                  ? from_checkpoint(n->what, how, n)
           : n->kind == EW_NETWORK_XIR ? from_xir(n->what, how, &n->graph)
                                       : from_onnx(n->what, how, &n->graph));
    if (how->n_inputs == 0)
        EW_TRY(ew_fail_in(set_batch(n->graph, batch_of(how)), "%s", n->what));
    EW_TRY(ew_fail_in(ew_image_card_get(n->graph, &n->arena, &n->card), "%s", n->what));
    n->random = n->card.random;
    return EW_OK;
}

static ew_err open_file(const struct ew_network_open_opts *how, struct ew_network *n)
{
    struct stat st;
    EW_CHECK(stat(n->what, &st) == 0, EW_ERR_IO, "%s: %s", n->what, strerror(errno));
    n->file_bytes = (int64_t)st.st_size;
    n->kind = ew_engine_file_is(n->what)   ? EW_NETWORK_ENGINE
              : ew_checkpoint_is(n->what)  ? EW_NETWORK_CHECKPOINT
              : ew_network_is_xir(n->what) ? EW_NETWORK_XIR
                                           : EW_NETWORK_ONNX;
    return n->kind == EW_NETWORK_ENGINE ? open_engine(how, n) : open_graph_file(how, n);
}

#define TYPING_ERROR 2 /* edits */

/* Fails for a folder; that of a training run has a network in it. */
static ew_err refuse_folder(const char *name)
{
    struct stat st;
    char best[EW_TRAINED_PATH];
    snprintf(best, sizeof(best), "%s/best.ckpt", name);
    EW_CHECK(stat(best, &st) != 0, EW_ERR_ARG, "%s: is a folder; its network is %s", name, best);
    EW_CHECK(stat(name, &st) != 0 || !S_ISDIR(st.st_mode), EW_ERR_ARG,
             "%s: is a folder, not a network", name);
    return EW_OK;
}

/* A trained network that is listed, or lies in the user's folder.  A name that is neither is taken
 * for one of the zoo, whose message names the nearest. */
static ew_err open_trained(const struct ew_network_open_opts *how, struct ew_network *n)
{
    char path[EW_TRAINED_PATH];
    const char *name = n->what;
    const struct ew_trained *list;
    int listed;
    if (!ew_trained_find(name, path)) {
        EW_TRY(refuse_folder(name));
        EW_TRY(ew_trained_list(&n->arena, &list, &listed));
        for (int i = 0; i < listed; i++) {
            EW_CHECK(strcmp(list[i].name, name) != 0, EW_ERR_NOT_FOUND,
                     "%s is not stored here yet; 'edgewise models get %s' fetches it", name, name);
            EW_CHECK(ew_edit_distance(list[i].name, name) > TYPING_ERROR, EW_ERR_NOT_FOUND,
                     "no network is called %.80s; did you mean %s?", name, list[i].name);
        }
        return open_zoo(how, n);
    }
    n->what = ew_arena_strdup(&n->arena, path);
    EW_CHECK(n->what, EW_ERR_MEMORY, "no memory");
    EW_TRY(open_file(how, n));
    EW_TRY(ew_trained_card(name, &n->arena, &n->card));
    return n->kind == EW_NETWORK_ENGINE ? EW_OK : ew_image_card_put(n->graph, &n->card);
}

/* ---- Life ---- */

ew_err ew_network_open(const char *what, const struct ew_network_open_opts *how,
                       struct ew_network *out)
{
    *out = (struct ew_network){.what = what};
    ew_arena_init(&out->arena);
    EW_CHECK(how->opts.input.n <= 3, EW_ERR_USAGE, "--input: takes H, HxW or HxWxC, got %d numbers",
             (int)how->opts.input.n);
    if (ew_network_is_file(what))
        return open_file(how, out);
    return in_zoo(what) ? open_zoo(how, out) : open_trained(how, out);
}

void ew_network_close(struct ew_network *n)
{
    if (!n->engine)
        ew_graph_free(n->graph);
    ew_context_free(n->context);
    ew_engine_free(n->engine);
    ew_arena_fini(&n->arena);
    *n = (struct ew_network){0};
}

struct ew_graph *ew_network_take_graph(struct ew_network *n)
{
    struct ew_graph *g = n->graph;
    EW_ASSERT(!n->engine);
    n->graph = NULL;
    return g;
}
