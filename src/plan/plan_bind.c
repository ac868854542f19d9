/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a plan: taken from the device, and turned into the addresses that calls have. */
#include <string.h>

#include "plan/plan_impl.h"

static void bind_slots(struct ew_plan *p)
{
    struct ew_place place;
    for (int i = 0; i < p->n_slots; i++)
        if (ew_plan_locate(p, &p->slots[i], &place))
            p->slots[i].t.data = ew_backend_address(place.memory, place.at);
}

/* A call's packed weights may be written; those that are given are not. */
static void *unconst(const void *p)
{
    void *q;
    memcpy(&q, &p, sizeof(q));
    return q;
}

static ew_err new_block(size_t bytes, char **out)
{
    void *block;
    EW_TRY(ew_aligned_new(bytes, &block));
    *out = block;
    return EW_OK;
}

/* After the steps' memory in a block that is given, where it has the room. */
static ew_err take_packed(struct ew_plan *p)
{
    const size_t at = ew_align_up(p->block_bytes);
    p->packed_given = p->block_given && p->opts.given->block_alone &&
                      ew_backend_bytes(p->block) >= at + p->packed_bytes;
    if (!p->packed_given)
        return ew_backend_alloc(p->be, p->packed_bytes, &p->packed);
    p->packed = p->block;
    for (int k = 0; k < p->n_steps; k++)
        if (!p->steps[k].host)
            p->steps[k].packed_at += at;
    return EW_OK;
}

static ew_err take_blocks(struct ew_plan *p)
{
    const struct ew_plan_given *given = p->opts.given;
    p->block_given = given && given->block && ew_backend_bytes(given->block) >= p->block_bytes;
    if (p->block_given)
        p->block = given->block;
    else
        EW_TRY(ew_backend_alloc(p->be, ew_plan_whole_block(p), &p->block));
    EW_TRY(take_packed(p));
    EW_TRY(ew_backend_alloc(p->be, p->optimizer_bytes, &p->optimizer_memory));
    EW_TRY(new_block(p->kernel_states_bytes, &p->kernel_states));
    if (!ew_plan_is_remote(p))
        return EW_OK;
    EW_TRY(ew_backend_alloc(p->be, p->weights_bytes, &p->weights));
    EW_TRY(new_block(p->staging_bytes, &p->staging));
    return new_block(p->host_packed_bytes, &p->host_packed);
}

static ew_err take_memory(struct ew_plan *p)
{
    return ew_fail_in(take_blocks(p), "network %s at batch %lld", p->g->name,
                      p->g->n_inputs && p->g->values[p->g->inputs[0]].t.shape.rank > 0
                          ? (long long)p->g->values[p->g->inputs[0]].t.shape.dim[0]
                          : 0);
}

static void *address_of(const struct ew_plan *p, int buffer)
{
    return ew_backend_address(p->block, p->buffers[buffer].offset);
}

/* The step's packed weights: those that were given are used, or copied to the device. */
static ew_err bind_packed(struct ew_plan *p, struct ew_step *s, struct ew_call *c)
{
    if (ew_plan_uses_given(p, s)) {
        c->packed = unconst(s->given);
        return EW_OK;
    }
    if (s->host) {
        c->packed = p->host_packed + s->packed_at;
        return EW_OK;
    }
    c->packed = ew_backend_address(p->packed, s->packed_at);
    return s->given ? ew_backend_write(p->packed, s->packed_at, s->given, s->kernel.packed) : EW_OK;
}

static ew_err bind_step(struct ew_plan *p, struct ew_step *s)
{
    struct ew_call *c = s->host ? &s->host->call : &s->call;
    if (s->scratch >= 0)
        c->scratch = address_of(p, s->scratch);
    if (s->aux >= 0 && !s->host)
        c->aux = address_of(p, s->aux);
    ew_plan_bind_groups(p, s);
    if (s->kernel.state)
        c->state = p->kernel_states + s->state_at;
    if (s->kernel.packed)
        EW_TRY(bind_packed(p, s, c));
    return s->kernel.prepare ? s->kernel.prepare(c) : EW_OK;
}

ew_err ew_plan_bind_memory(struct ew_plan *p)
{
    EW_TRY(take_memory(p));
    bind_slots(p);
    ew_plan_bind_host_steps(p);
    if (p->optimizer_bytes) /* it begins with nothing */
        EW_TRY(ew_backend_fill(p->optimizer_memory, 0, 0, p->optimizer_bytes));
    for (int k = 0; k < p->n_steps; k++)
        EW_TRY(bind_step(p, &p->steps[k]));
    EW_TRY(ew_plan_refresh(p));
    return ew_plan_load(p);
}
