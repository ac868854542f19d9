/* SPDX-License-Identifier: Apache-2.0 */
/* A graph as boxes: nodes that only follow another one (batch norms, activations, views) are drawn
 * inside its box. */
#include "report/graph_boxes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/facts.h"
#include "graph/ops.h"

#define MOST_NODES  20000
#define TITLE_CHARS 160

void ew_drawing_fini(struct ew_drawing *d)
{
    ew_arena_fini(&d->arena);
    free(d->boxes);
    free(d->edges);
    free(d->node_box);
}

/* ---- Texts ---- */

/* Appends to a title, which is cut at its maximum length. */
static void append(char *title, const char *sep, const char *text)
{
    const size_t used = strlen(title);
    snprintf(title + used, TITLE_CHARS - used, "%s%s", used ? sep : "", text);
}

/* "3x3/2": of a window, from the attributes that tables call kernel or size, and stride. */
static void window_text(const struct ew_graph *g, const struct ew_node *n, char *out, size_t size)
{
    const struct ew_field *kernel = ew_field_find(n->op->attrs, "kernel"),
                          *side = ew_field_find(n->op->attrs, "size"),
                          *stride = ew_field_find(n->op->attrs, "stride");
    char text[256] = "", step[256] = "";
    if (kernel)
        ew_field_print(kernel, n->attr, text, sizeof(text));
    if (!text[0] && side && side->type == EW_FIELD_INTS)
        ew_field_print(side, n->attr, text, sizeof(text));
    if (!text[0] && (n->op->filter_in >> 1 & 1) && n->n_in > 1) {
        const struct ew_shape *w = &g->values[n->in[1]].t.shape; /* [O, k..., I] */
        struct ew_shape k = {.rank = w->rank - 2};
        for (int i = 0; i < k.rank; i++)
            k.dim[i] = w->dim[i + 1];
        ew_shape_text(&k, text);
    }
    if (stride && stride->type == EW_FIELD_INTS)
        ew_field_print(stride, n->attr, step, sizeof(step));
    char *cross = strchr(step, 'x');
    if (cross && strncmp(step, cross + 1, (size_t)(cross - step)) == 0)
        *cross = 0; /* same size in both directions: print it once */
    const bool shown = step[0] && strcmp(step, "1") != 0;
    snprintf(out, size, "%.60s%s%.60s", text, shown ? "/" : "", shown ? step : "");
}

/* ", 64", ", 32 groups", ", depthwise" */
static void filters_text(const struct ew_graph *g, const struct ew_node *n, char *title)
{
    const struct ew_shape *y = &g->values[n->out[0]].t.shape;
    const struct ew_field *f = ew_field_find(n->op->attrs, "groups");
    const int64_t channels = y->rank ? y->dim[y->rank - 1] : 0;
    char text[64], groups[32] = "1";
    snprintf(text, sizeof(text), "%lld", (long long)channels);
    append(title, strchr(title, ' ') ? ", " : " ", text);
    if (f)
        ew_field_print(f, n->attr, groups, sizeof(groups));
    if (strcmp(groups, text) == 0 && channels > 1) {
        append(title, ", ", "depthwise");
    } else if (strcmp(groups, "1") != 0) {
        snprintf(text, sizeof(text), "%.20s groups", groups);
        append(title, ", ", text);
    }
}

static bool has_params(const struct ew_graph *g, const struct ew_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && g->values[n->in[i]].kind == EW_VALUE_PARAM)
            return true;
    return false;
}

/* Constants among the inputs, such as the bounds of a clip. */
static void numbers_text(const struct ew_graph *g, const struct ew_node *n, char *title)
{
    for (int i = 1; i < n->n_in; i++) {
        const struct ew_value *v = n->in[i] >= 0 ? &g->values[n->in[i]] : NULL;
        if (!v || v->kind != EW_VALUE_CONST || !v->t.data || ew_tensor_count(&v->t) != 1)
            continue;
        char text[32];
        snprintf(text, sizeof(text), "%g", ew_tensor_get(&v->t, 0));
        append(title, i == 1 ? " " : ", ", text);
    }
}

