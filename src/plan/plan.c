/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling and running plans.  Backward steps are backward.c's, offsets memory.c's. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan/plan_impl.h"

/* ---- Steps ---- */

ew_err ew_plan_step_new(struct ew_plan *p, struct ew_step **out)
{
    EW_TRY(ew_grow((void **)&p->steps, &p->cap_steps, p->n_steps + 1, sizeof(*p->steps)));
    p->steps[p->n_steps] = (struct ew_step){.node = -1, .scratch = -1, .aux = -1};
    *out = &p->steps[p->n_steps++];
    return EW_OK;
}

ew_err ew_plan_buffer_new(struct ew_plan *p, size_t size, int first, int last, int *out)
{
    EW_TRY(ew_grow((void **)&p->buffers, &p->cap_buffers, p->n_buffers + 1, sizeof(*p->buffers)));
    p->buffers[p->n_buffers] = (struct ew_buffer){.size = size, .first = first, .last = last};
    *out = p->n_buffers++;
    return EW_OK;
}

void ew_plan_touch(struct ew_slot *s, int step)
{
    if (s->first < 0)
        s->first = step;
    s->last = step > s->last ? step : s->last;
}

/* True for values that have their data without any step: weights, constants, what inference knew.
 */
static bool has_data(const struct ew_plan *p, int value)
{
    const struct ew_value *v = &p->g->values[value];
    return v->kind != EW_VALUE_INPUT && (v->kind != EW_VALUE_ACT || v->t.data);
}

/* Marks the nodes that outputs depend on and that are not computed yet. */
static void mark_needed(const struct ew_plan *p, bool *value_needed, bool *node_needed)
{
    const struct ew_graph *g = p->g;
    for (int i = 0; i < g->n_outputs; i++)
        value_needed[g->outputs[i]] = true;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const struct ew_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_out; i++)
            node_needed[k] |= n->out[i] >= 0 && value_needed[n->out[i]] && !has_data(p, n->out[i]);
        for (int i = 0; node_needed[k] && i < n->n_in; i++)
            if (n->in[i] >= 0)
                value_needed[n->in[i]] = true;
    }
}

static ew_err forward_call(struct ew_plan *p, const struct ew_node *n, struct ew_call *c)
{
    struct ew_tensor **slots =
        ew_arena_array(&p->arena, (size_t)(n->n_in + n->n_out), sizeof(*slots));
    EW_CHECK(slots, EW_ERR_MEMORY, "node %s: no memory for its step", n->name);
    for (int i = 0; i < n->n_in; i++)
        slots[i] = n->in[i] < 0 ? NULL : &p->values[n->in[i]].t;
    for (int i = 0; i < n->n_out; i++)
        slots[n->n_in + i] = n->out[i] < 0 ? NULL : &p->values[n->out[i]].t;
    *c = (struct ew_call){.name = n->name,
                          .attr = n->attr,
                          .n_in = n->n_in,
                          .n_out = n->n_out,
                          .in = slots,
                          .out = slots + n->n_in,
                          .train = p->opts.mode == EW_PLAN_TRAIN};
    return EW_OK;
}

static ew_err add_forward(struct ew_plan *p, int node)
{
    const struct ew_node *n = &p->g->nodes[node];
    EW_CHECK(!n->channels_first, EW_ERR_INTERNAL, "node %s: is not channels-last", n->name);
    struct ew_step *s;
    EW_TRY(ew_plan_step_new(p, &s));
    const int step = p->n_steps - 1;
    s->node = node;
    EW_TRY(forward_call(p, n, &s->call));
    EW_TRY(ew_backend_choose(n->op, EW_PHASE_FORWARD, &s->call, &s->kernel));
    if (s->kernel.scratch)
        EW_TRY(ew_plan_buffer_new(p, s->kernel.scratch, step, step, &s->scratch));
    if (p->opts.mode == EW_PLAN_TRAIN && n->op->aux) {
        EW_TRY(ew_plan_buffer_new(p, n->op->aux(&s->call), step, step, &s->aux));
        p->node_aux[node] = s->aux;
    }
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] >= 0)
            ew_plan_touch(&p->values[n->in[i]], step);
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            ew_plan_touch(&p->values[n->out[i]], step);
    return EW_OK;
}

static ew_err add_forwards(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    EW_CLEANUP(ew_free_ptr) bool *values = calloc((size_t)g->n_values + 1, sizeof(bool));
    EW_CLEANUP(ew_free_ptr) bool *nodes = calloc((size_t)g->n_nodes + 1, sizeof(bool));
    EW_CHECK(values && nodes, EW_ERR_MEMORY, "no memory to plan graph %s", g->name);
    mark_needed(p, values, nodes);
    for (int k = 0; k < g->n_nodes; k++)
        if (nodes[k])
            EW_TRY(add_forward(p, k));
    return EW_OK;
}

