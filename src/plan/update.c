/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser's steps in the plan. */
#include "plan/plan_impl.h"

/* The optimiser's tensors lie apart, so that between runs the block is free for other plans. */
static void place_state(struct ew_plan *p, struct ew_slot *s)
{
    if (s->is_optimizer)
        return;
    s->is_optimizer = true;
    s->at = p->optimizer_bytes;
    p->optimizer_bytes += ew_align_up(ew_tensor_bytes(&s->t));
}

ew_err ew_plan_update_call(struct ew_plan *p, int value, struct ew_call *out)
{
    const int states = ew_optimizer_states(&p->opts.optimizer);
    struct ew_tensor **in = ew_arena_array(&p->arena, 2 + EW_UPDATE_STATES, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "no memory for a step");
    in[0] = &p->values[value].t;
    in[1] = &p->grads[value].t;
    for (int i = 0; i < states; i++) {
        in[2 + i] = &p->state[i][value].t;
        place_state(p, &p->state[i][value]);
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
    struct ew_step *s;
    EW_TRY(ew_plan_step_new(p, &s));
    ew_plan_touch(&p->grads[value], p->n_steps - 1);
    s->phase = EW_PHASE_UPDATE;
    s->when = EW_WHEN_LAST_PART;
    EW_TRY(ew_plan_update_call(p, value, &s->call));
    return ew_plan_set_task(p, EW_TASK_UPDATE);
}
