/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser's steps in the plan. */
#include "plan/plan_impl.h"

static ew_err add_update(struct ew_plan *p, int value, int states)
{
    struct ew_step *s;
    EW_TRY(ew_plan_step_new(p, &s));
    struct ew_tensor **in = ew_arena_array(&p->arena, 2 + EW_UPDATE_STATES, sizeof(*in));
    EW_CHECK(in, EW_ERR_MEMORY, "no memory for a step");
    const int step = p->n_steps - 1;
    in[0] = &p->values[value].t;
    in[1] = &p->grads[value].t;
    ew_plan_touch(&p->grads[value], step);
    for (int i = 0; i < states; i++) {
        in[2 + i] = &p->state[i][value].t;
        ew_plan_touch(&p->state[i][value], 0); /* it lives from run to run */
        ew_plan_touch(&p->state[i][value], INT32_MAX);
    }
    s->phase = EW_PHASE_UPDATE;
    s->when = EW_WHEN_LAST_PART;
    s->kernel = ew_backend_update(p->be, &p->opts.optimizer);
    s->call = (struct ew_call){.name = p->g->values[value].name,
                               .attr = &p->opts.optimizer,
                               .n_in = 2 + states,
                               .in = in,
                               .be = p->be};
    return EW_OK;
}

ew_err ew_plan_add_updates(struct ew_plan *p)
{
    const int states = ew_optimizer_states(&p->opts.optimizer);
    for (int i = 0; i < p->g->n_values; i++)
        if (p->g->values[i].kind == EW_VALUE_PARAM && p->grads[i].first >= 0)
            EW_TRY(add_update(p, i, states));
    return EW_OK;
}
