/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of a step's kernel, and the memory that the kernel needs. */
#include <string.h>

#include "plan/plan_impl.h"

/* The kernels offered for a node's call by the device, else by the host; c->be says which. */
static ew_err find_kernels(struct ew_plan *p, int node, struct ew_kernel_query *query,
                           struct ew_call *c, struct ew_kernel offers[EW_OFFERS], int *n)
{
    *n = 0;
    query->be = c->be = p->on_host[node] ? p->host : p->be;
    if (p->on_host[node])
        EW_TRY(ew_plan_host_call(p, c, &query->c));
    EW_TRY(ew_backend_offer(query, offers, n));
    if (*n == 0 && query->be != p->host) {
        query->be = c->be = p->host;
        EW_TRY(ew_plan_host_call(p, c, &query->c));
        EW_TRY(ew_backend_offer(query, offers, n));
    }
    EW_CHECK(*n > 0, EW_ERR_UNSUPPORTED, "node %s: operator %s cannot be %s", c->name,
             query->op->name, query->phase == EW_PHASE_FORWARD ? "run" : "trained through");
    /* on host copies nothing is fused, in place or split */
    for (int i = 0; i < *n && query->be != p->be; i++) {
        offers[i].roles = 0;
        offers[i].in_place = false;
        offers[i].reduce = offers[i].apply = NULL;
    }
    return EW_OK;
}

static int find_named(const struct ew_kernel *offers, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(offers[i].name, name) == 0)
            return i;
    return -1;
}

static ew_err run_nothing(const struct ew_call *c)
{
    return EW_OK;
}

/* The offer with the given name, else by measurement, else the first (best by rules). */
static ew_err pick(struct ew_plan *p, int node, const struct ew_kernel_query *query,
                   const struct ew_kernel *offers, int n, int *best)
{
    const struct ew_plan_given *given = p->opts.given;
    const char *wanted = given && given->kernels ? given->kernels[node] : NULL;
    *best = wanted ? find_named(offers, n, wanted) : -1;
    if (*best >= 0)
        return EW_OK;
    *best = 0;
    return p->opts.tuner && !p->opts.dry && query->c->n_fused == 0
               ? ew_tuner_pick(p->opts.tuner, query->be == p->host ? p->host : p->be, query, offers,
                               n, best)
               : EW_OK;
}

ew_err ew_plan_choose_kernel(struct ew_plan *p, enum ew_phase phase, struct ew_node_call *nc,
                             struct ew_kernel *out)
{
    const struct ew_node *node = &p->g->nodes[nc->node];
    struct ew_call *c = &nc->call;
    struct ew_kernel_query query = {.op = node->op, .phase = phase, .c = c};
    struct ew_kernel offers[EW_OFFERS];
    int n, best;
    c->out_step = c->recompute || node->n_out == 0 ? 0 : ew_plan_out_step(p, node->out[0]);
    EW_TRY(ew_plan_add_roles(p, nc->node, phase, c));
    *out = (struct ew_kernel){.name = "empty", .run = run_nothing};
    c->be = p->be;
    if (ew_call_is_empty(c))
        return EW_OK;
    EW_TRY(find_kernels(p, nc->node, &query, c, offers, &n));
    EW_TRY(pick(p, nc->node, &query, offers, n, &best));
    *out = offers[best];
    const unsigned roles = c->roles;
    if (!c->recompute)
        EW_TRY(ew_plan_apply_groups(p, nc->node, phase, out->roles, c));
    if (c->roles == roles)
        return EW_OK;
    query.c = c;
    EW_TRY(find_kernels(p, nc->node, &query, c, offers,
                        &n)); /* the same kernel, for the call with its new roles */
    best = find_named(offers, n, out->name);
    EW_CHECK(best >= 0, EW_ERR_INTERNAL, "node %s: kernel %s cannot do what it has offered",
             c->name, out->name);
    *out = offers[best];
    return EW_OK;
}

/* The caller's packed weights for this kernel of this node, or NULL. */
static const void *find_packed(const struct ew_plan *p, int node, const struct ew_kernel *k)
{
    const struct ew_plan_given *given = p->opts.given;
    int i = given && given->packed_of && k->packed ? given->packed_of[node] : -1;
    for (; i >= 0; i = given->packed[i].next)
        if (given->packed[i].bytes == k->packed && strcmp(given->packed[i].kernel, k->name) == 0)
            return given->packed[i].data;
    return NULL;
}

/* Fails if the kernel reads weights that a compact engine has left out. */
static ew_err check_absent(const struct ew_plan *p, const struct ew_step *s)
{
    const bool *absent = p->opts.given ? p->opts.given->absent : NULL;
    const struct ew_node *n = &p->g->nodes[s->node];
    for (int i = 0; absent && i < n->n_in; i++)
        EW_CHECK(
            n->in[i] < 0 || !absent[n->in[i]] || (s->given && ew_plan_bit(s->kernel.packs, i)),
            EW_ERR_UNSUPPORTED,
            "node %s: kernel %s needs the weights %s, which were left out as packed for another",
            n->name, s->kernel.name, p->g->values[n->in[i]].name);
    return EW_OK;
}

void ew_plan_touch_call(const struct ew_node_call *c, int step)
{
    for (int i = 0; i < c->n_slots; i++)
        ew_plan_touch(c->slots[i], step);
    for (int i = 0; i < c->call.n_fused; i++)
        ew_plan_touch_call(ew_plan_fused_call(&c->call, i), step);
}

ew_err ew_plan_add_call(struct ew_plan *p, enum ew_phase phase, const struct ew_node_call *c,
                        const struct ew_kernel *k)
{
    const int step = p->n_steps;
    struct ew_step *s;
    EW_TRY(ew_plan_step_new(p, &s));
    s->node = c->node;
    s->phase = phase;
    s->call = c->call;
    s->kernel = *k;
    const bool on_host = ew_plan_step_on_host(p, s);
    if (k->scratch && !on_host)
        EW_TRY(ew_plan_buffer_new(p, k->scratch, step, step, &s->scratch));
    s->state_at = ew_plan_reserve(p, EW_REGION_STATES, k->state);
    s->given = phase == EW_PHASE_FORWARD ? find_packed(p, s->node, k) : NULL;
    s->packed_at = ew_plan_reserve(p, on_host ? EW_REGION_HOST_PACKED : EW_REGION_PACKED,
                                   ew_plan_uses_given(p, s) ? 0 : k->packed);
    EW_TRY(ew_plan_share_buffer(p));
    return check_absent(p, s);
}