/* ---- Buffers of values ---- */

/* Lets out[0] take over in[0]'s buffer where the operator allows it; views always do. */
static bool share_buffer(struct ew_plan *p, const struct ew_step *s, int step)
{
    const struct ew_node *n = &p->g->nodes[s->node];
    if (!(n->op->flags & (EW_OP_INPLACE | EW_OP_VIEW)) || n->in[0] < 0 || n->out[0] < 0)
        return false;
    struct ew_slot *in = &p->values[n->in[0]], *out = &p->values[n->out[0]];
    if (in->buffer < 0 || out->buffer >= 0 || ew_tensor_bytes(&in->t) != ew_tensor_bytes(&out->t))
        return false;
    struct ew_buffer *b = &p->buffers[in->buffer];
    if (!(n->op->flags & EW_OP_VIEW) && b->last != step)
        return false; /* somebody still needs what the operator would overwrite */
    out->buffer = in->buffer;
    b->last = out->last > b->last ? out->last : b->last;
    return true;
}

static ew_err new_value_buffer(struct ew_plan *p, int value)
{
    struct ew_slot *s = &p->values[value];
    if (s->first < 0 || s->buffer >= 0 || has_data(p, value))
        return EW_OK;
    return ew_plan_buffer_new(p, ew_tensor_bytes(&s->t), s->first, s->last, &s->buffer);
}

/* In step order, so that a shared buffer's lifetime is complete when the next sharer asks. */
static ew_err make_value_buffers(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    const int end = p->n_steps;
    for (int i = 0; i < g->n_inputs; i++) { /* inputs keep their contents from run to run */
        struct ew_slot *s = &p->values[g->inputs[i]];
        s->first = 0;
        s->last = end;
        EW_TRY(new_value_buffer(p, g->inputs[i]));
    }
    for (int i = 0; i < g->n_outputs; i++)
        ew_plan_touch(&p->values[g->outputs[i]], end);
    for (int k = 0; k < p->n_steps; k++) {
        const struct ew_step *s = &p->steps[k];
        if (s->node < 0 || s->phase != EW_PHASE_FORWARD)
            continue;
        const struct ew_node *n = &g->nodes[s->node];
        share_buffer(p, s, k);
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i] >= 0)
                EW_TRY(new_value_buffer(p, n->out[i]));
    }
    for (int i = 0; i < g->n_values; i++) {
        struct ew_slot *s = &p->grads[i];
        if (s->first >= 0)
            EW_TRY(ew_plan_buffer_new(p, ew_tensor_bytes(&s->t), s->first, s->last, &s->buffer));
    }
    return EW_OK;
}

/* ---- Compile ---- */

static ew_err init_slots(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    const size_t n = (size_t)g->n_values + 1;
    p->values = calloc(n, sizeof(*p->values));
    p->grads = calloc(n, sizeof(*p->grads));
    p->needs_grad = calloc(n, sizeof(*p->needs_grad));
    p->node_aux = calloc((size_t)g->n_nodes + 1, sizeof(*p->node_aux));
    EW_CHECK(p->values && p->grads && p->needs_grad && p->node_aux, EW_ERR_MEMORY,
             "no memory to plan graph %s", g->name);
    for (int i = 0; i < g->n_values; i++) {
        const struct ew_value *v = &g->values[i];
        p->values[i] = (struct ew_slot){.t = v->t, .buffer = -1, .first = -1, .last = -1};
        p->grads[i] = p->values[i];
        p->grads[i].t.data = NULL;
        EW_CHECK(v->t.data || p->opts.dry || v->kind == EW_VALUE_ACT || v->kind == EW_VALUE_INPUT,
                 EW_ERR_ARG, "%s: its weights have not been loaded or initialised", v->name);
    }
    for (int k = 0; k < g->n_nodes; k++)
        p->node_aux[k] = -1;
    return EW_OK;
}

static void bind_slot(struct ew_plan *p, struct ew_slot *s)
{
    if (s->buffer >= 0)
        s->t.data = p->block + p->buffers[s->buffer].offset;
}

/* Takes the memory and turns offsets into pointers. */
static ew_err bind_memory(struct ew_plan *p)
{
    void *block;
    EW_TRY(ew_aligned_new(p->block_bytes, &block));
    p->block = block;
    for (int i = 0; i < p->g->n_values; i++) {
        bind_slot(p, &p->values[i]);
        bind_slot(p, &p->grads[i]);
    }
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        if (s->scratch >= 0)
            s->call.scratch = p->block + p->buffers[s->scratch].offset;
        if (s->aux >= 0)
            s->call.aux = p->block + p->buffers[s->aux].offset;
    }
    return EW_OK;
}

