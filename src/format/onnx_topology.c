/* SPDX-License-Identifier: Apache-2.0 */
/* Numbering of values and topological order of nodes. */
#include "format/onnx_topology.h"

#include <limits.h>
#include <stdio.h>

const char *ew_onnx_label(const Ew__OnnxGraph *g, int node, char *buf)
{
    const Ew__OnnxNode *n = g->node[node];
    if (n->name && *n->name)
        snprintf(buf, EW_ONNX_LABEL, "%.150s", n->name);
    else
        snprintf(buf, EW_ONNX_LABEL, "%.100s_%d", ew_onnx_text(n->op_type), node);
    return buf;
}

void ew_onnx_topology_fini(struct ew_onnx_topology *w)
{
    ew_names_fini(&w->names);
}

/* ---- Values ---- */

static ew_err define(struct ew_onnx_topology *w, const char *name, int producer, int *out)
{
    EW_CHECK(ew_names_find(&w->names, name) < 0, EW_ERR_FORMAT, "value %.150s is defined twice",
             name);
    *out = w->n_names;
    w->name[w->n_names] = name;
    w->producer[w->n_names] = producer;
    return ew_names_add(&w->names, name, w->n_names++);
}

/* Defines initializers and inputs.  An input with an initializer (IR 3) is that constant. */
static ew_err define_given(struct ew_onnx_topology *w, const Ew__OnnxGraph *g)
{
    int id;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = ew_onnx_text(g->initializer[i]->name);
        EW_CHECK(*name, EW_ERR_FORMAT, "initializer %zu has no name", i);
        EW_TRY(define(w, name, -1, &id));
    }
    const int n_constants = w->n_names;
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = ew_onnx_text(g->input[i]->name);
        EW_CHECK(*name, EW_ERR_FORMAT, "input %zu has no name", i);
        const int known = ew_names_find(&w->names, name);
        if (known < 0 || known >= n_constants)
            EW_TRY(define(w, name, -1, &id));
    }
    return EW_OK;
}

static ew_err define_outputs(struct ew_onnx_topology *w, const Ew__OnnxGraph *g)
{
    int at = 0;
    for (int k = 0; k < w->n_nodes; k++) {
        const Ew__OnnxNode *n = g->node[k];
        w->first_out[k] = at;
        for (size_t i = 0; i < n->n_output; i++, at++) {
            w->out[at] = -1;
            char label[EW_ONNX_LABEL];
            if (*n->output[i] && define(w, n->output[i], k, &w->out[at]) != EW_OK)
                return ew_fail_in(EW_ERR_FORMAT, "node %s", ew_onnx_label(g, k, label));
        }
    }
    w->first_out[w->n_nodes] = at;
    return EW_OK;
}

static ew_err connect_inputs(struct ew_onnx_topology *w, const Ew__OnnxGraph *g)
{
    int at = 0;
    for (int k = 0; k < w->n_nodes; k++) {
        const Ew__OnnxNode *n = g->node[k];
        w->first_in[k] = at;
        for (size_t i = 0; i < n->n_input; i++, at++) {
            w->in[at] = *n->input[i] ? ew_names_find(&w->names, n->input[i]) : -1;
            char label[EW_ONNX_LABEL];
            EW_CHECK(w->in[at] >= 0 || !*n->input[i], EW_ERR_FORMAT,
                     "node %s: nothing defines its input %.150s", ew_onnx_label(g, k, label),
                     n->input[i]);
        }
    }
    w->first_in[w->n_nodes] = at;
    return EW_OK;
}

static ew_err take_lists(struct ew_onnx_topology *w, const Ew__OnnxGraph *g, struct ew_arena *a)
{
    size_t names = g->n_initializer + g->n_input, ins = 0, outs = 0;
    for (size_t k = 0; k < g->n_node; k++) {
        ins += g->node[k]->n_input;
        outs += g->node[k]->n_output;
    }
    names += outs;
    EW_CHECK(names < INT_MAX / 2 && ins < INT_MAX / 2 && g->n_node < INT_MAX / 2, EW_ERR_LIMIT,
             "the graph has %zu values", names);
    w->n_nodes = (int)g->n_node;
    w->name = ew_arena_array(a, names, sizeof(*w->name));
    w->producer = ew_arena_array(a, names, sizeof(*w->producer));
    w->in = ew_arena_array(a, ins, sizeof(*w->in));
    w->out = ew_arena_array(a, outs, sizeof(*w->out));
    w->first_in = ew_arena_array(a, g->n_node + 1, sizeof(*w->first_in));
    w->first_out = ew_arena_array(a, g->n_node + 1, sizeof(*w->first_out));
    w->order = ew_arena_array(a, g->n_node, sizeof(*w->order));
    EW_CHECK(!a->failed, EW_ERR_MEMORY, "no memory for %zu values", names);
    return EW_OK;
}

