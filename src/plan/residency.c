/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers between host and device: weights, optimiser state, gradients, inputs and outputs.
 *
 * A device that shares the host's memory uses the graph's weights in place, and the host accesses
 * inputs and outputs where the steps do.  Any other device has copies of the weights, which runs
 * change and ew_plan_pull copies back; inputs are uploaded before each run, outputs downloaded
 * after it. */
#include <string.h>

#include "plan/plan_impl.h"

size_t ew_plan_host_bytes(const struct ew_plan *p, const struct ew_slot *s)
{
    return (size_t)ew_tensor_count(&s->t) * ew_dtype_size(ew_plan_host_type(p, s));
}

ew_err ew_plan_read_slot(const struct ew_plan *p, const struct ew_slot *s, void *to)
{
    struct ew_memory *m = p->blocks[s->region].memory;
    const size_t at = ew_plan_offset(p, s);
    EW_CHECK(ew_slot_has_place(s), EW_ERR_INTERNAL, "a value has no memory to read");
    return ew_plan_host_type(p, s) != s->t.dtype
               ? ew_backend_read_floats(m, at, to, (size_t)ew_tensor_count(&s->t))
               : ew_backend_read(m, at, to, ew_tensor_bytes(&s->t));
}

ew_err ew_plan_write_slot(const struct ew_plan *p, const struct ew_slot *s, const void *from)
{
    struct ew_memory *m = p->blocks[s->region].memory;
    const size_t at = ew_plan_offset(p, s);
    return ew_plan_host_type(p, s) != s->t.dtype
               ? ew_backend_write_floats(m, at, from, (size_t)ew_tensor_count(&s->t))
               : ew_backend_write(m, at, from, ew_tensor_bytes(&s->t));
}

/* ---- Weights ---- */

void ew_plan_place_weights(struct ew_plan *p)
{
    for (int i = 0; i < p->g->n_values && ew_plan_is_remote(p); i++) {
        struct ew_slot *s = &p->values[i];
        const struct ew_value_uses *r = &p->uses[i];
        const bool host_alone = r->known && r->known == r->count;
        if (s->first < 0 || s->buffer >= 0 || !ew_value_is_known(&p->g->values[i]) || host_alone)
            continue;
        ew_plan_reserve_slot(p, EW_REGION_WEIGHTS, s);
    }
}

/* Host memory of a slot that is persistent on the device; NULL: none.  Weights that were freed
 * after packing have none. */
static void *host_data(const struct ew_plan *p, int slot)
{
    if (p->slots[slot].region == EW_REGION_WEIGHTS)
        return p->g->values[slot].t.data;
    const bool asked = p->slots[slot].region == EW_REGION_OPTIMIZER && p->host_tensors;
    return asked ? p->host_tensors[slot].data : NULL;
}

ew_err ew_plan_pull(struct ew_plan *p)
{
    for (int i = 0; i < p->n_slots && ew_plan_is_remote(p) && !p->opts.dry; i++) {
        const bool weight = p->slots[i].region == EW_REGION_WEIGHTS;
        if (host_data(p, i) && (!weight || ew_plan_changes_weight(p, i)))
            EW_TRY(ew_plan_read_slot(p, &p->slots[i], host_data(p, i)));
    }
    return EW_OK;
}

ew_err ew_plan_refresh(struct ew_plan *p)
{
    for (int i = 0; i < p->n_slots && ew_plan_is_remote(p); i++)
        if (host_data(p, i))
            EW_TRY(ew_plan_write_slot(p, &p->slots[i], host_data(p, i)));
    EW_TRY(ew_plan_pack(p));
    return ew_backend_sync(p->be);
}

/* ---- Gradients and optimiser state ---- */

/* The host copy of a slot, made and downloaded on first use; with `again` downloaded each time. */
static struct ew_tensor *host_tensor(struct ew_plan *p, const struct ew_slot *slot, bool again)
{
    if (!p->host_tensors)
        p->host_tensors = ew_arena_array(&p->arena, (size_t)p->n_slots, sizeof(*p->host_tensors));
    struct ew_tensor *t = p->host_tensors ? &p->host_tensors[slot - p->slots] : NULL;
    if (!t || (t->data && !again))
        return t;
    void *data = t->data;
    *t = slot->t;
    t->dtype = ew_plan_host_type(p, slot);
    t->data = data ? data : ew_arena_alloc(&p->arena, ew_tensor_bytes(t));
    return t->data && ew_plan_read_slot(p, slot, t->data) == EW_OK ? t : NULL;
}

const struct ew_tensor *ew_plan_grad(struct ew_plan *p, int value)
{
    const struct ew_slot *s = &p->grads[value];
    if (s->buffer < 0 || (p->opts.update && !p->opts.bucket_bytes))
        return NULL;
    if (!ew_plan_is_remote(p))
        return &s->t;
    return host_tensor(p, s, true);
}

