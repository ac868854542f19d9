/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that the device has no kernel for.
 *
 * Such a step runs on the CPU, on copies: what it reads comes from the device before it, what it
 * has written goes back behind it.  The device's memory stays the one place where values live, so
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
        if ((n->op->known_in >> i & 1) && n->in[i] >= 0 && !ew_plan_knows_apart(p, n->in[i]))
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

struct making {
    struct ew_plan *p;
    const struct ew_step *s;
    struct ew_host_step *h;
    struct ew_tensor *const *from[4]; /* lists of the step's call, and of the host's */
    struct ew_tensor **to[4];
    int n[4];
};

static const struct ew_slot *find_in(const struct ew_slot *slots, int n, const struct ew_tensor *t)
{
    const uintptr_t at = (uintptr_t)t, begin = (uintptr_t)slots;
    return at >= begin && at < begin + (size_t)n * sizeof(*slots)
               ? slots + (at - begin) / sizeof(*slots)
               : NULL;
}

static const struct ew_slot *slot_around(const struct ew_plan *p, const struct ew_tensor *t)
{
    const struct ew_slot *const lists[] = {p->values, p->grads, p->recompute, p->state[0],
                                           p->state[1]};
    const struct ew_slot *s = NULL;
    for (size_t i = 0; i < EW_COUNT(lists) && !s; i++)
        s = find_in(lists[i], p->g->n_values, t);
    return s;
}

/* Weights that no run of this plan changes; *data: as the host has them. */
static bool is_fixed(const struct ew_plan *p, const struct ew_slot *s, void **data)
{
    const struct ew_slot *own = find_in(p->values, p->g->n_values, &s->t);
    const struct ew_value *v = own ? &p->g->values[own - p->values] : NULL;
    if (!v || own->buffer >= 0 || v->kind == EW_VALUE_INPUT)
        return false;
    *data = v->t.data;
    return p->opts.mode != EW_PLAN_TRAIN || v->kind == EW_VALUE_CONST || v->kind == EW_VALUE_ACT ||
           (v->kind == EW_VALUE_PARAM && v->frozen);
}

static struct ew_copy *add_copy(struct making *m, size_t bytes)
{
    struct ew_host_step *h = m->h;
    struct ew_copy *c = &h->copies[h->n_copies++];
    *c = (struct ew_copy){.host_at = h->bytes, .bytes = bytes};
    h->bytes += ew_align_up(bytes);
    return c;
}

/* The tensor that the host sees of tensor i of a list; one that stands there twice is one. */
static ew_err mirror(struct making *m, int list, int i, bool in, bool out)
{
    struct ew_tensor *t = m->from[list] ? m->from[list][i] : NULL;
    const struct ew_slot *slot = t ? slot_around(m->p, t) : NULL;
    if (!t)
        return EW_OK;
    for (int k = 0; slot && k < m->h->n_copies; k++)
        if (m->h->copies[k].slot == slot) {
            m->h->copies[k].in |= in;
            m->h->copies[k].out |= out;
            m->to[list][i] = m->h->copies[k].t;
            return EW_OK;
        }
    struct ew_tensor *own = ew_arena_array(&m->p->arena, 1, sizeof(*own));
    EW_CHECK(own, EW_ERR_MEMORY, "node %s: no memory for its step", m->s->call.name);
    *own = ew_plan_host_view(m->p, t);
    own->data = NULL;
    m->to[list][i] = own;
    if (!slot || slot->no_storage || is_fixed(m->p, slot, &own->data) ||
        (slot->buffer < 0 && !slot->resident && !slot->is_optimizer))
        return EW_OK;
    struct ew_copy *c = add_copy(m, ew_tensor_bytes(own));
    own->data = NULL;
    c->floats = ew_plan_converts(m->p, slot);
    c->slot = slot;
    c->t = own;
    c->in = in;
    c->out = out;
    return EW_OK;
}

enum { IN, OUT, DIN, DOUT };

static bool bit(unsigned bits, int i)
{
    return i < 32 && (bits >> i & 1);
}

static ew_err mirror_all(struct making *m)
{
    const struct ew_step *s = m->s;
    const bool forward = s->phase == EW_PHASE_FORWARD, update = s->phase == EW_PHASE_UPDATE;
    const bool writes = forward || s->node < 0; /* its outputs; backward reads them */
    const unsigned kept = forward && s->call.train && !s->call.recompute ? s->call.op->state_in : 0;
    for (int i = 0; i < s->call.n_in; i++)
        EW_TRY(mirror(m, IN, i, true, bit(kept, i) || (update && i != 1)));
    for (int i = 0; i < s->call.n_out; i++)
        EW_TRY(mirror(m, OUT, i, !writes, writes));
    for (int i = 0; i < s->call.n_out; i++)
        EW_TRY(mirror(m, DOUT, i, true, false));
    for (int i = 0; i < s->call.n_in; i++)
        EW_TRY(mirror(m, DIN, i, !bit(s->call.fresh, i), true));
    if (s->aux >= 0) {
        struct ew_copy *c = add_copy(m, m->p->buffers[s->aux].size);
        c->in = !forward || s->call.recompute;
        c->out = forward;
    }
    return EW_OK;
}

/* The host's lists of tensors, all NULL yet. */
static ew_err make_lists(struct making *m)
{
    const struct ew_call *c = &m->s->call;
    struct ew_tensor *const *const from[] = {c->in, c->out, c->din, c->dout};
    const int n[] = {c->n_in, c->n_out, c->n_in, c->n_out};
    const size_t all = 2 * (size_t)(c->n_in + c->n_out) + 1;
    m->h = ew_arena_array(&m->p->arena, 1, sizeof(*m->h));
    EW_CHECK(m->h, EW_ERR_MEMORY, "node %s: no memory for its step", c->name);
    m->h->copies = ew_arena_array(&m->p->arena, all, sizeof(*m->h->copies));
    bool ok = m->h->copies != NULL;
    for (int k = 0; k < 4; k++) {
        m->from[k] = from[k];
        m->n[k] = n[k];
        m->to[k] =
            from[k] ? ew_arena_array(&m->p->arena, (size_t)n[k] + 1, sizeof(*m->to[k])) : NULL;
        ok &= !from[k] || m->to[k];
    }
    EW_CHECK(ok, EW_ERR_MEMORY, "node %s: no memory for its step", c->name);
    return EW_OK;
}

static ew_err make_host_step(struct ew_plan *p, struct ew_step *s)
{
    struct making m = {.p = p, .s = s};
    EW_TRY(make_lists(&m));
    EW_TRY(mirror_all(&m));
    m.h->call = s->call;
    m.h->call.in = m.to[IN];
    m.h->call.out = m.to[OUT];
    m.h->call.din = m.to[DIN];
    m.h->call.dout = m.to[DOUT];
    m.h->scratch_at = m.h->bytes;
    m.h->bytes += ew_align_up(s->kernel.scratch);
    p->staging_bytes = m.h->bytes > p->staging_bytes ? m.h->bytes : p->staging_bytes;
    s->host = m.h;
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
    if (c->slot) {
        ew_plan_locate(p, c->slot, &c->device, &c->at);
        c->t->data = c->host;
    } else {
        c->device = p->block;
        c->at = p->buffers[s->aux].offset;
        s->host->call.aux = c->host;
    }
}

void ew_plan_bind_host_steps(struct ew_plan *p)
{
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        if (!s->host)
            continue;
        for (int i = 0; i < s->host->n_copies; i++)
            bind_copy(p, s, &s->host->copies[i]);
        s->host->call.scratch = p->staging + s->host->scratch_at;
    }
}
