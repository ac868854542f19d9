/* SPDX-License-Identifier: Apache-2.0 */
/* Host steps: nodes that the device has no kernel for.
 *
 * Such a step runs on the CPU, on copies: what it reads is downloaded before it, what it writes is
 * uploaded after it.  The device's memory stays the home of all values, so lifetimes, views and
 * aliasing do not depend on it.  All host steps share one staging block.
 *
 * Weights that runs do not change are read from the graph. */
#include <stdint.h>

#include "plan/plan_impl.h"

/* ---- Which nodes ---- */

static bool offered(const struct ew_plan *p, const struct ew_call *c, enum ew_phase phase)
{
    struct ew_kernel offers[EW_OFFERS];
    int n = 0;
    const struct ew_kernel_query query = {p->be, c->op, phase, c};
    return ew_backend_offer(&query, offers, &n) == EW_OK && n > 0;
}

/* Inputs in known_in have data in host memory only; false if other nodes read one of them as data
 * on the device. */
static bool knows_its_inputs(const struct ew_plan *p, const struct ew_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (ew_plan_bit(n->op->known_in, i) && n->in[i] >= 0 &&
            p->uses[n->in[i]].known < p->uses[n->in[i]].count)
            return false;
    return true;
}

/* Forward and backward of a node with `aux` must run at the same place, since its layout is
 * private. */
ew_err ew_plan_find_host_nodes(struct ew_plan *p)
{
    const bool train = p->opts.mode == EW_PLAN_TRAIN;
    for (int k = 0; k < p->g->n_nodes && ew_plan_is_remote(p); k++) {
        struct ew_call c;
        if (!p->needed[k])
            continue;
        EW_TRY(ew_group_ask(p->g, k, &p->arena, &c));
        c.be = p->be;
        c.train = train;
        p->on_host[k] = !knows_its_inputs(p, &p->g->nodes[k]) ||
                        !offered(p, &c, EW_PHASE_FORWARD) ||
                        (train && c.op->aux && !offered(p, &c, EW_PHASE_BACKWARD));
    }
    return EW_OK;
}

bool ew_plan_step_on_host(const struct ew_plan *p, const struct ew_step *s)
{
    return ew_plan_is_remote(p) && s->call.be == p->host;
}

/* ---- Calls on copies ---- */

/* The slot that a tensor of a call is in; NULL: a tensor of the graph, used for its shape alone. */
static const struct ew_slot *slot_around(const struct ew_plan *p, const struct ew_tensor *t)
{
    const uintptr_t at = (uintptr_t)t, begin = (uintptr_t)p->slots;
    return t && at >= begin && at < begin + (size_t)p->n_slots * sizeof(*p->slots)
               ? p->slots + (at - begin) / sizeof(*p->slots)
               : NULL;
}

/* The graph's weight in a slot, if this plan does not change it, else NULL. */
static const struct ew_value *fixed_weight(const struct ew_plan *p, const struct ew_slot *s)
{
    const int value = (int)(s - p->values);
    return value < p->g->n_values && s->buffer < 0 && p->g->values[value].kind != EW_VALUE_INPUT &&
                   !ew_plan_changes_weight(p, value)
               ? &p->g->values[value]
               : NULL;
}

/* A slot that occurs twice in a call is copied once. */
static void add_copy(const struct ew_plan *p, struct ew_host_step *h, struct ew_copy wanted)
{
    struct ew_copy *c = &h->copies[h->n_copies++];
    wanted.host_at = h->bytes;
    *c = wanted;
    for (struct ew_copy *first = h->copies; first < c; first++)
        if (first->slot == c->slot) {
            first->in |= c->in;
            first->out |= c->out;
            c->in = c->out = false;
            c->host_at = first->host_at;
            return;
        }
    h->bytes += ew_align_up(ew_plan_host_bytes(p, c->slot));
}

static struct ew_tensor *tensor_at(struct ew_tensor *const *list, int i)
{
    return list ? list[i] : NULL;
}

