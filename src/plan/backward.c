/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of a training plan.
 *
 * Gradients accumulate, so the first step that adds to one is preceded by a step that clears it,
 * unless its kernel can overwrite (ew_call.fresh).  A backward step sees data only of the inputs
 * and outputs that its operator saves; of others it sees the shape, and their memory is free for
 * reuse. */
#include "plan/plan_impl.h"

/* A value needs a gradient if it depends on a trainable parameter. */
void ew_plan_mark_gradients(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    for (int i = 0; i < g->n_values; i++) {
        const struct ew_value *v = &g->values[i];
        p->needs_grad[i] = v->kind == EW_VALUE_PARAM && !v->frozen;
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const struct ew_node *n = &g->nodes[k];
        bool any = false;
        for (int i = 0; i < n->n_in; i++)
            any |= n->in[i] >= 0 && p->needs_grad[n->in[i]];
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0)
                p->needs_grad[n->out[i]] = any && ew_dtype_is_float(g->values[n->out[i]].t.dtype);
    }
}

bool ew_plan_reads_input(unsigned saved, int i)
{
    return i < 8 ? saved >> i & 1 : (saved & EW_SAVE_INS) == EW_SAVE_INS;
}

/* The tensor of a value in a backward call: with data if the operator reads it. */
static ew_err saved_tensor(struct ew_plan *p, int value, bool reads, struct ew_node_call *c,
                           struct ew_tensor **out)
{
    if (value < 0)
        return EW_OK;
    *out = ew_plan_has_data(p, value) ? &p->values[value].t : &p->g->values[value].t;
    if (!reads)
        return EW_OK;
    struct ew_slot *slot;
    EW_TRY(ew_plan_saved_slot(p, ew_plan_source(p, value), &slot));
    *out = p->values[value].no_storage ? &p->values[value].t : &slot->t;
    c->slots[c->n_slots++] = slot;
    return EW_OK;
}

ew_err ew_plan_backward_call(struct ew_plan *p, int node, struct ew_node_call *out)
{
    const struct ew_node *n = &p->g->nodes[node];
    const unsigned saved = ew_op_saved(n->op, n->attr) & ~p->backward[node].unread;
    const size_t io = (size_t)(n->n_in + n->n_out);
    struct ew_tensor **t = ew_arena_array(&p->arena, 2 * io, sizeof(*t)), **d = t + io;
    *out = (struct ew_node_call){
        .node = node, .slots = ew_arena_array(&p->arena, 2 * io + 1, sizeof(*out->slots))};
    EW_CHECK(t && out->slots, EW_ERR_MEMORY, "node %s: no memory for its step", n->name);
    ew_graph_call(p->g, n, t, &out->call);
    out->call.train = true;
    out->call.din = d;
    out->call.dout = d + n->n_in;
    for (int i = 0; i < n->n_in; i++) {
        const int v = n->in[i];
        EW_TRY(saved_tensor(p, v, ew_plan_reads_input(saved, i), out, &t[i]));
        d[i] = v >= 0 && p->needs_grad[v] ? &p->grads[v].t : NULL;
    }
    for (int i = 0; i < n->n_out; i++) {
        const int v = n->out[i];
        EW_TRY(saved_tensor(p, v, saved >> (8 + i) & 1, out, &t[n->n_in + i]));
        if (v >= 0 && p->grads[v].first >= 0) {
            d[n->n_in + i] = &p->grads[v].t;
            out->slots[out->n_slots++] = &p->grads[v];
        }
    }
    if (p->aux[node].first >= 0)
        out->slots[out->n_slots++] = &p->aux[node];
    return EW_OK;
}

/* Mask of inputs whose gradient this node writes first, and so may overwrite; not if the node reads
 * a value twice. */
static unsigned fresh_inputs(const struct ew_plan *p, const struct ew_node *n)
{
    unsigned fresh = 0;
    for (int i = 0; i < n->n_in && i < 32; i++) {
        const int v = n->in[i];
        bool alone = v >= 0 && p->needs_grad[v] && p->grads[v].first < 0;
        for (int j = 0; j < n->n_in; j++)
            alone &= j == i || n->in[j] != v;
        /* Parameter gradients accumulate over micro-batches. */
        if (alone && (p->strategy.micro_batches == 1 || p->g->values[v].kind != EW_VALUE_PARAM))
            fresh |= 1u << i;
    }
    return fresh;
}

/* Adds steps that clear the gradients that this node's backward is the first to add to. */
static ew_err add_clears(struct ew_plan *p, const struct ew_node *n, unsigned fresh)
{
    for (int i = 0; i < n->n_in; i++) {
        const int v = n->in[i];
        if (v >= 0 && p->needs_grad[v] && p->grads[v].first < 0 && !ew_plan_bit(fresh, i))
            EW_TRY(ew_plan_write_gradient(p, EW_TASK_CLEAR, v));
    }
    return EW_OK;
}

/* A parameter's gradient that a fused update consumes without materialising it. */
static bool is_consumed(const struct ew_plan *p, int value)
{
    return p->grads[value].no_storage && p->g->values[value].kind == EW_VALUE_PARAM;
}

/* Adds updates of the parameters whose gradients this node's backward completes, since no earlier
 * node reads them. */
static ew_err add_updates(struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    for (int i = 0; i < n->n_in; i++) {
        const int v = n->in[i];
        bool twice = false; /* an earlier input slot has it too */
        for (int j = 0; j < i; j++)
            twice |= n->in[j] == v;
        if (v < 0 || twice || p->g->values[v].kind != EW_VALUE_PARAM || p->grads[v].first < 0 ||
            p->uses[v].first != node)
            continue;
        if (p->opts.bucket_bytes) /* delivered in a bucket first */
            p->stops.complete[v] = p->n_steps;
        else
            EW_TRY(ew_plan_add_update(p, v));
    }
    return EW_OK;
}