/* "conv 7x7/2, 64", "bn", "relu", "clip 0, 6", "max pool 3x3/2". */
static void node_text(const struct ew_graph *g, const struct ew_node *n, char *title)
{
    char window[128];
    append(title, "", n->op == &ew_op_batch_norm ? "bn" : n->op->name);
    for (char *c = title; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    window_text(g, n, window, sizeof(window));
    if (window[0])
        append(title, " ", window);
    if (has_params(g, n) && n->op->param_in && !(n->op->flags & EW_OP_INPLACE))
        filters_text(g, n, title);
    numbers_text(g, n, title);
}

/* ---- Boxes and edges ---- */

struct builder {
    const struct ew_graph *g;
    struct ew_drawing *d;
    int *uses;   /* by value: readers that are drawn */
    int *box_of; /* by value: the box that produces it; -1: constants and weights */
};

static ew_err add_box(struct ew_drawing *d, const struct ew_box *b, int *out)
{
    EW_TRY(ew_grow((void **)&d->boxes, &d->cap_boxes, d->n_boxes + 1, sizeof(*d->boxes)));
    *out = d->n_boxes;
    d->boxes[d->n_boxes++] = *b;
    return EW_OK;
}

/* Adds an edge; several values between the same boxes share one. */
static ew_err add_edge(struct ew_drawing *d, int from, int to)
{
    for (int i = d->n_edges - 1; i >= 0 && d->edges[i].to == to; i--)
        if (d->edges[i].from == from)
            return EW_OK;
    EW_TRY(ew_grow((void **)&d->edges, &d->cap_edges, d->n_edges + 1, sizeof(*d->edges)));
    d->edges[d->n_edges++] = (struct ew_edge){.from = from, .to = to};
    if (d->boxes[to].layer <= d->boxes[from].layer)
        d->boxes[to].layer = d->boxes[from].layer + 1;
    return EW_OK;
}

static ew_err add_end(const struct builder *m, const char *what, int value, int *out)
{
    struct ew_box b = {.kind = EW_BOX_END, .title = what, .name = m->g->values[value].name};
    ew_shape_text(&m->g->values[value].t.shape, b.shape);
    return add_box(m->d, &b, out);
}

/* The only value with a box that the node reads; -1: there are several or none. */
static int only_input(const struct builder *m, const struct ew_node *n)
{
    int only = -1;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0 || m->box_of[n->in[i]] < 0)
            continue;
        if (only >= 0)
            return -1;
        only = n->in[i];
    }
    return only;
}

static bool follows(const struct builder *m, const struct ew_node *n, int in)
{
    if (in < 0 || m->uses[in] != 1 || m->d->boxes[m->box_of[in]].kind == EW_BOX_END)
        return false;
    const unsigned same = EW_OP_INPLACE | EW_OP_VIEW | EW_OP_NO_CDL;
    return (n->op->flags & same) || n->op == &ew_op_transpose;
}

static enum ew_box_kind kind_of(const struct builder *m, const struct ew_node *n)
{
    int inputs = 0;
    for (int i = 0; i < n->n_in; i++)
        inputs += n->in[i] >= 0 && m->box_of[n->in[i]] >= 0;
    const bool spatial = n->op->flags & EW_OP_SPATIAL, params = has_params(m->g, n);
    if (inputs > 1)
        return EW_BOX_JOIN;
    if (params)
        return spatial ? EW_BOX_FILTER : EW_BOX_DENSE;
    return spatial ? EW_BOX_POOL : EW_BOX_OTHER;
}

/* Adds the node to the box that it follows. */
static ew_err extend(const struct builder *m, const struct ew_node *n, struct ew_box *b)
{
    char title[TITLE_CHARS] = "", own[TITLE_CHARS] = "";
    snprintf(title, sizeof(title), "%s", b->title);
    if (ew_node_moves_channels(n))
        return EW_OK; /* conversions of the internal layout are not shown */
    node_text(m->g, n, own);
    append(title, ", ", own);
    b->title = ew_arena_strdup(&m->d->arena, title);
    EW_CHECK(b->title, EW_ERR_MEMORY, "no memory for a picture");
    ew_shape_text(&m->g->values[n->out[0]].t.shape, b->shape);
    return EW_OK;
}

