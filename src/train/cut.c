/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting a network into its frozen and its trainable part. */
#include <stdlib.h>

#include "train/adapt.h"

/* Classification of nodes and values. */
struct cut {
    const struct ew_graph *g;
    bool *node;  /* frozen: depends on the input and frozen weights alone */
    bool *value; /* output of a frozen node */
    int *edge;   /* values that cross from the frozen part to the trainable one */
    int n_edge;
};

static bool mark_node(const struct cut *c, const struct ew_node *n)
{
    if (n->op->flags & EW_OP_STOCHASTIC) /* dropout stays in training mode */
        return false;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const struct ew_value *v = &c->g->values[n->in[i]];
        if (v->kind == EW_VALUE_PARAM ? !v->frozen : v->kind == EW_VALUE_ACT && !c->value[n->in[i]])
            return false;
    }
    return true;
}

/* Classifies; true if some frozen node has weights, so that a split pays. */
static bool mark(struct cut *c)
{
    bool any = false;
    for (int k = 0; k < c->g->n_nodes; k++) {
        const struct ew_node *n = &c->g->nodes[k];
        c->node[k] = mark_node(c, n);
        for (int i = 0; c->node[k] && i < n->n_out; i++)
            if (n->out[i] >= 0)
                c->value[n->out[i]] = true;
        for (int i = 0; c->node[k] && i < n->n_in; i++)
            any |= n->in[i] >= 0 && c->g->values[n->in[i]].kind == EW_VALUE_PARAM;
    }
    return any;
}

static void add_edge(struct cut *c, int value)
{
    for (int i = 0; i < c->n_edge; i++)
        if (c->edge[i] == value)
            return;
    c->edge[c->n_edge++] = value;
}

static void find_edges(struct cut *c)
{
    for (int k = 0; k < c->g->n_nodes; k++) {
        const struct ew_node *n = &c->g->nodes[k];
        for (int i = 0; !c->node[k] && i < n->n_in; i++)
            if (n->in[i] >= 0 &&
                (c->value[n->in[i]] || c->g->values[n->in[i]].kind == EW_VALUE_INPUT))
                add_edge(c, n->in[i]);
    }
}

/* The frozen part: its outputs are the edges. */
static ew_err make_frozen(const struct cut *c, struct ew_graph **out)
{
    EW_TRY(ew_graph_clone(c->g, out));
    struct ew_graph *f = *out;
    f->n_outputs = 0;
    for (int i = 0; i < c->n_edge; i++)
        EW_TRY(ew_graph_output(f, c->edge[i]));
    EW_TRY(ew_graph_sweep(f));
    return ew_graph_infer(f);
}

/* The trainable part: the edges are its inputs. */
static ew_err make_trainable(const struct cut *c, struct ew_graph **out)
{
    EW_TRY(ew_graph_clone(c->g, out));
    struct ew_graph *r = *out;
    int n = 0;
    for (int k = 0; k < r->n_nodes; k++)
        if (!c->node[k])
            r->nodes[n++] = r->nodes[k];
    r->n_nodes = n;
    r->n_inputs = 0;
    EW_TRY(ew_grow((void **)&r->inputs, &r->cap_inputs, c->n_edge, sizeof(*r->inputs)));
    for (int i = 0; i < c->n_edge; i++) {
        struct ew_value *v = &r->values[c->edge[i]];
        r->inputs[r->n_inputs++] = c->edge[i];
        v->kind = EW_VALUE_INPUT;
        v->producer = -1;
        v->t.data = NULL;
        v->dynamic = 1;
    }
    EW_TRY(ew_graph_sweep(r));
    return ew_graph_infer(r);
}

static ew_err check_edges(const struct cut *c)
{
    int64_t batch;
    EW_TRY(ew_graph_batch(c->g, &batch));
    for (int i = 0; i < c->n_edge; i++) {
        const struct ew_value *v = &c->g->values[c->edge[i]];
        char text[EW_SHAPE_TEXT];
        EW_CHECK(v->t.shape.rank > 0 && v->t.shape.dim[0] == batch && v->t.dtype == EW_F32,
                 EW_ERR_UNSUPPORTED, "%s: is %s of %s, the network cannot be cut there", v->name,
                 ew_shape_text(&v->t.shape, text), ew_dtype_name(v->t.dtype));
    }
    return EW_OK;
}

static ew_err cut(struct cut *c, struct ew_graph **frozen, struct ew_graph **trainable)
{
    if (!mark(c))
        return ew_graph_clone(c->g, trainable);
    EW_CHECK(!c->value[c->g->outputs[0]], EW_ERR_USAGE, "%s: all of it is frozen; nothing to train",
             c->g->name);
    find_edges(c);
    EW_TRY(check_edges(c));
    EW_TRY(make_frozen(c, frozen));
    return make_trainable(c, trainable);
}

ew_err ew_adapt_cut(const struct ew_graph *g, struct ew_graph **frozen, struct ew_graph **trainable)
{
    struct cut c = {.g = g,
                    .node = calloc((size_t)g->n_nodes + 1, sizeof(*c.node)),
                    .value = calloc((size_t)g->n_values + 1, sizeof(*c.value)),
                    .edge = calloc((size_t)g->n_values + 1, sizeof(*c.edge))};
    *frozen = *trainable = NULL;
    ew_err e = c.node && c.value && c.edge ? EW_OK : ew_fail(EW_ERR_MEMORY, "no memory");
    if (e == EW_OK)
        e = cut(&c, frozen, trainable);
    free(c.node);
    free(c.value);
    free(c.edge);
    if (e != EW_OK) {
        ew_graph_free(*frozen);
        ew_graph_free(*trainable);
        *frozen = *trainable = NULL;
    }
    return e;
}