/* The same for a step with fused calls: parameters of nodes fused into it, and the node's own
 * unless a later step still reads them in a fused backward. */
static ew_err add_updates_of(struct ew_plan *p, int node)
{
    const struct ew_call c =
        p->steps[p->n_steps - 1].call; /* a copy, since adding steps reallocates the list */
    for (int i = 0; i < c.n_fused; i++) {
        const struct ew_node_call *other = ew_plan_fused_call(&c, i);
        if (other->call.din)
            EW_TRY(add_updates(p, other->node));
    }
    return p->backward[node].elsewhere ? EW_OK : add_updates(p, node);
}

/* Updates the remaining parameters: those of nodes without backward, or all on devices that update
 * last. */
static ew_err add_late_updates(struct ew_plan *p)
{
    for (int i = 0; p->opts.update && i < p->g->n_values; i++)
        if (p->g->values[i].kind == EW_VALUE_PARAM && p->grads[i].first >= 0 &&
            p->steps[p->grads[i].last].phase != EW_PHASE_UPDATE)
            EW_TRY(ew_plan_add_update(p, i));
    return EW_OK;
}

/* Extends the lifetimes of the slots that the last step, a node's backward, reads and writes. */
static void touch_backward(struct ew_plan *p, const struct ew_node *n, const struct ew_node_call *c)
{
    const int step = p->n_steps - 1;
    ew_plan_touch_call(c, step);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0 && p->needs_grad[n->in[i]] && !is_consumed(p, n->in[i]))
            ew_plan_touch(&p->grads[n->in[i]], step);
}

/* Splits a batch norm's backward: the first step computes the gradients of scale and shift, the
 * second that of the input, which may then be in place of dout. */
static ew_err split_backward(struct ew_plan *p, const struct ew_node *n,
                             const struct ew_node_call *c)
{
    struct ew_step *second;
    EW_TRY(ew_plan_split(p, &second));
    struct ew_tensor **din = ew_arena_array(&p->arena, 2 * (size_t)n->n_in, sizeof(*din));
    EW_CHECK(din, EW_ERR_MEMORY, "node %s: no memory for its step", n->name);
    for (int i = 0; i < n->n_in; i++)
        din[i == 0 ? n->n_in : i] = c->call.din[i];
    p->steps[p->n_steps - 2].call.din = din;
    second->call.din = din + n->n_in;
    touch_backward(p, n, c);
    return EW_OK;
}

static ew_err add_backward(struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    struct ew_node_call c;
    struct ew_kernel kernel;
    EW_TRY(ew_plan_backward_call(p, node, &c));
    EW_TRY(ew_plan_choose_kernel(p, EW_PHASE_BACKWARD, &c, &kernel));
    c.call.fresh = kernel.fresh ? fresh_inputs(p, n) : 0;
    EW_TRY(add_clears(p, n, c.call.fresh));
    EW_TRY(ew_plan_add_call(p, EW_PHASE_BACKWARD, &c, &kernel));
    touch_backward(p, n, &c);
    return ew_plan_splits(p, node) ? split_backward(p, n, &c) : EW_OK;
}

/* Parameter gradients live from their first write to the end of the run, unless an update consumes
 * them; with micro-batches they live during the whole run. */
static void extend_param_grads(struct ew_plan *p)
{
    for (int i = 0; i < p->g->n_values; i++) {
        struct ew_slot *s = &p->grads[i];
        if (p->g->values[i].kind != EW_VALUE_PARAM || s->first < 0)
            continue;
        if (!p->opts.update || p->strategy.micro_batches > 1)
            ew_plan_touch(s, p->n_steps);
        if (p->strategy.micro_batches > 1)
            s->first = 0;
    }
}

/* True if a gradient reaches an output of the node, and an input needs one. */
static bool has_backward(const struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    bool reached = false, wanted = false;
    for (int i = 0; i < n->n_out; i++)
        reached |= n->out[i] >= 0 && p->grads[n->out[i]].first >= 0;
    for (int i = 0; i < n->n_in; i++)
        wanted |= n->in[i] >= 0 && p->needs_grad[n->in[i]];
    return reached && wanted && p->needed[node] && !p->backward[node].skipped;
}

ew_err ew_plan_add_backward(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    EW_CHECK(g->n_outputs > 0, EW_ERR_ARG, "graph %s: has no output to train on", g->name);
    const int loss = g->outputs[0];
    EW_CHECK(ew_tensor_count(&g->values[loss].t) == 1, EW_ERR_SHAPE,
             "%s: the first output must be a single loss to train on", g->values[loss].name);
    EW_CHECK(p->needs_grad[loss], EW_ERR_ARG, "%s: depends on no trainable parameter",
             g->values[loss].name);
    EW_TRY(ew_plan_write_gradient(p, EW_TASK_SEED, loss));
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        if (!has_backward(p, k))
            continue;
        EW_TRY(add_backward(p, k));
        if (p->opts.update && !ew_backend_info(p->be)->updates_last)
            EW_TRY(add_updates_of(p, k));
    }
    if (p->opts.bucket_bytes)
        EW_TRY(ew_plan_make_buckets(p));
    EW_TRY(add_late_updates(p));
    extend_param_grads(p);
    return EW_OK;
}
