/* SPDX-License-Identifier: Apache-2.0 */
/* Giving weights back that a plan has copies of, so that a network is in memory about once.
 *
 *   graph's weights --passes--> folded copies, in the plan's own graph --packing--> packed
 *
 * Folded copies go when they are packed.  The caller's weights stay, since other plans may want
 * them, unless the caller has said otherwise (`consume`). */
#include "plan/plan_impl.h"

/* A value of the graph whose data lies there, or -1. */
static int find_data(const struct ew_graph *g, const void *data)
{
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].t.data == data)
            return i;
    return -1;
}

/* Weights of the caller's: `value` is its number there. */
static void release_source(struct ew_plan *p, int value)
{
    struct ew_tensor *t = &p->source->values[value].t;
    const size_t bytes = ew_tensor_bytes(t);
    void *data = t->data;
    t->data = NULL;
    if (find_data(p->source, data) < 0 && ew_arena_release(&p->source->arena, data, bytes))
        p->released += bytes;
    else
        t->data = data; /* shared, or too small to be worth it */
}

void ew_plan_release_replaced(struct ew_plan *p)
{
    if (!p->opts.consume)
        return;
    for (int i = 0; i < p->source->n_values; i++) {
        const struct ew_value *v = &p->source->values[i];
        const bool weights = v->kind != EW_VALUE_ACT && v->kind != EW_VALUE_INPUT;
        if (weights && v->t.data && find_data(p->g, v->t.data) < 0)
            release_source(p, i);
    }
}

/* How often nodes read the value; outputs count too. */
static int uses(const struct ew_graph *g, int value)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k].n_in; i++)
            n += g->nodes[k].in[i] == value;
    for (int i = 0; i < g->n_outputs; i++)
        n += g->outputs[i] == value;
    return n;
}

/* True where the value is gone. */
static bool release_value(struct ew_plan *p, int value)
{
    struct ew_tensor *t = &p->g->values[value].t;
    const size_t bytes = ew_tensor_bytes(t);
    void *data = t->data;
    if (!data || uses(p->g, value) != 1)
        return false;
    t->data = NULL;
    bool gone = find_data(p->g, data) < 0;
    const int theirs = find_data(p->source, data);
    if (gone && theirs < 0)
        gone = ew_arena_release(&p->clone->arena, data, bytes);
    else if (gone && p->opts.consume) {
        release_source(p, theirs);
        gone = !p->source->values[theirs].t.data;
    } else {
        gone = false;
    }
    t->data = gone ? NULL : data;
    return gone;
}

void ew_plan_release_packed(struct ew_plan *p, struct ew_step *s)
{
    if (!p->clone || !p->opts.optimize || p->opts.mode != EW_PLAN_INFER || s->node < 0)
        return;
    const struct ew_node *n = &p->g->nodes[s->node];
    for (int i = 0; i < n->n_in; i++) {
        if (!(s->kernel.packs >> i & 1) || n->in[i] < 0 || !release_value(p, n->in[i]))
            continue;
        p->values[n->in[i]].t.data = NULL;
        s->sealed = true;
    }
}
