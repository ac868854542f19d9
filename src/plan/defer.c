/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norms of a training plan whose output, or whose input's gradient, is never stored.
 *
 * Where the only reader of a batch norm can make its input from the norm's, line by line as it
 * reads, the norm's step takes the statistics and stops there.  Forward that saves writing the
 * tensor and reading it, backward keeping it.
 *
 * Where what is before a batch norm can make its output's gradient from the norm's, block by block,
 * the norm's backward takes the two sums a channel and stops there ("late").
 *
 * And where what is before it can take the statistics of what it writes while that is near, the
 * norm's step finds them ready. */
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

ew_err ew_plan_shape_call(struct ew_plan *p, int node, struct ew_call *out)
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
                            .be = p->on_host[node] ? p->host : p->be,
                            .train = true};
    return EW_OK;
}

struct ew_kernel ew_plan_preferred(const struct ew_plan *p, const struct ew_call *c,
                                   enum ew_phase phase)
{
    struct ew_kernel offers[EW_OFFERS];
    int n = 0;
    const struct ew_kernel_query query = {p->be, c->op, phase, c};
    if (c->be != p->be || ew_backend_offer(&query, offers, &n) != EW_OK || n == 0)
        return (struct ew_kernel){0};
    return offers[0];
}

/* True where that can be part of it. */
static bool norms(const struct ew_plan *p, const struct ew_call *c, enum ew_phase phase)
{
    return ew_plan_preferred(p, c, phase).norms;
}

int ew_plan_only_reader(const struct ew_plan *p, int value)
{
    return p->reading[value].count == 1 ? p->reading[value].first : -1;
}

ew_err ew_plan_defer(struct ew_plan *p)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        if (!p->needed[k] || !(n->op->flags & EW_OP_BATCH_NORM) || n->in[0] < 0 ||
            ew_plan_has_data(p, n->in[0]))
            continue;
        const int reader = ew_plan_only_reader(p, n->out[0]);
        if (reader < 0 || p->g->nodes[reader].in[0] != n->out[0])
            continue;
        struct ew_call norm, call;
        EW_TRY(ew_plan_shape_call(p, k, &norm));
        EW_TRY(ew_plan_shape_call(p, reader, &call));
        call.norm = &norm;
        if (norms(p, &norm, EW_PHASE_FORWARD) && norms(p, &call, EW_PHASE_FORWARD) &&
            norms(p, &call, EW_PHASE_BACKWARD))
            p->deferred[n->out[0]] = k;
    }
    return EW_OK;
}

ew_err ew_plan_norm_call(struct ew_plan *p, int value, struct ew_slot *source, struct ew_call **out)
{
    return ew_plan_call_of(p, p->deferred[value], source, out);
}

