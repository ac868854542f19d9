/* SPDX-License-Identifier: Apache-2.0 */
/* A network's first convolution with the max pool of 2x2 and the ReLU behind it, for training: one
 * node, which never stores what it pools and whose gradient is of one output in four.  It goes by
 * images from its input on, as most steps do, so that threads stay with theirs.
 *
 * Nodes and values keep their numbers, as in fuse_norm.c: the pool and the ReLU stay, and make what
 * nobody reads. */
#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "op/conv.h"
#include "op/pooling.h"

#define FEW_CHANNELS 4 /* beyond, products of matrices are as fast */
#define IMAGES       4 /* of a batch at least: threads share them out */

struct first_layer {
    int conv, pool, act; /* nodes; act -1: none */
};

/* True where all of the list is `value`, and where it is empty. */
static bool all_are(const struct ew_ints *list, int64_t value)
{
    for (int i = 0; i < list->n; i++)
        if (list->v[i] != value)
            return false;
    return true;
}

static bool takes_conv(const struct ew_graph *g, const struct ew_node *n)
{
    if (strcmp(n->op->name, "conv") != 0 || n->n_in > 3 || n->channels_first)
        return false;
    const struct ew_conv_attr *a = n->attr;
    const struct ew_value *x = &g->values[n->in[0]], *w = &g->values[n->in[1]];
    const struct ew_shape *shape = &x->t.shape;
    return x->kind == EW_VALUE_INPUT && w->kind == EW_VALUE_PARAM && !w->frozen &&
           x->t.dtype == EW_F32 && shape->rank == 4 && shape->dim[0] >= IMAGES &&
           shape->dim[3] <= FEW_CHANNELS && a->groups == 1 && a->end.act == EW_ACT_NONE &&
           all_are(&a->win.stride, 1) && all_are(&a->win.dilation, 1);
}

/* Windows of 2x2 side by side; those that stick out are not there, for sizes are rounded down. */
static bool takes_pool(const struct ew_node *n)
{
    if (strcmp(n->op->name, "max_pool") != 0 || n->n_out != 1 || n->channels_first)
        return false;
    const struct ew_pool_attr *a = n->attr;
    return !a->ceil_mode && a->win.kernel.n == 2 && all_are(&a->win.kernel, 2) &&
           a->win.stride.n == 2 && all_are(&a->win.stride, 2) && all_are(&a->win.pad, 0) &&
           all_are(&a->win.dilation, 1) &&
           (a->win.auto_pad == EW_AUTO_PAD_NOTSET || a->win.auto_pad == EW_AUTO_PAD_VALID);
}

/* The only reader of what the node makes, or -1. */
static int reader_of(const struct ew_graph *g, const struct ew_use *uses, int node)
{
    const struct ew_use *u = &uses[g->nodes[node].out[0]];
    return u->count == 1 ? u->consumer : -1;
}

static bool find_layer(const struct ew_graph *g, const struct ew_use *uses, int node,
                       struct first_layer *out)
{
    struct ew_epilogue_attr end = {0};
    *out = (struct first_layer){.conv = node, .act = -1};
    if (!takes_conv(g, &g->nodes[node]))
        return false;
    out->pool = reader_of(g, uses, node);
    if (out->pool < 0 || !takes_pool(&g->nodes[out->pool]))
        return false;
    const int act = reader_of(g, uses, out->pool);
    if (act >= 0 && g->nodes[act].n_out == 1 && ew_act_of_node(g, act, &end) &&
        end.act == EW_ACT_RELU)
        out->act = act;
    return true;
}

/* The node hands `from` on to what it made until now. */
static void hand_on(struct ew_graph *g, int node, int from, int to)
{
    struct ew_node *n = &g->nodes[node];
    n->op = ew_op_find("identity");
    n->attr = NULL;
    n->n_in = 1;
    n->in[0] = from;
    n->out[0] = to;
    g->values[to].producer = node;
    g->values[to].t.shape = g->values[from].t.shape;
}

static ew_err fuse(struct ew_graph *g, const struct first_layer *l)
{
    struct ew_node *conv = &g->nodes[l->conv];
    const int last = l->act >= 0 ? l->act : l->pool, made = g->nodes[last].out[0];
    const int inner = conv->out[0], middle = g->nodes[l->pool].out[0];
    struct ew_conv_attr *a = ew_arena_alloc(&g->arena, sizeof(*a));
    EW_CHECK(a, EW_ERR_MEMORY, "%s: no memory to fuse it", conv->name);
    memcpy(a, conv->attr, sizeof(*a));
    a->end.act = l->act >= 0 ? EW_ACT_RELU : EW_ACT_NONE;
    conv->attr = a;
    conv->op = ew_op_find("conv_pool");
    conv->out[0] = made;
    g->values[made].producer = l->conv;
    hand_on(g, l->pool, made, inner);
    if (l->act >= 0)
        hand_on(g, l->act, inner, middle);
    return EW_OK;
}

ew_err ew_pass_fuse_pool(struct ew_graph *g)
{
    struct ew_use *found;
    EW_TRY(ew_pass_uses(g, &found));
    EW_CLEANUP(ew_free_ptr) struct ew_use *uses = found;
    for (int k = 0; k < g->n_nodes; k++) {
        struct first_layer l;
        if (find_layer(g, uses, k, &l))
            EW_TRY(fuse(g, &l));
    }
    return EW_OK;
}
