/* SPDX-License-Identifier: Apache-2.0 */
/* Training with rounded weights (op/quant_weights.h): a step for each layer before all others, and
 * one behind them, round the plan's own steps.
 *
 *   round ...   forward   backward   update   restore ...
 *
 * A batch in parts is rounded before its first part and restored after its last. */
#include "plan/plan_impl.h"

static ew_err add_step(struct ew_plan *p, const struct ew_rounded_layer *l, enum ew_task task)
{
    const bool round = task == EW_TASK_ROUND;
    struct ew_step *s;
    EW_TRY(ew_plan_step_new(p, &s));
    struct ew_tensor **in = ew_arena_array(&p->arena, EW_ROUND_INPUTS, sizeof(*in));
    struct ew_weight_rounding *how = ew_arena_array(&p->arena, 1, sizeof(*how));
    EW_CHECK(in && how, EW_ERR_MEMORY, "no memory for a step");
    *how = l->how;
    in[EW_ROUND_W] = &p->values[l->weights].t;
    in[EW_ROUND_BIAS] = l->bias < 0 ? NULL : &p->values[l->bias].t;
    in[EW_ROUND_KEPT] = &p->kept[l->weights].t;
    in[EW_ROUND_ROUNDED] = &p->rounded[l->weights].t;
    ew_plan_touch(&p->values[l->weights], p->n_steps - 1);
    if (l->bias >= 0)
        ew_plan_touch(&p->values[l->bias], p->n_steps - 1);
    s->phase = EW_PHASE_UPDATE;
    s->when = round ? EW_WHEN_FIRST_PART : EW_WHEN_LAST_PART;
    s->call = (struct ew_call){
        .name = p->g->values[l->weights].name, .attr = how, .n_in = EW_ROUND_INPUTS, .in = in};
    return ew_plan_set_task(p, task);
}

ew_err ew_plan_add_rounding(struct ew_plan *p, enum ew_task task)
{
    for (int i = 0; i < p->opts.n_rounded; i++)
        EW_TRY(add_step(p, &p->opts.rounded[i], task));
    return EW_OK;
}

ew_err ew_plan_keep_rounded(struct ew_plan *p)
{
    for (int i = 0; i < p->opts.n_rounded; i++) {
        struct ew_slot *const slots[] = {&p->kept[p->opts.rounded[i].weights],
                                         &p->rounded[p->opts.rounded[i].weights]};
        for (int k = 0; k < 2; k++) {
            ew_plan_touch(slots[k], 0);
            ew_plan_touch(slots[k], p->n_steps);
            EW_TRY(ew_plan_own_buffer(p, slots[k]));
        }
    }
    return EW_OK;
}
