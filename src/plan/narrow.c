/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that store activations in half precision.
 *
 * Activations in the plan's copy of the graph get the device's type, from which sizes and kernels
 * follow.  Values with data before any run (weights, constants) and the training loss keep their
 * types.  The host sees float32 everywhere: transfers convert. */
#include "plan/plan_impl.h"

static enum ew_dtype storage(const struct ew_plan *p)
{
    return ew_backend_info(p->be)->storage;
}

bool ew_plan_is_narrow(const struct ew_plan *p)
{
    return storage(p) != EW_F32;
}

ew_err ew_plan_narrow(struct ew_plan *p)
{
    if (!ew_plan_is_narrow(p))
        return EW_OK;
    for (int i = 0; i < p->g->n_values; i++) {
        struct ew_value *v = &p->g->values[i];
        if (ew_plan_has_data(p, i))
            continue;
        EW_CHECK(v->t.dtype != storage(p), EW_ERR_UNSUPPORTED,
                 "%s is %s in the network itself: it runs with --precision fp32", v->name,
                 ew_dtype_name(v->t.dtype));
        const bool loss = p->opts.mode == EW_PLAN_TRAIN && i == p->g->outputs[0];
        if (v->t.dtype == EW_F32 && !loss)
            v->t.dtype = storage(p);
    }
    return EW_OK;
}

enum ew_dtype ew_plan_host_type(const struct ew_plan *p, const struct ew_slot *s)
{
    const bool converts = s->region != EW_REGION_WEIGHTS && s->t.dtype == storage(p);
    return converts ? EW_F32 : s->t.dtype;
}

struct ew_tensor ew_plan_host_view(const struct ew_plan *p, const struct ew_tensor *t)
{
    struct ew_tensor v = *t;
    if (!t->data && t->dtype == storage(p))
        v.dtype = EW_F32;
    return v;
}

static ew_err host_views(struct ew_plan *p, struct ew_tensor *const *from, int n,
                         struct ew_tensor *const **out)
{
    *out = NULL;
    if (!from)
        return EW_OK;
    struct ew_tensor *views = ew_arena_array(&p->arena, (size_t)n + 1, sizeof(*views));
    struct ew_tensor **list = ew_arena_array(&p->arena, (size_t)n + 1, sizeof(*list));
    EW_CHECK(views && list, EW_ERR_MEMORY, "no memory for a step");
    for (int i = 0; i < n; i++)
        if (from[i]) {
            views[i] = ew_plan_host_view(p, from[i]);
            list[i] = &views[i];
        }
    *out = list;
    return EW_OK;
}

ew_err ew_plan_host_lists(struct ew_plan *p, const struct ew_call *c, struct ew_call *to)
{
    EW_TRY(host_views(p, c->in, c->n_in, &to->in));
    EW_TRY(host_views(p, c->out, c->n_out, &to->out));
    EW_TRY(host_views(p, c->din, c->n_in, &to->din));
    return host_views(p, c->dout, c->n_out, &to->dout);
}

ew_err ew_plan_host_call(struct ew_plan *p, const struct ew_call *c, const struct ew_call **out)
{
    *out = c;
    if (!ew_plan_is_narrow(p))
        return EW_OK;
    struct ew_call *view = ew_arena_array(&p->arena, 1, sizeof(*view));
    EW_CHECK(view, EW_ERR_MEMORY, "no memory for a step");
    *view = *c;
    *out = view;
    return ew_plan_host_lists(p, c, view);
}
