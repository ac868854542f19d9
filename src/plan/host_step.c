/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that the device has no kernel for.
 *
 * Such a step runs on the CPU, on copies: what it reads comes from the device before it, what it
 * has written goes back after it.  The device's memory stays the one place where values live, so
 * the rest of the plan (lifetimes, views, buffers that are shared) knows nothing of it.  Steps take
 * turns with one block of the host's memory.
 *
 * Weights that runs do not change are read where the graph has them. */
#include <stdint.h>

#include "plan/plan_impl.h"

/* ---- Which ---- */

static bool offered(const struct ew_plan *p, const struct ew_call *c, enum ew_phase phase)
{
    struct ew_kernel offers[EW_OFFERS];
    int n = 0;
    const struct ew_kernel_query query = {p->be, c->op, phase, c};
    return ew_backend_offer(&query, offers, &n) == EW_OK && n > 0;
}

/* Inputs that it must know stay the host's; one that other nodes read on the device cannot. */
static bool knows_its_inputs(const struct ew_plan *p, const struct ew_node *n)
{
    for (int i = 0; i < n->n_in && i < 32; i++)
        if ((n->op->known_in >> i & 1) && n->in[i] >= 0 &&
            p->reading[n->in[i]].known < p->reading[n->in[i]].count)
            return false;
    return true;
}

/* What forward leaves for backward in `aux` is between the two: both run at one place. */
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

/* The slot around a tensor of a call; NULL: the graph's own, of which only the shape is used. */
static const struct ew_slot *slot_around(const struct ew_plan *p, const struct ew_tensor *t)
{
    const uintptr_t at = (uintptr_t)t, begin = (uintptr_t)p->slots;
    return t && at >= begin && at < begin + (size_t)p->n_slots * sizeof(*p->slots)
               ? p->slots + (at - begin) / sizeof(*p->slots)
               : NULL;
}

/* Weights that no run of this plan changes; *data: as the host has them. */
static bool is_fixed(const struct ew_plan *p, const struct ew_slot *s, void **data)
{
    const struct ew_value *v = s - p->values < p->g->n_values ? &p->g->values[s - p->values] : NULL;
    if (!v || s->buffer >= 0 || v->kind == EW_VALUE_INPUT)
        return false;
    *data = v->t.data;
    return p->opts.mode != EW_PLAN_TRAIN || v->kind == EW_VALUE_CONST || v->kind == EW_VALUE_ACT ||
           (v->kind == EW_VALUE_PARAM && v->frozen);
}

static struct ew_copy *find_copy(struct ew_host_step *h, const struct ew_slot *slot)
{
    for (int k = 0; k < h->n_copies; k++)
        if (h->copies[k].slot == slot)
            return &h->copies[k];
    return NULL;
}

static struct ew_copy *add_copy(struct ew_host_step *h, const struct ew_slot *slot, size_t bytes)
{
    struct ew_copy *c = &h->copies[h->n_copies++];
    *c = (struct ew_copy){.slot = slot, .host_at = h->bytes, .place.bytes = bytes};
    h->bytes += ew_align_up(bytes);
    return c;
}

enum { IN, OUT, DIN, DOUT };

static struct ew_tensor *tensor_of(const struct ew_call *c, int list, int i)
{
    struct ew_tensor *const *const lists[] = {c->in, c->out, c->din, c->dout};
    return lists[list] ? lists[list][i] : NULL;
}

/* What the host has of tensor i of a list: data of its own, or a copy; one that stands in two
 * places is one copy. */
static void mirror(const struct ew_plan *p, struct ew_step *s, int list, int i, bool in, bool out)
{
    struct ew_tensor *own = tensor_of(&s->host->call, list, i);
    const struct ew_slot *slot = slot_around(p, tensor_of(&s->call, list, i));
    if (!own)
        return;
    own->data = NULL;
    if (!slot || slot->no_storage || is_fixed(p, slot, &own->data) ||
        (slot->buffer < 0 && !slot->resident && !slot->is_optimizer))
        return;
    own->data = NULL;
    struct ew_copy *c = find_copy(s->host, slot);
    if (!c)
        c = add_copy(s->host, slot, ew_tensor_bytes(own));
    c->in |= in;
    c->out |= out;
}

static bool bit(unsigned bits, int i)
{
    return i < 32 && (bits >> i & 1);
}

static void mirror_all(const struct ew_plan *p, struct ew_step *s)
{
    const bool forward = s->phase == EW_PHASE_FORWARD, update = s->phase == EW_PHASE_UPDATE;
    const bool writes = forward || s->node < 0; /* its outputs; backward reads them */
    const unsigned kept = forward && s->call.train && !s->call.recompute ? s->call.op->state_in : 0;
    for (int i = 0; i < s->call.n_in; i++)
        mirror(p, s, IN, i, true, bit(kept, i) || (update && i != 1));
    for (int i = 0; i < s->call.n_out; i++)
        mirror(p, s, OUT, i, !writes, writes);
    for (int i = 0; i < s->call.n_out; i++)
        mirror(p, s, DOUT, i, true, false);
    for (int i = 0; i < s->call.n_in; i++)
        mirror(p, s, DIN, i, !bit(s->call.fresh, i), true);
    if (s->aux >= 0) {
        struct ew_copy *c = add_copy(s->host, NULL, p->buffers[s->aux].size);
        c->in = !forward || s->call.recompute;
        c->out = forward;
    }
}

static ew_err make_host_step(struct ew_plan *p, struct ew_step *s)
{
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
    p->staging_bytes = h->bytes > p->staging_bytes ? h->bytes : p->staging_bytes;
    return EW_OK;
}

ew_err ew_plan_make_host_steps(struct ew_plan *p)
{
    for (int k = 0; k < p->n_steps; k++)
        if (p->steps[k].kernel.run && ew_plan_step_on_host(p, &p->steps[k]))
            EW_TRY(make_host_step(p, &p->steps[k]));
    return EW_OK;
}

static void bind_copy(struct ew_plan *p, struct ew_step *s, struct ew_copy *c)
{
    c->host = p->staging + c->host_at;
    if (!c->slot) {
        c->place.memory = p->block;
        c->place.at = p->buffers[s->aux].offset;
        s->host->call.aux = c->host;
        return;
    }
    ew_plan_locate(p, c->slot, &c->place);
    for (int list = IN; list <= DOUT; list++)
        for (int i = 0; i < (list == IN || list == DIN ? s->call.n_in : s->call.n_out); i++) {
            struct ew_tensor *own = tensor_of(&s->host->call, list, i);
            if (own && slot_around(p, tensor_of(&s->call, list, i)) == c->slot)
                own->data = c->host;
        }
}

void ew_plan_bind_host_steps(struct ew_plan *p)
{
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        for (int i = 0; s->host && i < s->host->n_copies; i++)
            bind_copy(p, s, &s->host->copies[i]);
        if (s->host)
            s->host->call.scratch = p->staging + s->host->scratch_at;
    }
}
