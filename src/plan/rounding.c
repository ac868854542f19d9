/* SPDX-License-Identifier: Apache-2.0 */
/* Training with rounded weights and biases (op/quant_weights.h): a step for each before all others,
 * and one behind them, round the plan's own steps.
 *
 *   round ...   forward   backward   update   restore ...
 *
 * A batch in parts is rounded before its first part and restored after its last. */
#include "plan/plan_impl.h"

/* Scales by channel are those of values that are not rounded: weights come before their biases. */
static struct ew_tensor *other_of(struct ew_plan *p, const struct ew_rounded_value *r)
{
    if (r->other < 0)
        return NULL;
    struct ew_slot *s = r->how.is_bias ? &p->kept[r->other] : &p->values[r->other];
    ew_plan_touch(s, p->n_steps);
    return &s->t;
}

static ew_err add_step(struct ew_plan *p, const struct ew_rounded_value *r, enum ew_task task)
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
    return ew_plan_add_task(p, task, task == EW_TASK_ROUND ? EW_WHEN_FIRST_PART : EW_WHEN_LAST_PART,
                            &call);
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
