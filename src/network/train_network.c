/* SPDX-License-Identifier: Apache-2.0 */
/* Preparing networks for training. */
#include "network/train_network.h"

#include <string.h>

#include "base/log.h"
#include "format/checkpoint.h"
#include "graph/ops.h"
#include "model/loss_table.h"
#include "train/adapt.h"

static ew_err open_graph(const struct ew_train_network_opts *how, const char *what,
                         const struct ew_network_opts *o, struct ew_graph **out)
{
    const struct ew_network_open_opts open = {.opts = *o, .seed = how->seed};
    struct ew_network n;
    const ew_err e = ew_network_open(what, &open, &n);
    if (e == EW_OK)
        *out = ew_network_take_graph(&n);
    ew_network_close(&n);
    return e;
}

/* A network of the zoo takes the data's size where that is one and it can, else its own. */
static ew_err build(const struct ew_train_network_opts *how, const struct ew_dataset_info *info,
                    struct ew_graph **out)
{
    struct ew_network_opts n = how->net;
    n.batch = 1;
    if (n.classes == 0)
        n.classes = info->classes;
    if (n.input.n == 0 && info->h > 0) {
        const int64_t h = info->frames ? info->h / info->frames : info->h;
        n.input = (struct ew_ints){3, {h, info->w, info->c}};
        if (open_graph(how, how->what, &n, out) == EW_OK)
            return EW_OK;
        n.input = (struct ew_ints){0};
    }
    return open_graph(how, how->what, &n, out);
}

/* ---- What of a file is not trained as it is there ---- */

/* The node that computes the filter or matrix of a layer from constants alone; -1: none, or it only
 * dequantises. */
static int formula_of(const struct ew_graph *g, const struct ew_node *n)
{
    int v = n->op->layer != EW_LAYER_NONE && n->n_in > 1 ? n->in[1] : -1;
    int first = v >= 0 ? g->values[v].producer : -1;
    for (int steps = 0; v >= 0 && steps <= g->n_nodes; steps++) {
        const int k = g->values[v].producer;
        if (k < 0)
            return g->values[v].kind == EW_VALUE_CONST && ew_dtype_is_float(g->values[v].t.dtype)
                       ? first
                       : -1;
        v = g->nodes[k].n_in > 0 ? g->nodes[k].in[0] : -1;
    }
    return -1;
}

static void tell_formulas(const struct ew_graph *g)
{
    int n = 0;
    const char *one = NULL;
    for (int k = 0; k < g->n_nodes; k++)
        if (formula_of(g, &g->nodes[k]) >= 0 && n++ == 0)
            one = g->nodes[k].name;
    if (n)
        EW_WARN(
            "%s: the weights of %d layer%s (%.100s) are computed from others by a formula: they "
            "stay as they are",
            g->name, n, n == 1 ? "" : "s", one);
}

