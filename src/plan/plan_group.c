/* SPDX-License-Identifier: Apache-2.0 */
/* Fused groups in a plan (backend/group.h): which the device has found, which are applied, and what
 * that means for calls, memory and lifetimes. */
#include <string.h>

#include "plan/plan_impl.h"

/* ---- Finding ---- */

static ew_err new_members(struct ew_plan *p, size_t n)
{
    const size_t groups = (size_t)p->groups.n + 1, nodes = (size_t)p->g->n_nodes + 1;
    p->members = ew_arena_array(&p->arena, n + 1, sizeof(*p->members));
    p->applied = ew_arena_array(&p->arena, groups, sizeof(*p->applied));
    p->shared = ew_arena_array(&p->arena, groups, sizeof(*p->shared));
    p->member_of = ew_arena_array(&p->arena, nodes, sizeof(*p->member_of));
    p->backward = ew_arena_array(&p->arena, nodes, sizeof(*p->backward));
    EW_CHECK(p->members && p->applied && p->shared && p->member_of && p->backward, EW_ERR_MEMORY,
             "no memory for the fused groups of graph %s", p->g->name);
    return EW_OK;
}

/* Links the groups' steps by node. */
static ew_err index_members(struct ew_plan *p)
{
    const struct ew_group_list *l = &p->groups;
    size_t n = 0;
    for (int i = 0; i < l->n; i++)
        n += (size_t)l->groups[i].n_steps;
    EW_TRY(new_members(p, n));
    for (int k = 0; k < p->g->n_nodes; k++)
        p->member_of[k] = -1;
    for (int i = l->n - 1, at = 0; i >= 0; i--) {
        p->shared[i] = -1;
        for (int k = l->groups[i].n_steps - 1; k >= 0; k--, at++) {
            const int node = l->groups[i].steps[k].node;
            p->members[at] = (struct ew_member){.group = i, .step = k, .next = p->member_of[node]};
            p->member_of[node] = at;
        }
    }
    return EW_OK;
}

static void apply(struct ew_plan *p, int group)
{
    const struct ew_fused_group *g = &p->groups.groups[group];
    p->applied[group] = true;
    if (g->value >= 0)
        p->values[g->value].no_storage = p->recompute[g->value].no_storage = true;
    if (g->gradient >= 0)
        p->grads[g->gradient].no_storage = true;
    for (int i = 0; g->concat >= 0 && i < p->g->nodes[g->concat].n_in; i++)
        p->concat_of[p->g->nodes[g->concat].in[i]] = g->concat;
    for (int k = 0; k < g->n_steps; k++) {
        const struct ew_group_step *s = &g->steps[k];
        if (s->phase == EW_PHASE_BACKWARD) {
            p->backward[s->node].unread |= s->unread;
            p->backward[s->node].skipped |= s->skipped;
        }
        for (int i = 0; i < s->n_calls; i++)
            if (s->calls[i].phase == EW_PHASE_BACKWARD)
                p->backward[s->calls[i].of].elsewhere = true;
    }
}

ew_err ew_plan_find_groups(struct ew_plan *p)
{
    const struct ew_fuse_query query = {.be = p->be,
                                        .g = p->g,
                                        .train = p->opts.mode == EW_PLAN_TRAIN,
                                        .update = p->opts.update && !p->opts.bucket_bytes,
                                        .micro_batches = p->strategy.micro_batches,
                                        .needed = p->needed,
                                        .on_host = p->on_host,
                                        .uses = p->uses,
                                        .needs_grad = p->needs_grad,
                                        .keep = p->keep};
    p->groups.arena = &p->arena;
    EW_TRY(ew_backend_fuse(&query, &p->groups));
    EW_TRY(index_members(p));
    for (int i = 0; i < p->groups.n; i++)
        if (p->groups.groups[i].decided)
            apply(p, i);
    return EW_OK;
}

int ew_plan_source(const struct ew_plan *p, int value)
{
    return value >= 0 && p->values[value].no_storage
               ? p->g->nodes[p->g->values[value].producer].in[0]
               : value;
}

/* ---- Roles of a step ---- */

static const struct ew_group_step *step_of(const struct ew_plan *p, const struct ew_member *m)
{
    return &p->groups.groups[m->group].steps[m->step];
}

/* The next member of a node, from i on, of an applied group in this phase; -1: none. */
static int next_applied(const struct ew_plan *p, int i, enum ew_phase phase)
{
    while (i >= 0 &&
           (!p->applied[p->members[i].group] || step_of(p, &p->members[i])->phase != phase))
        i = p->members[i].next;
    return i;
}

/* ---- Calls of other nodes ---- */

static ew_err add_role(struct ew_plan *p, const struct ew_group_step *s, int depth,
                       struct ew_call *c);

