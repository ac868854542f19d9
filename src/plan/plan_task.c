/* SPDX-License-Identifier: Apache-2.0 */
/* Steps without an operator: clearing and seeding gradients, optimiser updates, and rounding of
 * weights and biases in quantisation-aware training (op/quant_weights.h):
 *
 *   round ...   forward   backward   update   restore ...
 *
 * With micro-batches weights are rounded before the first and restored after the last. */
#include "plan/plan_impl.h"

static ew_err add_task(struct ew_plan *p, enum ew_task task, unsigned micro_batches,
                       const struct ew_call *call)
{
    struct ew_step *s;
    EW_TRY(ew_plan_step_new(p, &s));
    s->phase = task == EW_TASK_CLEAR || task == EW_TASK_SEED ? EW_PHASE_BACKWARD : EW_PHASE_UPDATE;
    s->micro_batches = micro_batches;
    s->call = *call;
    s->call.be = p->be;
    if (ew_backend_task(p->be, task, &p->opts.optimizer, &s->kernel))
        return EW_OK;
    s->call.be = p->host;
    EW_CHECK(ew_backend_task(p->host, task, &p->opts.optimizer, &s->kernel), EW_ERR_INTERNAL,
             "%s: the host can neither clear nor update", s->call.name);
    return EW_OK;
}

ew_err ew_plan_write_gradient(struct ew_plan *p, enum ew_task task, int value)
{
    struct ew_tensor **slot = ew_arena_array(&p->arena, 1, sizeof(*slot));
    EW_CHECK(slot, EW_ERR_MEMORY, "no memory for a step");
    slot[0] = &p->grads[value].t;
    const struct ew_call call = {.name = p->g->values[value].name,
                                 .attr = &p->strategy.micro_batches,
                                 .n_out = 1,
                                 .out = slot};
    /* Parameter gradients accumulate over micro-batches: cleared before the first only. */
    const bool param = p->g->values[value].kind == EW_VALUE_PARAM;
    ew_plan_touch(&p->grads[value], p->n_steps);
    return add_task(p, task, param ? 1u << EW_MICRO_BATCH_FIRST : EW_EVERY_MICRO_BATCH, &call);
}

/* ---- Updates ---- */

ew_err ew_plan_update_call(struct ew_plan *p, int value, struct ew_call *out)
{
    const int states = ew_optimizer_states(&p->opts.optimizer);
    struct ew_tensor **in = ew_arena_array(&p->arena, 2 + EW_UPDATE_STATES, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "no memory for a step");
    in[0] = &p->values[value].t;
    in[1] = &p->grads[value].t;
    /* persistent, since the steps' block may be lent between runs */
    for (int i = 0; i < states; i++) {
        struct ew_slot *s = &p->state[i][value];
        in[2 + i] = &s->t;
        if (s->region != EW_REGION_OPTIMIZER)
            ew_plan_reserve_slot(p, EW_REGION_OPTIMIZER, s);
    }
    *out = (struct ew_call){.name = p->g->values[value].name,
                            .attr = &p->opts.optimizer,
                            .n_in = 2 + states,
                            .in = in,
                            .be = p->be};
    return EW_OK;
}

ew_err ew_plan_add_update(struct ew_plan *p, int value)
{
    struct ew_call call;
    ew_plan_touch(&p->grads[value], p->n_steps);
    EW_TRY(ew_plan_update_call(p, value, &call));
    return add_task(p, EW_TASK_UPDATE, 1u << EW_MICRO_BATCH_LAST, &call);
}

/* ---- Rounded weights ---- */

/* Per-channel scales are computed from unrounded values: a bias reads its weights' float32 copy,
 * which is made before, since weights precede their biases in the list. */
static struct ew_tensor *other_of(struct ew_plan *p, const struct ew_fake_quant_weight *r)
{
    if (r->other < 0)
        return NULL;
    struct ew_slot *s = r->how.is_bias ? &p->kept[r->other] : &p->values[r->other];
    ew_plan_touch(s, p->n_steps);
    return &s->t;
}

static ew_err add_round(struct ew_plan *p, const struct ew_fake_quant_weight *r, enum ew_task task)
{
    struct ew_tensor **in = ew_arena_array(&p->arena, EW_ROUND_INPUTS, sizeof(*in));
    struct ew_weight_rounding *how = ew_arena_array(&p->arena, 1, sizeof(*how));
    EW_CHECK(in && how, EW_ERR_MEMORY, "no memory for a step");
    *how = r->how;
    in[EW_ROUND_X] = &p->values[r->value].t;
    in[EW_ROUND_OTHER] = other_of(p, r);
    in[EW_ROUND_KEPT] = &p->kept[r->value].t;
    in[EW_ROUND_ROUNDED] = &p->rounded[r->value].t;
    ew_plan_touch(&p->values[r->value], p->n_steps);
    const struct ew_call call = {
        .name = p->g->values[r->value].name, .attr = how, .n_in = EW_ROUND_INPUTS, .in = in};
    return add_task(
        p, task, 1u << (task == EW_TASK_ROUND ? EW_MICRO_BATCH_FIRST : EW_MICRO_BATCH_LAST), &call);
}

ew_err ew_plan_add_rounding(struct ew_plan *p, enum ew_task task)
{
    for (int i = 0; i < p->opts.n_rounded; i++)
        EW_TRY(add_round(p, &p->opts.rounded[i], task));
    return EW_OK;
}

ew_err ew_plan_keep_rounded(struct ew_plan *p)
{
    for (int i = 0; i < p->opts.n_rounded; i++) {
        struct ew_slot *const slots[] = {&p->kept[p->opts.rounded[i].value],
                                         &p->rounded[p->opts.rounded[i].value]};
        for (int k = 0; k < 2; k++) {
            ew_plan_touch(slots[k], 0);
            ew_plan_touch(slots[k], p->n_steps);
            EW_TRY(ew_plan_own_buffer(p, slots[k]));
        }
    }
    return EW_OK;
}
