/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors get a buffer, and which share one: the steps of a plan in, lifetimes out.  Offsets
 * are memory.c's. */
#include "plan/plan_impl.h"

void ew_plan_touch(struct ew_slot *s, int step)
{
    if (s->first < 0)
        s->first = step;
    s->last = step > s->last ? step : s->last;
}

/* The slot around a tensor of a forward step. */
static struct ew_slot *slot_of(struct ew_tensor *t)
{
    return (struct ew_slot *)t; /* its first member */
}

/* True where the slot's data is its own: a weight, a constant, a known value. */
static bool owns_data(const struct ew_slot *s)
{
    return s->buffer < 0 && s->t.data;
}

/* Its buffer, which it shares, lives as long as it does. */
static void extend(struct ew_plan *p, const struct ew_slot *s)
{
    struct ew_buffer *b = &p->buffers[s->buffer];
    b->last = s->last > b->last ? s->last : b->last;
}

/* Lets `to` take over the buffer of `from`, where nobody reads that after `step` (-1: or reads the
 * same there). */
static void take_over(struct ew_plan *p, const struct ew_slot *from, struct ew_slot *to, int step)
{
    if (from->buffer < 0 || to->buffer >= 0 || to->first < 0 || to->no_storage ||
        ew_tensor_bytes(&from->t) != ew_tensor_bytes(&to->t))
        return;
    if (step >= 0 && p->buffers[from->buffer].last != step)
        return;
    to->buffer = from->buffer;
    extend(p, to);
}

/* out[0] in place of in[0], where the operator allows it; views always. */
static void share_buffer(struct ew_plan *p, const struct ew_step *s, int step)
{
    const unsigned flags = p->g->nodes[s->node].op->flags;
    if ((flags & (EW_OP_INPLACE | EW_OP_VIEW)) && s->call.in[0] && s->call.out[0])
        take_over(p, slot_of(s->call.in[0]), slot_of(s->call.out[0]),
                  flags & EW_OP_VIEW ? -1 : step);
}

/* out[0] in place of a residual that nobody reads afterwards, nor the step as anything else. */
static void share_residual(struct ew_plan *p, const struct ew_step *s, int step)
{
    const struct ew_call *c = &s->call;
    if (!s->kernel.in_place || c->n_in < 4 || !c->in[3] || !c->out[0] || c->out_step ||
        p->joined[p->g->nodes[s->node].in[3]] >= 0)
        return;
    const struct ew_slot *residual = slot_of(c->in[3]);
    for (int i = 0; i < 3; i++)
        if (c->in[i] && slot_of(c->in[i])->buffer == residual->buffer)
            return;
    take_over(p, residual, slot_of(c->out[0]), step);
}

/* The gradient of in[0] in place of that of out[0], where the kernel can write it there. */
static void share_gradient(struct ew_plan *p, const struct ew_step *s, int step)
{
    if (s->kernel.in_place && (s->call.fresh & 1) && s->call.din[0] && s->call.dout[0])
        take_over(p, slot_of(s->call.dout[0]), slot_of(s->call.din[0]), step);
}

ew_err ew_plan_own_buffer(struct ew_plan *p, struct ew_slot *s)
{
    if (s->first < 0 || s->buffer >= 0 || s->no_storage || owns_data(s))
        return EW_OK;
    return ew_plan_buffer_new(p, ew_tensor_bytes(&s->t), s->first, s->last, &s->buffer);
}

/* Gives an input of a concatenation its place in the whole, which gets its memory now if it has
 * none. */
static ew_err place_part(struct ew_plan *p, int value, struct ew_slot *part, struct ew_slot *whole)
{
    const struct ew_node *n = &p->g->nodes[p->joined[value]];
    if (whole->first > part->first)
        whole->first = part->first;
    EW_TRY(ew_plan_own_buffer(p, whole));
    part->buffer = whole->buffer;
    for (int i = 0; n->in[i] != value; i++)
        part->at += (size_t)ew_plan_channels(p, n->in[i]) * sizeof(float);
    extend(p, part);
    return EW_OK;
}

/* Gradients get their memory where they are first written. */
static ew_err make_gradient_buffers(struct ew_plan *p, const struct ew_step *s, int step)
{
    if (s->node < 0) /* a step that clears or seeds one */
        return ew_plan_own_buffer(p, slot_of(s->call.out[0]));
    share_gradient(p, s, step);
    for (int i = 0; i < s->call.n_in; i++) {
        const int v = p->g->nodes[s->node].in[i];
        if (s->call.din[i] && p->joined[v] == s->node)
            EW_TRY(place_part(p, v, &p->grads[v], slot_of(s->call.dout[0])));
        else if (s->call.din[i])
            EW_TRY(ew_plan_own_buffer(p, slot_of(s->call.din[i])));
    }
    return EW_OK;
}

static ew_err make_value_buffers(struct ew_plan *p, const struct ew_step *s, int step)
{
    const struct ew_node *n = &p->g->nodes[s->node];
    share_buffer(p, s, step);
    share_residual(p, s, step);
    if (s->call.out_step) {
        const int v = n->out[0], whole = p->g->nodes[p->joined[v]].out[0];
        EW_TRY(place_part(p, v, &p->values[v], &p->values[whole]));
    }
    for (int i = 0; i < s->call.n_out; i++)
        if (s->call.out[i])
            EW_TRY(ew_plan_own_buffer(p, slot_of(s->call.out[i])));
    return ew_plan_own_buffer(p, &p->aux[s->node]);
}

/* A view that shares its input's buffer has nothing left to do, and neither has a concatenation of
 * what lies there already. */
static bool is_view(const struct ew_plan *p, const struct ew_step *s)
{
    const struct ew_node *n = s->node >= 0 ? &p->g->nodes[s->node] : NULL;
    if (n && s->phase == EW_PHASE_FORWARD && (n->op->flags & EW_OP_VIEW)) {
        const int in = slot_of(s->call.in[0])->buffer;
        return in >= 0 && in == slot_of(s->call.out[0])->buffer;
    }
    return n && n->n_in > 0 && n->in[0] >= 0 && p->joined[n->in[0]] == s->node;
}

/* In step order, so that a shared buffer's lifetime is complete when the next sharer asks. */
ew_err ew_plan_make_buffers(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    const int end = p->n_steps;
    for (int i = 0; i < g->n_inputs; i++) { /* inputs keep their contents from run to run */
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
        if (is_view(p, s))
            s->kernel = (struct ew_kernel){.name = "view"};
    }
    return EW_OK;
}
