/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates the memory of a plan and binds the calls to addresses. */
#include <string.h>

#include "plan/plan_impl.h"

static void bind_slots(struct ew_plan *p)
{
    for (struct ew_slot *s = p->slots; s < p->slots + p->n_slots; s++)
        if (ew_slot_has_place(s))
            s->t.data = ew_plan_address(p, s->region, ew_plan_offset(p, s));
}

/* ew_call.packed is not const, though the caller's packed weights are never written. */
static void *unconst(const void *p)
{
    void *q;
    memcpy(&q, &p, sizeof(q));
    return q;
}

/* Uses the caller's block, if large enough, for the arena, and the rest of it for packed weights.
 */
static void use_given_block(struct ew_plan *p)
{
    struct ew_block *steps = &p->blocks[EW_REGION_STEPS], *packed = &p->blocks[EW_REGION_PACKED];
    const struct ew_plan_given *given = p->opts.given;
    const size_t room = given && given->block ? ew_backend_bytes(given->block) : 0;
    const size_t at = ew_align_up(steps->bytes);
    steps->given = room && room >= steps->bytes;
    packed->given = steps->given && given->block_alone && room >= at + packed->bytes;
    if (steps->given)
        steps->memory = given->block;
    if (!packed->given)
        return;
    packed->memory = given->block;
    for (int k = 0; k < p->n_steps; k++)
        if (!p->steps[k].host)
            p->steps[k].packed_at += at;
}

static ew_err alloc_blocks(struct ew_plan *p)
{
    use_given_block(p);
    for (enum ew_region i = 0; i < EW_REGIONS; i++) {
        struct ew_block *b = &p->blocks[i];
        if (!b->given)
            EW_TRY(ew_backend_alloc(i < EW_REGION_STATES ? p->be : p->host,
                                    i == EW_REGION_STEPS ? ew_plan_whole_block(p) : b->bytes,
                                    &b->memory));
    }
    return EW_OK;
}

static ew_err alloc_memory(struct ew_plan *p)
{
    return ew_fail_in(alloc_blocks(p), "network %s at batch %lld", p->g->name,
                      p->g->n_inputs && p->g->values[p->g->inputs[0]].t.shape.rank > 0
                          ? (long long)p->g->values[p->g->inputs[0]].t.shape.dim[0]
                          : 0);
}

/* Binds the step's packed weights; the caller's are used in place, or copied to the device. */
static ew_err bind_packed(struct ew_plan *p, struct ew_step *s, struct ew_call *c)
{
    const enum ew_region region = s->host ? EW_REGION_HOST_PACKED : EW_REGION_PACKED;
    if (ew_plan_uses_given(p, s)) {
        c->packed = unconst(s->given);
        return EW_OK;
    }
    c->packed = ew_plan_address(p, region, s->packed_at);
    return s->given ? ew_backend_write(p->blocks[region].memory, s->packed_at, s->given,
                                       s->kernel.packed)
                    : EW_OK;
}

static ew_err bind_step(struct ew_plan *p, struct ew_step *s)
{
    struct ew_call *c = ew_step_call(s);
    if (s->host)
        ew_plan_bind_host_step(p, s);
    if (s->scratch >= 0)
        c->scratch = ew_plan_buffer_address(p, s->scratch);
    if (s->node >= 0 && !s->host)
        c->aux = p->aux[s->node].t.data;
    ew_plan_bind_groups(p, s);
    if (s->kernel.state)
        c->state = ew_plan_address(p, EW_REGION_STATES, s->state_at);
    if (s->kernel.packed)
        EW_TRY(bind_packed(p, s, c));
    return s->kernel.prepare ? s->kernel.prepare(c) : EW_OK;
}

ew_err ew_plan_bind_memory(struct ew_plan *p)
{
    EW_TRY(alloc_memory(p));
    bind_slots(p);
    const struct ew_block *optimizer = &p->blocks[EW_REGION_OPTIMIZER];
    if (optimizer->bytes) /* optimiser state starts at zero */
        EW_TRY(ew_backend_fill(optimizer->memory, 0, 0, optimizer->bytes));
    for (int k = 0; k < p->n_steps; k++)
        EW_TRY(bind_step(p, &p->steps[k]));
    EW_TRY(ew_plan_refresh(p));
    return ew_plan_load(p);
}