static ew_err nothing(const struct ew_call *c)
{
    (void)c;
    return EW_OK;
}

/* A view that shares its input's buffer has nothing left to do. */
static void drop_views(struct ew_plan *p)
{
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        if (s->node < 0 || s->phase != EW_PHASE_FORWARD)
            continue;
        const struct ew_node *n = &p->g->nodes[s->node];
        if ((n->op->flags & EW_OP_VIEW) && n->in[0] >= 0 && p->values[n->in[0]].buffer >= 0 &&
            p->values[n->in[0]].buffer == p->values[n->out[0]].buffer)
            s->kernel = (struct ew_kernel){.name = "view", .run = nothing};
    }
}

static ew_err compile(struct ew_plan *p)
{
    if (!p->g->inferred)
        EW_TRY(ew_graph_infer(p->g));
    EW_TRY(init_slots(p));
    EW_TRY(add_forwards(p));
    if (p->opts.mode == EW_PLAN_TRAIN)
        EW_TRY(ew_plan_add_backward(p));
    EW_TRY(make_value_buffers(p));
    drop_views(p);
    EW_TRY(ew_memory_place(p->buffers, p->n_buffers, &p->block_bytes));
    if (p->opts.dry)
        return EW_OK;
    EW_TRY(bind_memory(p));
    ew_plan_set_step(p, 0);
    return EW_OK;
}

ew_err ew_plan_compile(struct ew_graph *g, const struct ew_plan_opts *o, struct ew_plan **out)
{
    struct ew_plan *p = calloc(1, sizeof(*p));
    EW_CHECK(p, EW_ERR_MEMORY, "no memory for a plan");
    p->g = g;
    p->opts = *o;
    ew_arena_init(&p->arena);
    const ew_err e = compile(p);
    if (e != EW_OK)
        ew_plan_free(p);
    else
        *out = p;
    return e;
}

void ew_plan_free(struct ew_plan *p)
{
    if (!p)
        return;
    ew_arena_fini(&p->arena);
    free(p->values);
    free(p->grads);
    free(p->needs_grad);
    free(p->node_aux);
    free(p->steps);
    free(p->buffers);
    free(p->block);
    free(p);
}

/* ---- Run ---- */

ew_err ew_plan_run(struct ew_plan *p)
{
    EW_CHECK(!p->opts.dry, EW_ERR_ARG, "a dry plan of graph %s cannot run", p->g->name);
    for (int k = 0; k < p->n_steps; k++) {
        const ew_err e = p->steps[k].kernel.run(&p->steps[k].call);
        if (e != EW_OK)
            return ew_fail_in(e, "node %s", p->steps[k].call.name);
    }
    return EW_OK;
}

struct ew_tensor *ew_plan_input(struct ew_plan *p, int i)
{
    return &p->values[p->g->inputs[i]].t;
}

const struct ew_tensor *ew_plan_output(const struct ew_plan *p, int i)
{
    return &p->values[p->g->outputs[i]].t;
}

void ew_plan_bind_input(struct ew_plan *p, int i, void *data)
{
    const int value = p->g->inputs[i];
    const int buffer = p->values[value].buffer;
    /* Views of the input share its buffer and must follow it. */
    for (int v = 0; v < p->g->n_values; v++)
        if (buffer >= 0 && p->values[v].buffer == buffer)
            p->values[v].t.data = data;
}

const struct ew_tensor *ew_plan_grad(const struct ew_plan *p, int value)
{
    return p->grads[value].buffer >= 0 ? &p->grads[value].t : NULL;
}

/* splitmix64: spreads (seed, step, node) over all bits. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void ew_plan_set_step(struct ew_plan *p, uint64_t step)
{
    const uint64_t key = mix(p->opts.seed ^ mix(step));
    for (int k = 0; k < p->n_steps; k++)
        p->steps[k].call.seed = mix(key ^ (uint64_t)p->steps[k].node);
}

void ew_plan_stats(const struct ew_plan *p, struct ew_plan_stats *out)
{
    *out = (struct ew_plan_stats){.steps = p->n_steps, .arena_bytes = p->block_bytes};
    for (int i = 0; i < p->n_buffers; i++)
        out->unshared_bytes += ew_align_up(p->buffers[i].size);
    for (int i = 0; i < p->g->n_values; i++) {
        const struct ew_value *v = &p->g->values[i];
        if (v->kind != EW_VALUE_ACT && v->kind != EW_VALUE_INPUT)
            out->weight_bytes += ew_tensor_bytes(&v->t);
        if (v->kind == EW_VALUE_PARAM && p->grads[i].buffer >= 0)
            out->grad_bytes += ew_tensor_bytes(&v->t);
    }
}
