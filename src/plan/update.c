/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser's steps in the plan. */
#include "plan/plan_impl.h"

ew_err ew_plan_update_call(struct ew_plan *p, int value, struct ew_call *out)
{
    const int states = ew_optimizer_states(&p->opts.optimizer);
    struct ew_tensor **in = ew_arena_array(&p->arena, 2 + EW_UPDATE_STATES, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "no memory for a step");
    in[0] = &p->values[value].t;
    in[1] = &p->grads[value].t;
    for (int i = 0; i < states; i++) { /* apart: between runs the steps' block is free for others */
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
    return ew_plan_add_task(p, EW_TASK_UPDATE, EW_WHEN_LAST_PART, &call);
}