ew_err ew_plan_call_of(struct ew_plan *p, int node, struct ew_slot *source, struct ew_call **out)
{
    *out = ew_arena_array(&p->arena, 1, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "node %s: no memory for its call", p->g->nodes[node].name);
    EW_TRY(ew_plan_shape_call(p, node, *out));
    struct ew_tensor **in = ew_arena_array(&p->arena, (size_t)(*out)->n_in, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "node %s: no memory for its call", p->g->nodes[node].name);
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

/* ---- Gradients ---- */

static bool needs_all(const struct ew_plan *p, const struct ew_node *n)
{
    for (int i = 0; i < 3; i++)
        if (n->n_in <= i || n->in[i] < 0 || !p->needs_grad[n->in[i]])
            return false;
    return true;
}

ew_err ew_plan_late_kernel(struct ew_plan *p, int value, struct ew_call *behind,
                           struct ew_kernel *out)
{
    const int from = p->g->values[value].producer, in = p->g->nodes[from].in[0];
    struct ew_call call, before;
    EW_TRY(ew_plan_shape_call(p, from, &call));
    if (in >= 0 && p->deferred[in] >= 0) {
        EW_TRY(ew_plan_shape_call(p, p->deferred[in], &before));
        call.norm = &before;
    }
    call.behind = behind;
    *out = ew_plan_preferred(p, &call, EW_PHASE_BACKWARD);
    return EW_OK;
}

/* True where the value's gradient may be left to the node that made it; `norm` is the one that
 * reads it. */
static ew_err may_be_late(struct ew_plan *p, int value, int norm, bool *out)
{
    const int from = p->g->values[value].producer;
    struct ew_call behind;
    struct ew_kernel kernel;
    *out = false;
    if (from < 0 || (p->g->nodes[from].op->flags & EW_OP_BATCH_NORM) || p->strategy.parts > 1)
        return EW_OK;
    EW_TRY(ew_plan_shape_call(p, norm, &behind));
    if (!ew_plan_preferred(p, &behind, EW_PHASE_FORWARD).lates)
        return EW_OK;
    EW_TRY(ew_plan_late_kernel(p, value, &behind, &kernel));
    *out = kernel.lates;
    return EW_OK;
}

ew_err ew_plan_find_late(struct ew_plan *p)
{
    for (int k = 0; k < p->g->n_nodes; k++) {
        const struct ew_node *n = &p->g->nodes[k];
        bool late;
        if (!p->needed[k] || !(n->op->flags & EW_OP_BATCH_NORM) || !needs_all(p, n) ||
            ew_plan_only_reader(p, n->in[0]) != k)
            continue;
        EW_TRY(may_be_late(p, n->in[0], k, &late));
        if (!late)
            continue;
        p->late[n->in[0]] = k;
        p->grads[n->in[0]].bare = true;
    }
    return EW_OK;
}

ew_err ew_plan_behind_call(struct ew_plan *p, int value, struct ew_call **out)
{
    *out = NULL;
    if (value < 0 || p->late[value] < 0)
        return EW_OK;
    const int node = p->late[value], made = p->g->nodes[node].out[0];
    struct ew_slot *slot;
    EW_TRY(ew_plan_saved_slot(p, value, &slot));
    *out = ew_arena_array(&p->arena, 1, sizeof(**out));
    EW_CHECK(*out, EW_ERR_MEMORY, "%s: no memory for its batch norm", p->g->values[value].name);
    EW_TRY(ew_plan_shape_call(p, node, *out));
    const int n_in = (*out)->n_in;
    struct ew_tensor **t = ew_arena_array(&p->arena, (size_t)n_in + 1, sizeof(*t));
    EW_CHECK(t, EW_ERR_MEMORY, "%s: no memory for its batch norm", p->g->values[value].name);
    memcpy(t, (*out)->in, (size_t)n_in * sizeof(*t));
    t[0] = &slot->t;
    t[n_in] = &p->grads[made].t;
    (*out)->in = t;
    (*out)->dout = t + n_in;
    struct ew_gate *gate = ew_plan_gate_norm(p, node);
    (*out)->gated = gate ? &gate->gated : NULL;
    return EW_OK;
}

void ew_plan_take_behind(struct ew_plan *p, int value, struct ew_call *behind)
{
    const int step = p->n_steps - 1, node = p->late[value];
    struct ew_step *s = &p->steps[step];
    s->behind = behind;
    s->call.behind = behind;
    s->behind_aux = p->node_aux[node];
    p->buffers[s->behind_aux].last = step;
    ew_plan_touch(p->again[value].first >= 0 ? &p->again[value] : &p->values[value], step);
    ew_plan_touch(&p->grads[p->g->nodes[node].out[0]], step);
    struct ew_gate *gate = ew_plan_gate_norm(p, node);
    if (gate)
        ew_plan_touch_gate(p, gate);
}

/* ---- Statistics ---- */

/* The first batch norm that reads the value; -1: none. */
static int norm_of_value(const struct ew_plan *p, int value)
{
    for (int k = 0; k < p->g->n_nodes; k++)
        if (p->needed[k] && (p->g->nodes[k].op->flags & EW_OP_BATCH_NORM) &&
            p->g->nodes[k].in[0] == value)
            return k;
    return -1;
}

ew_err ew_plan_lend_stats(struct ew_plan *p, int node, struct ew_kernel *kernel)
{
    if (!kernel->stats || p->opts.mode != EW_PLAN_TRAIN)
        return EW_OK;
    const int norm = norm_of_value(p, p->g->nodes[node].out[0]);
    if (norm < 0)
        return EW_OK;
    struct ew_call *behind = ew_arena_array(&p->arena, 1, sizeof(*behind));
    EW_CHECK(behind, EW_ERR_MEMORY, "node %s: no memory for its batch norm",
             p->g->nodes[node].name);
    EW_TRY(ew_plan_shape_call(p, norm, behind));
    if (!ew_plan_preferred(p, behind, EW_PHASE_FORWARD).sums)
        return EW_OK;
    struct ew_step *s = &p->steps[p->n_steps - 1];
    s->behind = behind;
    s->call.behind = behind;
    kernel->scratch = ew_align_up(kernel->scratch) + kernel->stats;
    p->stats_step[norm] = p->n_steps - 1;
    return EW_OK;
}

void ew_plan_link_stats(struct ew_plan *p, int node)
{
    const int step = p->stats_step[node];
    if (step < 0)
        return;
    p->steps[step].behind_aux = p->node_aux[node];
    p->buffers[p->node_aux[node]].first = step;
}