struct ew_tensor *ew_plan_state(struct ew_plan *p, int value, int i)
{
    p->opts.optimizer.handed++;
    if (i >= EW_UPDATE_STATES || p->state[i][value].region != EW_REGION_OPTIMIZER)
        return NULL;
    struct ew_slot *s = &p->state[i][value];
    return !ew_plan_is_remote(p) || p->opts.dry ? &s->t : host_tensor(p, s, false);
}

/* ---- Inputs and outputs ---- */

struct ew_tensor *ew_plan_input(struct ew_plan *p, int i)
{
    return &p->batch_inputs[i];
}

const struct ew_tensor *ew_plan_output(const struct ew_plan *p, int i)
{
    return p->outputs ? &p->outputs[p->in_flight.shown * p->g->n_outputs + i]
                      : &p->values[p->g->outputs[i]].t;
}

void ew_plan_bind_input(struct ew_plan *p, int i, void *data)
{
    p->batch_inputs[i].data = data;
    const int buffer = p->values[p->g->inputs[i]].buffer;
    if (ew_plan_is_remote(p) || p->strategy.micro_batches > 1 || buffer < 0)
        return;
    /* Views of the input alias its buffer. */
    for (int v = 0; v < p->g->n_values; v++)
        if (p->values[v].buffer == buffer)
            p->values[v].t.data = data;
}

/* Allocates one (pinned) host block for those of n tensors that have no data. */
static ew_err new_host_tensors(struct ew_plan *p, struct ew_tensor *t, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += t[i].data ? 0 : ew_align_up(ew_tensor_bytes(&t[i]));
    EW_TRY(ew_fail_in(ew_backend_host_alloc(p->be, bytes + 1, &p->host_io),
                      "inputs and outputs of graph %s", p->g->name));
    memset(p->host_io, 0, bytes + 1);
    char *at = p->host_io;
    for (int i = 0; i < n; i++)
        if (!t[i].data) {
            t[i].data = at;
            at += ew_align_up(ew_tensor_bytes(&t[i]));
        }
    return EW_OK;
}

/* With micro-batches, or a device with memory of its own, the caller's inputs are staged; on such a
 * device outputs are too, double-buffered if runs can overlap. */
ew_err ew_plan_make_views(struct ew_plan *p, const struct ew_graph *g)
{
    const bool remote = ew_plan_is_remote(p), staged = remote || p->strategy.micro_batches > 1;
    const int n_in = g->n_inputs, n_out = p->g->n_outputs;
    if (remote)
        p->output_sets = ew_backend_is_async(p->be) && p->strategy.micro_batches == 1 ? 2 : 1;
    const int n = n_in + p->output_sets * n_out;
    struct ew_tensor *all = ew_arena_array(&p->arena, (size_t)n + 1, sizeof(*all));
    EW_CHECK(all, EW_ERR_MEMORY, "no memory for inputs and outputs of graph %s", g->name);
    for (int i = 0; i < n_in; i++) {
        all[i] = g->values[g->inputs[i]].t;
        all[i].data = staged ? NULL : p->values[p->g->inputs[i]].t.data;
    }
    for (int i = n_in; i < n; i++)
        all[i] = ew_plan_host_view(p, &p->g->values[p->g->outputs[(i - n_in) % n_out]].t);
    p->batch_inputs = all;
    p->outputs = remote ? all + n_in : NULL;
    return staged && !p->opts.dry ? new_host_tensors(p, all, n) : EW_OK;
}

ew_err ew_plan_write_inputs(struct ew_plan *p, int micro_batch)
{
    if (!ew_plan_is_remote(p) && p->strategy.micro_batches == 1)
        return EW_OK;
    for (int i = 0; i < p->g->n_inputs; i++) {
        const struct ew_slot *to = &p->values[p->g->inputs[i]];
        const size_t bytes = ew_plan_host_bytes(p, to);
        const bool split = ew_tensor_bytes(&p->batch_inputs[i]) != bytes;
        const char *from = p->batch_inputs[i].data;
        if (ew_slot_has_place(to))
            EW_TRY(ew_plan_write_slot(p, to, from + (split ? (size_t)micro_batch * bytes : 0)));
    }
    return EW_OK;
}

ew_err ew_plan_fetch_outputs(struct ew_plan *p, int set)
{
    const int n = p->g->n_outputs;
    for (int i = 0; p->outputs && i < n; i++)
        if (p->values[p->g->outputs[i]].buffer >= 0)
            EW_TRY(
                ew_plan_read_slot(p, &p->values[p->g->outputs[i]], p->outputs[set * n + i].data));
    return EW_OK;
}
