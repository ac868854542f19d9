/* SPDX-License-Identifier: Apache-2.0 */
/* Buffer assignment: which slots get a buffer, and which alias one (views, in place,
 * concatenation).  Lifetimes come from the steps; offsets are memory.c's. */
#include "plan/plan_impl.h"

void ew_plan_touch(struct ew_slot *s, int step)
{
    if (s->first < 0)
        s->first = step;
    s->last = step > s->last ? step : s->last;
}

/* The slot that a tensor of a call is in. */
static struct ew_slot *slot_of(struct ew_tensor *t)
{
    return (struct ew_slot *)t; /* its first member */
}

/* True if the slot has data of its own: a weight, a constant, a known value. */
static bool owns_data(const struct ew_slot *s)
{
    return s->buffer < 0 && s->t.data;
}

/* Extends the lifetime of a shared buffer to the slot's. */
static void extend(struct ew_plan *p, const struct ew_slot *s)
{
    struct ew_buffer *b = &p->buffers[s->buffer];
    b->last = s->last > b->last ? s->last : b->last;
}

/* Lets `to` alias the buffer of `from` if `step` is the buffer's last (step -1: unconditionally,
 * for views). */
static void alias_buffer(struct ew_plan *p, const struct ew_slot *from, struct ew_slot *to,
                         int step)
{
    if (from->buffer < 0 || to->buffer >= 0 || to->first < 0 || to->no_storage ||
        ew_tensor_bytes(&from->t) != ew_tensor_bytes(&to->t))
        return;
    if (step >= 0 && p->buffers[from->buffer].last != step)
        return;
    to->buffer = from->buffer;
    extend(p, to);
}

/* out[0] in place of in[0], if the operator allows it; always for views. */
static void alias_input(struct ew_plan *p, const struct ew_step *s, int step)
{
    const unsigned flags = p->g->nodes[s->node].op->flags;
    if ((flags & (EW_OP_INPLACE | EW_OP_VIEW)) && s->call.in[0] && s->call.out[0])
        alias_buffer(p, slot_of(s->call.in[0]), slot_of(s->call.out[0]),
                     flags & EW_OP_VIEW ? -1 : step);
}

/* out[0] in place of the residual in[3], if this is its last use and the step reads it in no other
 * role. */
static void alias_residual(struct ew_plan *p, const struct ew_step *s, int step)
{
    const struct ew_call *c = &s->call;
    if (!s->kernel.in_place || c->n_in < 4 || !c->in[3] || !c->out[0] || c->out_step ||
        p->concat_of[p->g->nodes[s->node].in[3]] >= 0)
        return;
    const struct ew_slot *residual = slot_of(c->in[3]);
    for (int i = 0; i < 3; i++)
        if (c->in[i] && slot_of(c->in[i])->buffer == residual->buffer)
            return;
    alias_buffer(p, residual, slot_of(c->out[0]), step);
}

/* din[0] in place of dout[0], if the kernel supports it. */
static void alias_gradient(struct ew_plan *p, const struct ew_step *s, int step)
{
    if (s->kernel.in_place && (s->call.fresh & 1) && s->call.din[0] && s->call.dout[0])
        alias_buffer(p, slot_of(s->call.dout[0]), slot_of(s->call.din[0]), step);
}

ew_err ew_plan_own_buffer(struct ew_plan *p, struct ew_slot *s)
{
    if (s->first < 0 || s->buffer >= 0 || s->no_storage || owns_data(s))
        return EW_OK;
    return ew_plan_buffer_new(p, ew_tensor_bytes(&s->t), s->first, s->last, &s->buffer);
}

/* Allocates an input of a concatenation inside the output `whole`, at its channel offset. */
static ew_err place_part(struct ew_plan *p, int value, struct ew_slot *part, struct ew_slot *whole)
{
    const struct ew_node *n = &p->g->nodes[p->concat_of[value]];
    if (whole->first > part->first)
        whole->first = part->first;
    EW_TRY(ew_plan_own_buffer(p, whole));
    part->buffer = whole->buffer;
    for (int i = 0; n->in[i] != value; i++)
        part->at += (size_t)ew_plan_channels(p, n->in[i]) * sizeof(float);
    extend(p, part);
    return EW_OK;
}

/* Gradients get memory at their first write. */
static ew_err make_gradient_buffers(struct ew_plan *p, const struct ew_step *s, int step)
{
    if (s->node < 0) /* clears or seeds one */
        return ew_plan_own_buffer(p, slot_of(s->call.out[0]));
    alias_gradient(p, s, step);
    for (int i = 0; i < s->call.n_in; i++) {
        const int v = p->g->nodes[s->node].in[i];
        if (s->call.din[i] && p->concat_of[v] == s->node)
            EW_TRY(place_part(p, v, &p->grads[v], slot_of(s->call.dout[0])));
        else if (s->call.din[i])
            EW_TRY(ew_plan_own_buffer(p, slot_of(s->call.din[i])));
    }
    return EW_OK;
}

static ew_err make_value_buffers(struct ew_plan *p, const struct ew_step *s, int step)
{
    const struct ew_node *n = &p->g->nodes[s->node];
    alias_input(p, s, step);
    alias_residual(p, s, step);
    if (s->call.out_step) {
        const int v = n->out[0], whole = p->g->nodes[p->concat_of[v]].out[0];
        EW_TRY(place_part(p, v, &p->values[v], &p->values[whole]));
    }
    for (int i = 0; i < s->call.n_out; i++)
        if (s->call.out[i])
            EW_TRY(ew_plan_own_buffer(p, slot_of(s->call.out[i])));
    return ew_plan_own_buffer(p, &p->aux[s->node]);
}

/* True if the step is a no-op: a view that aliases its input, or a concatenation in place. */
static bool is_no_op(const struct ew_plan *p, const struct ew_step *s)
{
    const struct ew_node *n = s->node >= 0 ? &p->g->nodes[s->node] : NULL;
    if (n && s->phase == EW_PHASE_FORWARD && (n->op->flags & EW_OP_VIEW)) {
        const int in = slot_of(s->call.in[0])->buffer;
        return in >= 0 && in == slot_of(s->call.out[0])->buffer;
    }
    return n && n->n_in > 0 && n->in[0] >= 0 && p->concat_of[n->in[0]] == s->node;
}

/* In step order, so that a buffer's lifetime covers all earlier aliases when the next one is
 * considered. */
ew_err ew_plan_make_buffers(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    const int end = p->n_steps;
    for (int i = 0; i < g->n_inputs; i++) { /* inputs persist between runs */
        struct ew_slot *s = &p->values[g->inputs[i]];
        s->first = 0;
        s->last = end;
        EW_TRY(ew_plan_own_buffer(p, s));
    }
    for (int i = 0; i < g->n_outputs; i++)
        ew_plan_touch(&p->values[g->outputs[i]], end);
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        if (s->phase == EW_PHASE_FORWARD)
            EW_TRY(make_value_buffers(p, s, k));
        if (s->phase == EW_PHASE_BACKWARD)
            EW_TRY(make_gradient_buffers(p, s, k));
        if (is_no_op(p, s))
            s->kernel = (struct ew_kernel){.name = "view"};
    }
    return EW_OK;
}