static ew_err box_node(const struct builder *m, const struct ew_node *n, int *out)
{
    char title[TITLE_CHARS] = "";
    node_text(m->g, n, title);
    struct ew_box b = {
        .kind = kind_of(m, n), .title = ew_arena_strdup(&m->d->arena, title), .name = n->name};
    EW_CHECK(b.title, EW_ERR_MEMORY, "no memory for a picture");
    ew_shape_text(&m->g->values[n->out[0]].t.shape, b.shape);
    EW_TRY(add_box(m->d, &b, out));
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && m->box_of[n->in[i]] >= 0)
            EW_TRY(add_edge(m->d, m->box_of[n->in[i]], *out));
    return EW_OK;
}

/* True if the outputs are known before a run: arithmetic with sizes, as PyTorch writes it. */
static bool is_known(const struct ew_graph *g, const struct ew_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && !g->values[n->out[i]].t.data)
            return false;
    return true;
}

static ew_err add_node(const struct builder *m, int k)
{
    const struct ew_node *n = &m->g->nodes[k];
    int box = -1;
    bool drawn = false;
    for (int i = 0; i < n->n_in && !is_known(m->g, n); i++)
        drawn |= n->in[i] >= 0 && m->box_of[n->in[i]] >= 0;
    const int in = only_input(m, n);
    if (drawn && follows(m, n, in)) {
        box = m->box_of[in];
        EW_TRY(extend(m, n, &m->d->boxes[box]));
    } else if (drawn) {
        EW_TRY(box_node(m, n, &box));
    }
    m->d->node_box[k] = box;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            m->box_of[n->out[i]] = m->g->values[n->out[i]].t.data ? -1 : box;
    return EW_OK;
}

static void count_uses(const struct builder *m)
{
    ew_graph_count_uses(m->g, m->uses);
    for (int k = 0; k < m->g->n_nodes; k++) {
        const struct ew_node *n = &m->g->nodes[k];
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] >= 0 && is_known(m->g, n))
                m->uses[n->in[i]]--;
    }
}

static ew_err make(const struct builder *m)
{
    const struct ew_graph *g = m->g;
    for (int i = 0; i < g->n_values; i++)
        m->box_of[i] = -1;
    for (int i = 0; i < g->n_inputs; i++)
        EW_TRY(add_end(m, "input", g->inputs[i], &m->box_of[g->inputs[i]]));
    count_uses(m);
    for (int k = 0; k < g->n_nodes; k++)
        EW_TRY(add_node(m, k));
    for (int i = 0; i < g->n_outputs; i++) {
        int end;
        EW_TRY(add_end(m, "output", g->outputs[i], &end));
        if (m->box_of[g->outputs[i]] >= 0)
            EW_TRY(add_edge(m->d, m->box_of[g->outputs[i]], end));
    }
    return EW_OK;
}

ew_err ew_drawing_boxes(const struct ew_graph *g, struct ew_drawing *d)
{
    *d = (struct ew_drawing){0};
    ew_arena_init(&d->arena);
    EW_CHECK(g->n_nodes <= MOST_NODES, EW_ERR_LIMIT, "graph %s has %d nodes, a picture takes %d",
             g->name, g->n_nodes, MOST_NODES);
    EW_CLEANUP(ew_free_ptr) int *uses = calloc((size_t)g->n_values + 1, sizeof(*uses));
    EW_CLEANUP(ew_free_ptr) int *box_of = calloc((size_t)g->n_values + 1, sizeof(*box_of));
    d->node_box = calloc((size_t)g->n_nodes + 1, sizeof(*d->node_box));
    EW_CHECK(uses && box_of && d->node_box, EW_ERR_MEMORY, "no memory for a picture of graph %s",
             g->name);
    const struct builder m = {g, d, uses, box_of};
    return make(&m);
}