static ew_err add_applied_roles(struct ew_plan *p, int node, enum ew_phase phase, int depth,
                                struct ew_call *c)
{
    int i = next_applied(p, p->member_of[node], phase);
    for (; i >= 0; i = next_applied(p, p->members[i].next, phase))
        if (!c->recompute || p->groups.groups[p->members[i].group].decided)
            EW_TRY(add_role(p, step_of(p, &p->members[i]), depth, c));
    return EW_OK;
}

/* Makes the fused call of another node; roles of its own groups are included down to `depth`. */
static ew_err make_call(struct ew_plan *p, const struct ew_group_call *of, enum ew_phase phase,
                        int depth, struct ew_node_call *o)
{
    if (of->phase == EW_PHASE_UPDATE) {
        *o = (struct ew_node_call){.node = -1};
        return ew_plan_update_call(p, of->of, &o->call);
    }
    if (of->phase == EW_PHASE_FORWARD)
        EW_TRY(ew_plan_forward_call(p, of->of, phase, p->values, o));
    else
        EW_TRY(ew_plan_backward_call(p, of->of, o));
    o->call.be = p->be;
    return of->phase == EW_PHASE_BACKWARD && depth > 0
               ? add_applied_roles(p, of->of, of->phase, depth - 1, &o->call)
               : EW_OK;
}

/* Adds a role to the call, and the fused calls that belong to it. */
static ew_err add_role(struct ew_plan *p, const struct ew_group_step *s, int depth,
                       struct ew_call *c)
{
    struct ew_fused_call *all =
        ew_arena_array(&p->arena, (size_t)(c->n_fused + s->n_calls), sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "node %s: no memory for its fused group", c->name);
    if (c->n_fused)
        memcpy(all, c->fused, (size_t)c->n_fused * sizeof(*all));
    for (int i = 0; i < s->n_calls; i++) {
        struct ew_node_call *o = ew_arena_array(&p->arena, 1, sizeof(*o));
        EW_CHECK(o, EW_ERR_MEMORY, "node %s: no memory for its fused group", c->name);
        EW_TRY(make_call(p, &s->calls[i], s->phase, depth, o));
        all[c->n_fused++] = (struct ew_fused_call){.role = s->calls[i].role, .call = &o->call};
    }
    c->fused = all;
    c->roles |= s->role;
    return EW_OK;
}

/* A step includes the backward of a norm, which includes those of its readers. */
#define FUSED_DEPTH 1

ew_err ew_plan_add_roles(struct ew_plan *p, int node, enum ew_phase phase, struct ew_call *c)
{
    return add_applied_roles(p, node, phase, FUSED_DEPTH, c);
}

ew_err ew_plan_apply_groups(struct ew_plan *p, int node, enum ew_phase phase, unsigned roles,
                            struct ew_call *c)
{
    for (int i = p->member_of[node]; i >= 0; i = p->members[i].next) {
        const struct ew_member *m = &p->members[i];
        const struct ew_group_step *s = step_of(p, m);
        if (p->applied[m->group] || m->step != 0 || s->phase != phase || (s->role & ~roles))
            continue;
        apply(p, m->group);
        EW_TRY(add_role(p, s, FUSED_DEPTH, c));
    }
    return EW_OK;
}

/* ---- Memory ---- */

ew_err ew_plan_share_buffer(struct ew_plan *p)
{
    const int step = p->n_steps - 1;
    struct ew_step *s = &p->steps[step];
    int i = next_applied(p, p->member_of[s->node], s->phase);
    for (; i >= 0; i = next_applied(p, p->members[i].next, s->phase)) {
        int *shared = &p->shared[p->members[i].group];
        const size_t bytes = p->groups.groups[p->members[i].group].shared;
        if (bytes == 0)
            continue;
        if (*shared < 0) /* its lifetime begins with the group's first step */
            EW_TRY(ew_plan_buffer_new(p, bytes, step, step, shared));
        p->buffers[*shared].last = step;
        s->shared = *shared;
    }
    return EW_OK;
}

static void bind_calls(struct ew_plan *p, const struct ew_call *c)
{
    for (int i = 0; i < c->n_fused; i++) {
        struct ew_node_call *o = ew_plan_fused_call(c, i);
        if (o->node >= 0)
            o->call.aux = p->aux[o->node].t.data;
        bind_calls(p, &o->call);
    }
}

void ew_plan_bind_groups(struct ew_plan *p, struct ew_step *s)
{
    if (s->shared >= 0)
        s->call.shared = ew_plan_buffer_address(p, s->shared);
    bind_calls(p, &s->call);
}

/* ---- Concatenations ---- */

int64_t ew_plan_out_step(const struct ew_plan *p, int value)
{
    return value >= 0 && p->concat_of[value] >= 0
               ? ew_plan_channels(p, p->g->nodes[p->concat_of[value]].out[0])
               : 0;
}
