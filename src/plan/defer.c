/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norms of a training plan whose output is never stored.
 *
 * Where the only reader of a batch norm can make its input from the norm's, line by line as it
 * reads, the norm's step takes the statistics and stops there.  Forward that saves writing the
 * tensor and reading it, backward keeping it.  The norm's backward is as ever: it reads its own
 * input. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan_impl.h"

int ew_plan_source(const struct ew_plan *p, int value)
{
    return value >= 0 && p->deferred[value] >= 0 ? p->g->nodes[p->deferred[value]].in[0] : value;
}

bool ew_plan_defers(const struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    return n->n_out > 0 && n->out[0] >= 0 && p->deferred[n->out[0]] == node;
}

/* A call with the shapes of the node's values and no memory. */
static ew_err shape_call(struct ew_plan *p, int node, struct ew_call *out)
{
    const struct ew_node *n = &p->g->nodes[node];
    struct ew_tensor **t = ew_arena_array(&p->arena, (size_t)(n->n_in + n->n_out), sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "node %s: no memory for its call", n->name);
    for (int i = 0; i < n->n_in; i++)
        t[i] = n->in[i] >= 0 ? &p->values[n->in[i]].t : NULL;
    for (int i = 0; i < n->n_out; i++)
        t[n->n_in + i] = n->out[i] >= 0 ? &p->values[n->out[i]].t : NULL;
    *out = (struct ew_call){.name = n->name,
                            .op = n->op,
                            .attr = n->attr,
                            .n_in = n->n_in,
                            .n_out = n->n_out,
                            .in = t,
                            .out = t + n->n_in,
                            .be = p->be,
                            .train = true};
    return EW_OK;
}

/* True where the kernel that rules prefer can be part of it. */
static bool norms(const struct ew_plan *p, const struct ew_call *c, enum ew_phase phase)
{
    struct ew_kernel offers[EW_OFFERS];
    int n = 0;
    const struct ew_ask ask = {p->be, c->op, phase, c};
    return ew_backend_offer(&ask, offers, &n) == EW_OK && n > 0 && offers[0].norms;
}

/* The only node that reads the value, and as in[0]; -1: there is none. */
static int only_reader(const struct ew_graph *g, const bool *needed, int value)
{
    int reader = -1;
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value)
            return -1;
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; needed[k] && i < g->nodes[k].n_in; i++) {
            if (g->nodes[k].in[i] != value)
                continue;
            if (reader >= 0 || i != 0)
                return -1;
            reader = k;
        }
    return reader;
}

ew_err ew_plan_defer(struct ew_plan *p, const bool *needed)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        if (!needed[k] || strcmp(n->op->name, "batch_norm") != 0 || n->in[0] < 0 ||
            ew_plan_has_data(p, n->in[0]))
            continue;
        const int reader = only_reader(p->g, needed, n->out[0]);
        if (reader < 0)
            continue;
        struct ew_call norm, call;
        EW_TRY(shape_call(p, k, &norm));
        EW_TRY(shape_call(p, reader, &call));
        call.norm = &norm;
        if (norms(p, &norm, EW_PHASE_FORWARD) && norms(p, &call, EW_PHASE_FORWARD) &&
            norms(p, &call, EW_PHASE_BACKWARD))
            p->deferred[n->out[0]] = k;
    }
    return EW_OK;
}

ew_err ew_plan_norm_call(struct ew_plan *p, int value, struct ew_slot *source, struct ew_call **out)
{
    *out = ew_arena_array(&p->arena, 1, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "%s: no memory for its batch norm", p->g->values[value].name);
    EW_TRY(shape_call(p, p->deferred[value], *out));
    struct ew_tensor **in = ew_arena_array(&p->arena, (size_t)(*out)->n_in, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "%s: no memory for its batch norm", p->g->values[value].name);
    memcpy(in, (*out)->in, (size_t)(*out)->n_in * sizeof(*in));
    in[0] = &source->t;
    (*out)->in = in;
    return EW_OK;
}

void ew_plan_take_norm(struct ew_plan *p, int value, struct ew_call *norm)
{
    const int step = p->n_steps - 1;
    struct ew_step *s = &p->steps[step];
    s->norm = norm;
    s->call.norm = norm;
    s->norm_aux = p->node_aux[p->deferred[value]];
    p->buffers[s->norm_aux].last = step;
}