/* Gives the host's tensor `own` the data of the step's tensor `t`: a weight of the graph, or a
 * copy. */
static void mirror(const struct ew_plan *p, struct ew_host_step *h, const struct ew_tensor *t,
                   struct ew_tensor *own, bool in, bool out)
{
    const struct ew_slot *slot = slot_around(p, t);
    if (!own)
        return;
    own->data = NULL;
    if (!slot || slot->no_storage)
        return;
    const struct ew_value *fixed = fixed_weight(p, slot);
    if (fixed)
        own->data = fixed->t.data;
    else if (ew_slot_has_place(slot))
        add_copy(p, h, (struct ew_copy){.slot = slot, .data = &own->data, .in = in, .out = out});
}

static void mirror_all(const struct ew_plan *p, struct ew_step *s)
{
    const bool forward = s->phase == EW_PHASE_FORWARD, update = s->phase == EW_PHASE_UPDATE;
    const bool writes = forward || s->node < 0; /* writes its outputs; backward reads them */
    const struct ew_call *c = &s->call;
    struct ew_host_step *h = s->host;
    const unsigned kept = forward && c->train && !c->recompute ? c->op->state_in : 0;
    for (int i = 0; i < c->n_in; i++)
        mirror(p, h, tensor_at(c->in, i), tensor_at(h->call.in, i), true,
               ew_plan_bit(kept, i) || (update && i != 1));
    for (int i = 0; i < c->n_out; i++)
        mirror(p, h, tensor_at(c->out, i), tensor_at(h->call.out, i), !writes, writes);
    for (int i = 0; i < c->n_out; i++)
        mirror(p, h, tensor_at(c->dout, i), tensor_at(h->call.dout, i), true, false);
    for (int i = 0; i < c->n_in; i++)
        mirror(p, h, tensor_at(c->din, i), tensor_at(h->call.din, i), !ew_plan_bit(c->fresh, i),
               true);
    if (s->node >= 0 && p->aux[s->node].buffer >= 0)
        add_copy(p, h,
                 (struct ew_copy){.slot = &p->aux[s->node],
                                  .data = &h->call.aux,
                                  .in = !forward || c->recompute,
                                  .out = forward});
}

static ew_err make_host_step(struct ew_plan *p, struct ew_step *s)
{
    struct ew_block *staging = &p->blocks[EW_REGION_STAGING];
    struct ew_host_step *h = ew_arena_array(&p->arena, 1, sizeof(*h));
    EW_CHECK(h, EW_ERR_MEMORY, "node %s: no memory for its step", s->call.name);
    h->copies = ew_arena_array(&p->arena, 2 * (size_t)(s->call.n_in + s->call.n_out) + 1,
                               sizeof(*h->copies));
    EW_CHECK(h->copies, EW_ERR_MEMORY, "node %s: no memory for its step", s->call.name);
    h->call = s->call;
    EW_TRY(ew_plan_host_lists(p, &s->call, &h->call));
    s->host = h;
    mirror_all(p, s);
    h->scratch_at = h->bytes;
    h->bytes += ew_align_up(s->kernel.scratch);
    staging->bytes = h->bytes > staging->bytes ? h->bytes : staging->bytes;
    return EW_OK;
}

ew_err ew_plan_make_host_steps(struct ew_plan *p)
{
    for (int k = 0; k < p->n_steps; k++)
        if (p->steps[k].kernel.run && ew_plan_step_on_host(p, &p->steps[k]))
            EW_TRY(make_host_step(p, &p->steps[k]));
    return EW_OK;
}

void ew_plan_bind_host_step(struct ew_plan *p, struct ew_step *s)
{
    for (const struct ew_copy *c = s->host->copies; c < s->host->copies + s->host->n_copies; c++)
        *c->data = ew_plan_address(p, EW_REGION_STAGING, c->host_at);
    s->host->call.scratch = ew_plan_address(p, EW_REGION_STAGING, s->host->scratch_at);
}