/* ---- Order ---- */

static bool in_order(const struct ew_onnx_topology *w)
{
    for (int k = 0; k < w->n_nodes; k++)
        for (int i = w->first_in[k]; i < w->first_in[k + 1]; i++)
            if (w->in[i] >= 0 && w->producer[w->in[i]] >= k)
                return false;
    return true;
}

/* Names two nodes of a cycle: follows unfinished producers from any unfinished node until one
 * repeats. */
static ew_err name_cycle(const struct ew_onnx_topology *w, const Ew__OnnxGraph *g, const int *waits,
                         int *mark)
{
    int k = 0;
    while (waits[k] == 0)
        k++;
    int before = k;
    while (!mark[k]) {
        mark[k] = 1;
        before = k;
        for (int i = w->first_in[before]; i < w->first_in[before + 1]; i++)
            if (w->in[i] >= 0 && w->producer[w->in[i]] >= 0 && waits[w->producer[w->in[i]]] > 0)
                k = w->producer[w->in[i]];
    }
    char a[EW_ONNX_LABEL], b[EW_ONNX_LABEL];
    return ew_fail(EW_ERR_FORMAT, "nodes %s and %s are part of a cycle", ew_onnx_label(g, k, a),
                   ew_onnx_label(g, before, b));
}

/* Kahn's algorithm; `head` (by value) and `next` are use lists. */
static ew_err sort(struct ew_onnx_topology *w, const Ew__OnnxGraph *g, struct ew_arena *a)
{
    const int n_in = w->first_in[w->n_nodes];
    int *head = ew_arena_array(a, (size_t)w->n_names, sizeof(*head));
    int *next = ew_arena_array(a, (size_t)n_in, sizeof(*next));
    int *user = ew_arena_array(a, (size_t)n_in, sizeof(*user));
    int *waits = ew_arena_array(a, (size_t)w->n_nodes, sizeof(*waits));
    int *mark = ew_arena_array(a, (size_t)w->n_nodes, sizeof(*mark));
    EW_CHECK(!a->failed, EW_ERR_MEMORY, "no memory to sort %d nodes", w->n_nodes);
    int done = 0, ready = 0;
    for (int k = w->n_nodes - 1; k >= 0; k--) { /* backwards, so that chains run forwards */
        for (int i = w->first_in[k]; i < w->first_in[k + 1]; i++) {
            const int v = w->in[i];
            if (v < 0 || w->producer[v] < 0)
                continue;
            user[i] = k;
            next[i] = head[v];
            head[v] = i + 1;
            waits[k]++;
        }
    }
    for (int k = 0; k < w->n_nodes; k++)
        if (waits[k] == 0)
            w->order[ready++] = k;
    for (; done < ready; done++) {
        const int k = w->order[done];
        for (int o = w->first_out[k]; o < w->first_out[k + 1]; o++)
            for (int i = w->out[o] < 0 ? 0 : head[w->out[o]]; i; i = next[i - 1])
                if (--waits[user[i - 1]] == 0)
                    w->order[ready++] = user[i - 1];
    }
    return done == w->n_nodes ? EW_OK : name_cycle(w, g, waits, mark);
}

ew_err ew_onnx_topology_init(struct ew_onnx_topology *w, const Ew__OnnxGraph *g,
                             struct ew_arena *arena)
{
    *w = (struct ew_onnx_topology){0};
    EW_TRY(take_lists(w, g, arena));
    EW_TRY(define_given(w, g));
    EW_TRY(define_outputs(w, g));
    EW_TRY(connect_inputs(w, g));
    for (int k = 0; k < w->n_nodes; k++)
        w->order[k] = k;
    return in_order(w) ? EW_OK : sort(w, g, arena);
}