/* Sum of a hash of each number: equal for the same numbers in any order. */
static uint64_t numbers_of(const struct ew_tensor *t, bool *differ)
{
    const uint32_t *bits = t->data;
    uint64_t sum = 0;
    *differ = false;
    for (int64_t i = 0, n = ew_tensor_count(t); i < n; i++) {
        const uint64_t h = (bits[i] + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
        sum += (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
        *differ = *differ || bits[i] != bits[0];
    }
    return sum;
}

static bool is_matrix(const struct ew_value *v)
{
    return v->kind == EW_VALUE_PARAM && v->t.data && v->t.dtype == EW_F32 && v->t.shape.rank > 1;
}

/* True if `b` is `a` in another order. */
static bool is_turned(const struct ew_tensor *a, const struct ew_tensor *b)
{
    bool differ;
    return ew_tensor_count(a) == ew_tensor_count(b) &&
           memcmp(a->data, b->data, ew_tensor_bytes(a)) != 0 &&
           numbers_of(a, &differ) == numbers_of(b, &differ) && differ;
}

#define MOST_PAIRS 1000

static void tell_tied(const struct ew_graph *g)
{
    int left = MOST_PAIRS;
    for (int i = 0; i < g->n_values; i++)
        for (int j = 0; j < i && is_matrix(&g->values[i]); j++) {
            const struct ew_value *a = &g->values[j], *b = &g->values[i];
            if (!is_matrix(a) || ew_tensor_count(&a->t) != ew_tensor_count(&b->t) || left-- <= 0 ||
                !is_turned(&a->t, &b->t))
                continue;
            EW_WARN("%s: %.100s and %.100s are one weight, once transposed: they are trained apart",
                    g->name, a->name, b->name);
            return;
        }
}

/* ---- Opening ---- */

/* A file's network with its weights, ready for images and scores. */
static ew_err load(const struct ew_train_network_opts *how, const char *path,
                   struct ew_network_opts n, struct ew_graph **out)
{
    n.classes = 0; /* the head is replaced later */
    n.batch = 1;
    if (ew_checkpoint_is(path))
        n.input.n = 0;
    EW_TRY(open_graph(how, path, &n, out));
    EW_TRY(ew_adapt_images(*out));
    if ((*out)->n_outputs > 1)
        EW_WARN("%s: has %d outputs: the first, %.100s, is used, the others are left out",
                (*out)->name, (*out)->n_outputs, (*out)->values[(*out)->outputs[0]].name);
    return ew_adapt_scores(*out);
}

static ew_err prep_of(const struct ew_graph *g, struct ew_preprocess *out)
{
    struct ew_image_card card;
    struct ew_arena a;
    ew_arena_init(&a);
    const ew_err e = ew_image_card_get(g, &a, &card);
    if (e == EW_OK && card.prep.normalised)
        *out = card.prep;
    ew_arena_fini(&a);
    return e;
}

static ew_err copy_weights(const struct ew_train_network_opts *how, struct ew_train_network *t)
{
    struct ew_graph *from = NULL;
    if (!how->init || strcmp(how->init, how->what) == 0)
        return EW_OK;
    ew_err e = load(how, how->init, (struct ew_network_opts){.width = 1}, &from);
    if (e == EW_OK) {
        e = ew_adapt_copy(t->graph, from, &t->copied);
        t->unlike = e != EW_OK;
    }
    if (e == EW_OK)
        e = prep_of(from, &t->prep);
    ew_graph_free(from);
    return e;
}

/* A head for `classes`, where the network's own is for others or --classes is given. */
static ew_err give_head(const struct ew_train_network_opts *how, int64_t classes,
                        struct ew_train_network *t)
{
    if (ew_net_reconstructs(t->graph))
        return EW_OK;
    const struct ew_graph *g = t->graph;
    const struct ew_shape out = g->values[g->outputs[0]].t.shape;
    const bool own = out.rank == 2 && out.dim[1] == classes && how->net.classes == 0;
    t->classes_were = own || out.rank < 1 ? 0 : out.dim[out.rank - 1];
    return ew_adapt_head(t->graph, classes, how->seed, how->net.classes > 0);
}

static ew_err make(const struct ew_train_network_opts *how, const struct ew_dataset_info *info,
                   struct ew_train_network *t)
{
    const int64_t classes = how->net.classes ? how->net.classes : info->classes;
    if (ew_network_has_weights(how->what)) {
        EW_TRY(load(how, how->what, how->net, &t->graph));
        tell_formulas(t->graph);
        tell_tied(t->graph);
        EW_TRY(give_head(how, classes, t));
    } else {
        EW_TRY(build(how, info, &t->graph));
    }
    EW_TRY(prep_of(t->graph, &t->prep));
    EW_TRY(copy_weights(how, t));
    EW_TRY(ew_image_card_random(t->graph, false)); /* they will not be for long */
    for (int i = 0; i < t->graph->n_values; i++)
        t->graph->values[i].frozen = false;
    return how->freeze ? ew_adapt_freeze(t->graph, how->freeze, &t->frozen) : EW_OK;
}

ew_err ew_train_network_open(const struct ew_train_network_opts *how, const struct ew_dataset *data,
                             struct ew_train_network *out)
{
    *out = (struct ew_train_network){0};
    const ew_err e = make(how, ew_dataset_info(data), out);
    if (e != EW_OK) {
        ew_graph_free(out->graph);
        out->graph = NULL;
    }
    return e;
}

ew_err ew_teacher_open(const char *what, struct ew_graph **out)
{
    const struct ew_train_network_opts how = {.what = what};
    *out = NULL;
    EW_CHECK(ew_network_is_file(what), EW_ERR_USAGE,
             "--teach: %s is not a file; a teacher needs trained weights", what);
    const ew_err e = load(&how, what, (struct ew_network_opts){.width = 1}, out);
    if (e != EW_OK) {
        ew_graph_free(*out);
        *out = NULL;
    }
    return e;
}
