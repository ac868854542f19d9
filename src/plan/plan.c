/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling plans.  Backward steps are backward.c's, offsets memory.c's, running them execute.c's,
 * and what a plan does to fit a limit is limit/'s. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "compress/pass.h"
#include "plan/plan_impl.h"

/* ---- Steps ---- */

ew_err ew_plan_step_new(struct ew_plan *p, struct ew_step **out)
{
    EW_TRY(ew_grow((void **)&p->steps, &p->cap_steps, p->n_steps + 1, sizeof(*p->steps)));
    p->steps[p->n_steps] = (struct ew_step){.node = -1, .scratch = -1, .aux = -1, .shared = -1};
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

/* The kernels for a node's call: the device's, or where it has none the host's; c->be says which.
 */
static ew_err find_kernels(struct ew_plan *p, int node, struct ew_kernel_query *query,
                           struct ew_call *c, struct ew_kernel offers[EW_OFFERS], int *n)
{
    *n = 0;
    query->be = c->be = p->on_host[node] ? p->host : p->be;
    if (p->on_host[node])
        EW_TRY(ew_plan_host_call(p, c, &query->c));
    EW_TRY(ew_backend_offer(query, offers, n));
    if (*n == 0 && query->be != p->host) {
        query->be = c->be = p->host;
        EW_TRY(ew_plan_host_call(p, c, &query->c));
        EW_TRY(ew_backend_offer(query, offers, n));
    }
    EW_CHECK(*n > 0, EW_ERR_UNSUPPORTED, "node %s: operator %s cannot be %s", c->name,
             query->op->name, query->phase == EW_PHASE_FORWARD ? "run" : "trained through");
    for (int i = 0; i < *n && query->be != p->be; i++) { /* on copies: each node by itself */
        offers[i].roles = 0;
        offers[i].in_place = false;
        offers[i].take = offers[i].use = NULL;
    }
    return EW_OK;
}

static ew_err nothing(const struct ew_call *c)
{
    return EW_OK;
}

ew_err ew_plan_pick_kernel(struct ew_plan *p, int node, enum ew_phase phase, struct ew_call *c,
                           struct ew_kernel *out)
{
    struct ew_kernel offers[EW_OFFERS];
    int n;
    if (ew_call_is_empty(c)) {
        c->be = p->be;
        *out = (struct ew_kernel){.name = "empty", .run = nothing};
        return EW_OK;
    }
    struct ew_kernel_query query = {.op = p->g->nodes[node].op, .phase = phase, .c = c};
    EW_TRY(find_kernels(p, node, &query, c, offers, &n));
    const struct ew_plan_given *given = p->opts.given;
    const char *wanted = given && given->kernels ? given->kernels[node] : NULL;
    int best = 0;
    while (wanted && best < n && strcmp(offers[best].name, wanted) != 0)
        best++;
    if (!wanted || best == n) {
        best = 0;
        if (p->opts.tuner && !p->opts.dry && c->n_fused == 0)
            EW_TRY(ew_tuner_pick(p->opts.tuner, query.be == p->host ? p->host : p->be, &query,
                                 offers, n, &best));
    }
    *out = offers[best];
    return EW_OK;
}

ew_err ew_plan_same_kernel(struct ew_plan *p, int node, enum ew_phase phase, struct ew_call *c,
                           struct ew_kernel *kernel)
{
    struct ew_kernel offers[EW_OFFERS];
    struct ew_kernel_query query = {.op = p->g->nodes[node].op, .phase = phase, .c = c};
    int n;
    EW_TRY(find_kernels(p, node, &query, c, offers, &n));
    for (int i = 0; i < n; i++)
        if (strcmp(offers[i].name, kernel->name) == 0) {
            *kernel = offers[i];
            return EW_OK;
        }
    return ew_fail(EW_ERR_INTERNAL, "node %s: kernel %s cannot do what it has offered", c->name,
                   kernel->name);
}

ew_err ew_plan_set_task(struct ew_plan *p, enum ew_task task)
{
    struct ew_step *s = &p->steps[p->n_steps - 1];
    s->call.be = p->be;
    if (ew_backend_task(p->be, task, &p->opts.optimizer, &s->kernel))
        return EW_OK;
    s->call.be = p->host;
    EW_CHECK(ew_backend_task(p->host, task, &p->opts.optimizer, &s->kernel), EW_ERR_INTERNAL,
             "%s: the host can neither clear nor update", s->call.name);
    return EW_OK;
}

/* Weights that were packed before for this kernel of this node, or NULL. */
static const void *find_packed(const struct ew_plan *p, int node, const struct ew_kernel *k)
{
    const struct ew_plan_given *given = p->opts.given;
    int i = given && given->packed_of && k->packed ? given->packed_of[node] : -1;
    for (; i >= 0; i = given->packed[i].next)
        if (given->packed[i].bytes == k->packed && strcmp(given->packed[i].kernel, k->name) == 0)
            return given->packed[i].data;
    return NULL;
}

/* True where the step reads what was packed before where that lies. */
static bool uses_given(const struct ew_plan *p, const struct ew_step *s)
{
    return s->given && (!ew_plan_is_remote(p) || ew_plan_step_on_host(p, s));
}

/* No kernel may read weights that are not there. */
static ew_err check_absent(const struct ew_plan *p, const struct ew_step *s)
{
    const bool *absent = p->opts.given ? p->opts.given->absent : NULL;
    const struct ew_node *n = &p->g->nodes[s->node];
    for (int i = 0; absent && i < n->n_in; i++)
        EW_CHECK(
            n->in[i] < 0 || !absent[n->in[i]] || (s->given && i < 32 && s->kernel.packs >> i & 1),
            EW_ERR_UNSUPPORTED,
            "node %s: kernel %s needs the weights %s, which were left out as packed for another",
            n->name, s->kernel.name, p->g->values[n->in[i]].name);
    return EW_OK;
}

ew_err ew_plan_set_kernel(struct ew_plan *p, const struct ew_kernel *k)
{
    const int step = p->n_steps - 1;
    struct ew_step *s = &p->steps[step];
    const bool on_host = ew_plan_step_on_host(p, s);
    size_t *packed = on_host ? &p->host_packed_bytes : &p->packed_bytes;
    s->kernel = *k;
    if (k->scratch && !on_host)
        EW_TRY(ew_plan_buffer_new(p, k->scratch, step, step, &s->scratch));
    s->state_at = p->kernel_states_bytes;
    s->packed_at = *packed;
    p->kernel_states_bytes += ew_align_up(k->state);
    s->given = s->node >= 0 && s->phase == EW_PHASE_FORWARD ? find_packed(p, s->node, k) : NULL;
    if (!uses_given(p, s))
        *packed += ew_align_up(k->packed);
    return s->node >= 0 ? check_absent(p, s) : EW_OK;
}

void ew_plan_touch(struct ew_slot *s, int step)
{
    if (s->first < 0)
        s->first = step;
    s->last = step > s->last ? step : s->last;
}

bool ew_plan_has_data(const struct ew_plan *p, int value)
{
    const struct ew_value *v = &p->g->values[value];
    return v->kind != EW_VALUE_INPUT && (v->kind != EW_VALUE_ACT || v->t.data);
}

/* Marks the nodes that outputs depend on and that are not computed yet. */
static void mark_needed(struct ew_plan *p, bool *value_needed)
{
    const struct ew_graph *g = p->g;
    bool *node_needed = p->needed;
    for (int i = 0; i < g->n_outputs; i++)
        value_needed[g->outputs[i]] = true;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const struct ew_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_out; i++)
            node_needed[k] |=
                n->out[i] >= 0 && value_needed[n->out[i]] && !ew_plan_has_data(p, n->out[i]);
        for (int i = 0; node_needed[k] && i < n->n_in; i++)
            if (n->in[i] >= 0)
                value_needed[n->in[i]] = true;
    }
}

/* Fills p->reading. */
static void count_reads(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    for (int v = 0; v < g->n_values; v++)
        p->reading[v].first = -1;
    for (int k = g->n_nodes - 1; k >= 0; k--)
        for (int i = 0; p->needed[k] && i < g->nodes[k].n_in; i++)
            if (g->nodes[k].in[i] >= 0) {
                p->reading[g->nodes[k].in[i]].count++;
                p->reading[g->nodes[k].in[i]].first = k;
            }
    for (int i = 0; i < g->n_outputs; i++)
        p->reading[g->outputs[i]].count++;
}

/* The call of a forward step; values computed again are read where that has put them. */
static ew_err forward_call(struct ew_plan *p, const struct ew_node *n, bool recompute,
                           struct ew_call *c)
{
    const int step = p->n_steps - 1;
    struct ew_tensor **slots =
        ew_arena_array(&p->arena, (size_t)(n->n_in + n->n_out), sizeof(*slots));
    EW_CHECK(slots, EW_ERR_MEMORY, "node %s: no memory for its step", n->name);
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const int from = ew_plan_source(p, n->in[i]);
        struct ew_slot *s =
            recompute && p->recompute[from].first >= 0 ? &p->recompute[from] : &p->values[from];
        ew_plan_touch(s, step);
        slots[i] = from == n->in[i] ? &s->t : &p->values[n->in[i]].t;
    }
    for (int i = 0; i < n->n_out; i++) {
        if (n->out[i] < 0)
            continue;
        struct ew_slot *s = recompute ? &p->recompute[n->out[i]] : &p->values[n->out[i]];
        if (!s->no_storage)
            ew_plan_touch(s, step);
        slots[n->n_in + i] = &s->t;
    }
    *c = (struct ew_call){.name = n->name,
                          .op = n->op,
                          .attr = n->attr,
                          .n_in = n->n_in,
                          .n_out = n->n_out,
                          .in = slots,
                          .out = slots + n->n_in,
                          .train = p->opts.mode == EW_PLAN_TRAIN,
                          .out_step =
                              recompute || n->n_out == 0 ? 0 : ew_plan_out_step(p, n->out[0]),
                          .recompute = recompute};
    return ew_plan_play_roles(p, (int)(n - p->g->nodes), EW_PHASE_FORWARD, c);
}

ew_err ew_plan_add_forward(struct ew_plan *p, int node, bool recompute)
{
    const struct ew_node *n = &p->g->nodes[node];
    EW_CHECK(!n->channels_first, EW_ERR_INTERNAL, "node %s: is not channels-last", n->name);
    struct ew_step *s;
    EW_TRY(ew_plan_step_new(p, &s));
    const int step = p->n_steps - 1;
    s->node = node;
    if (p->node_step[node] < 0)
        p->node_step[node] = step;
    EW_TRY(forward_call(p, n, recompute, &s->call));
    struct ew_kernel kernel;
    EW_TRY(ew_plan_pick_kernel(p, node, EW_PHASE_FORWARD, &s->call, &kernel));
    if (!recompute)
        EW_TRY(ew_plan_take_groups(p, node, EW_PHASE_FORWARD, &kernel, &p->steps[step].call));
    EW_TRY(ew_plan_set_kernel(p, &kernel));
    if (recompute && p->node_aux[node] >= 0) { /* it holds what it would get again */
        s = &p->steps[step];
        s->aux = p->node_aux[node];
        p->buffers[s->aux].last = step;
    } else if (p->opts.mode == EW_PLAN_TRAIN && n->op->aux) {
        const struct ew_call *view;
        EW_TRY(ew_plan_host_call(p, &s->call, &view));
        EW_TRY(ew_plan_buffer_new(p, n->op->aux(view), step, step, &s->aux));
        p->node_aux[node] = s->aux;
    }
    return recompute || !ew_plan_splits(p, node) ? EW_OK : ew_plan_split_forward(p, n);
}

static ew_err add_forwards(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    EW_CLEANUP(ew_free_ptr) bool *values = calloc((size_t)g->n_values + 1, sizeof(bool));
    EW_CHECK(values, EW_ERR_MEMORY, "no memory to plan graph %s", g->name);
    mark_needed(p, values);
    count_reads(p);
    EW_TRY(ew_plan_find_host_nodes(p));
    if (p->opts.mode == EW_PLAN_TRAIN)
        ew_plan_mark_gradients(p);
    EW_TRY(ew_plan_find_groups(p));
    for (int k = 0; k < g->n_nodes; k++)
        if (p->needed[k])
            EW_TRY(ew_plan_add_forward(p, k, false));
    return EW_OK;
}

/* ---- Buffers ---- */

/* The slot around a tensor of a forward step. */
static struct ew_slot *slot_of(struct ew_tensor *t)
{
    return (struct ew_slot *)t; /* its first member */
}

/* True where the slot's data is its own: a weight, a constant, a known value. */
static bool owns_data(const struct ew_slot *s)
{
    return s->buffer < 0 && s->t.data;
}

/* Lets `to` take over the buffer of `from`, where nobody reads that after `step` (-1: or reads the
 * same there). */
static void take_over(struct ew_plan *p, const struct ew_slot *from, struct ew_slot *to, int step)
{
    if (from->buffer < 0 || to->buffer >= 0 || to->first < 0 || to->no_storage ||
        ew_tensor_bytes(&from->t) != ew_tensor_bytes(&to->t))
        return;
    struct ew_buffer *b = &p->buffers[from->buffer];
    if (step >= 0 && b->last != step)
        return;
    const int last = to->last < p->n_steps ? to->last : p->n_steps;
    to->buffer = from->buffer;
    b->last = last > b->last ? last : b->last;
}

/* out[0] in place of in[0], where the operator allows it; views always. */
static void share_buffer(struct ew_plan *p, const struct ew_step *s, int step)
{
    const unsigned flags = p->g->nodes[s->node].op->flags;
    if ((flags & (EW_OP_INPLACE | EW_OP_VIEW)) && s->call.in[0] && s->call.out[0])
        take_over(p, slot_of(s->call.in[0]), slot_of(s->call.out[0]),
                  flags & EW_OP_VIEW ? -1 : step);
}

/* The gradient of in[0] in place of that of out[0], where the kernel can write it there. */
static void share_gradient(struct ew_plan *p, const struct ew_step *s, int step)
{
    if (s->kernel.in_place && (s->call.fresh & 1) && s->call.din[0] && s->call.dout[0])
        take_over(p, slot_of(s->call.dout[0]), slot_of(s->call.din[0]), step);
}

ew_err ew_plan_own_buffer(struct ew_plan *p, struct ew_slot *s)
{
    if (s->first < 0 || s->buffer >= 0 || s->no_storage || owns_data(s))
        return EW_OK;
    const int last = s->last < p->n_steps ? s->last : p->n_steps;
    return ew_plan_buffer_new(p, ew_tensor_bytes(&s->t), s->first, last, &s->buffer);
}

/* Gradients get their memory where they are first written. */
static ew_err make_gradient_buffers(struct ew_plan *p, const struct ew_step *s, int step)
{
    if (s->node < 0) /* a step that clears or seeds one */
        return ew_plan_own_buffer(p, slot_of(s->call.out[0]));
    share_gradient(p, s, step);
    for (int i = 0; i < s->call.n_in; i++) {
        const int v = p->g->nodes[s->node].in[i];
        if (s->call.din[i] && p->joined[v] == s->node)
            EW_TRY(ew_plan_place_part(p, v, &p->grads[v], slot_of(s->call.dout[0])));
        else if (s->call.din[i])
            EW_TRY(ew_plan_own_buffer(p, slot_of(s->call.din[i])));
    }
    return EW_OK;
}

/* In step order, so that a shared buffer's lifetime is complete when the next sharer asks. */
static ew_err make_buffers(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    const int end = p->n_steps;
    for (int i = 0; i < g->n_inputs; i++) { /* inputs keep their contents from run to run */
        struct ew_slot *s = &p->values[g->inputs[i]];
        s->first = 0;
        s->last = end;
        EW_TRY(ew_plan_own_buffer(p, s));
    }
    for (int i = 0; i < g->n_outputs; i++)
        ew_plan_touch(&p->values[g->outputs[i]], end);
    for (int k = 0; k < p->n_steps; k++) {
        const struct ew_step *s = &p->steps[k];
        if (s->phase == EW_PHASE_BACKWARD)
            EW_TRY(make_gradient_buffers(p, s, k));
        if (s->node < 0 || s->phase != EW_PHASE_FORWARD)
            continue;
        share_buffer(p, s, k);
        if (s->call.out_step) {
            const int v = g->nodes[s->node].out[0], whole = g->nodes[p->joined[v]].out[0];
            EW_TRY(ew_plan_place_part(p, v, &p->values[v], &p->values[whole]));
        }
        for (int i = 0; i < s->call.n_out; i++)
            if (s->call.out[i])
                EW_TRY(ew_plan_own_buffer(p, slot_of(s->call.out[i])));
    }
    return EW_OK;
}

/* The optimiser's tensors lie apart, so that between runs the block is free for other plans. */
static void place_states(struct ew_plan *p)
{
    for (int i = 0; i < p->g->n_values; i++)
        for (int k = 0; k < EW_UPDATE_STATES; k++) {
            struct ew_slot *s = &p->state[k][i];
            if (s->first < 0)
                continue;
            s->is_optimizer = true;
            s->at = p->optimizer_bytes;
            p->optimizer_bytes += ew_align_up(ew_tensor_bytes(&s->t));
        }
}

/* A view that shares its input's buffer has nothing left to do, and neither has a concatenation of
 * what lies there already. */
static void drop_views(struct ew_plan *p)
{
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        const bool forward = s->phase == EW_PHASE_FORWARD;
        if (s->node < 0 || (!forward && s->phase != EW_PHASE_BACKWARD))
            continue;
        const struct ew_node *n = &p->g->nodes[s->node];
        bool view = n->n_in > 0 && n->in[0] >= 0 && p->joined[n->in[0]] == s->node;
        if (forward && (n->op->flags & EW_OP_VIEW)) {
            const int in = slot_of(s->call.in[0])->buffer, out = slot_of(s->call.out[0])->buffer;
            view = in >= 0 && in == out;
        }
        if (view)
            s->kernel = (struct ew_kernel){.name = "view"};
    }
}

/* ---- Compile ---- */

#define SLOT_KINDS (3 + EW_UPDATE_STATES)

static void init_slots(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    const int n = g->n_values;
    for (int i = 0; i < p->n_slots; i++) {
        p->slots[i] =
            (struct ew_slot){.t = g->values[i % n].t, .buffer = -1, .first = -1, .last = -1};
        if (i >= n)
            p->slots[i].t.data = NULL;
    }
    p->values = p->slots;
    p->grads = p->values + n;
    p->recompute = p->grads + n;
    for (int k = 0; k < EW_UPDATE_STATES; k++)
        p->state[k] = p->recompute + (k + 1) * n;
}

static ew_err init_lists(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    struct ew_arena *a = &p->arena;
    const size_t values = (size_t)g->n_values + 1, nodes = (size_t)g->n_nodes + 1;
    p->n_slots = SLOT_KINDS * g->n_values;
    p->slots = ew_arena_array(a, SLOT_KINDS * values, sizeof(*p->slots));
    p->needs_grad = ew_arena_array(a, values, sizeof(*p->needs_grad));
    p->keep = ew_arena_array(a, values, sizeof(*p->keep));
    p->joined = ew_arena_array(a, values, sizeof(*p->joined));
    p->reading = ew_arena_array(a, values, sizeof(*p->reading));
    p->pieces.complete = ew_arena_array(a, values, sizeof(*p->pieces.complete));
    p->needed = ew_arena_array(a, nodes, sizeof(*p->needed));
    p->on_host = ew_arena_array(a, nodes, sizeof(*p->on_host));
    p->node_aux = ew_arena_array(a, nodes, sizeof(*p->node_aux));
    p->node_step = ew_arena_array(a, nodes, sizeof(*p->node_step));
    EW_CHECK(!a->failed, EW_ERR_MEMORY, "no memory to plan graph %s", g->name);
    init_slots(p);
    for (int k = 0; k < g->n_nodes; k++)
        p->node_aux[k] = p->node_step[k] = -1;
    for (int i = 0; i < g->n_values; i++) {
        const struct ew_value *v = &g->values[i];
        p->joined[i] = -1;
        EW_CHECK(p->opts.dry || v->t.data || v->kind == EW_VALUE_ACT || v->kind == EW_VALUE_INPUT,
                 EW_ERR_ARG, "%s: its weights have not been loaded or initialised", v->name);
    }
    return EW_OK;
}

static void bind_slots(struct ew_plan *p)
{
    struct ew_place place;
    for (int i = 0; i < p->n_slots; i++)
        if (ew_plan_locate(p, &p->slots[i], &place))
            p->slots[i].t.data = ew_backend_address(place.memory, place.at);
}

/* A call's packed weights may be written; those that are given are not. */
static void *unconst(const void *p)
{
    void *q;
    memcpy(&q, &p, sizeof(q));
    return q;
}

static ew_err new_block(size_t bytes, char **out)
{
    void *block;
    EW_TRY(ew_aligned_new(bytes, &block));
    *out = block;
    return EW_OK;
}

/* Behind the steps' memory in a block that is given, where it has the room. */
static ew_err take_packed(struct ew_plan *p)
{
    const size_t at = ew_align_up(p->block_bytes);
    p->packed_given = p->block_given && p->opts.given->block_alone &&
                      ew_backend_bytes(p->block) >= at + p->packed_bytes;
    if (!p->packed_given)
        return ew_backend_alloc(p->be, p->packed_bytes, &p->packed);
    p->packed = p->block;
    for (int k = 0; k < p->n_steps; k++)
        if (!p->steps[k].host)
            p->steps[k].packed_at += at;
    return EW_OK;
}

static ew_err take_blocks(struct ew_plan *p)
{
    const struct ew_plan_given *given = p->opts.given;
    p->block_given = given && given->block && ew_backend_bytes(given->block) >= p->block_bytes;
    if (p->block_given)
        p->block = given->block;
    else
        EW_TRY(ew_backend_alloc(p->be, ew_plan_whole_block(p), &p->block));
    EW_TRY(take_packed(p));
    EW_TRY(ew_backend_alloc(p->be, p->optimizer_bytes, &p->optimizer_memory));
    EW_TRY(new_block(p->kernel_states_bytes, &p->kernel_states));
    if (!ew_plan_is_remote(p))
        return EW_OK;
    EW_TRY(ew_backend_alloc(p->be, p->weights_bytes, &p->weights));
    EW_TRY(new_block(p->staging_bytes, &p->staging));
    return new_block(p->host_packed_bytes, &p->host_packed);
}

static ew_err take_memory(struct ew_plan *p)
{
    return ew_fail_in(take_blocks(p), "network %s at batch %lld", p->g->name,
                      p->g->n_inputs && p->g->values[p->g->inputs[0]].t.shape.rank > 0
                          ? (long long)p->g->values[p->g->inputs[0]].t.shape.dim[0]
                          : 0);
}

static void *address_of(const struct ew_plan *p, int buffer)
{
    return ew_backend_address(p->block, p->buffers[buffer].offset);
}

/* The step's packed weights: those that were given are used, or copied to the device. */
static ew_err bind_packed(struct ew_plan *p, struct ew_step *s, struct ew_call *c)
{
    if (uses_given(p, s)) {
        c->packed = unconst(s->given);
        return EW_OK;
    }
    if (s->host) {
        c->packed = p->host_packed + s->packed_at;
        return EW_OK;
    }
    c->packed = ew_backend_address(p->packed, s->packed_at);
    return s->given ? ew_backend_write(p->packed, s->packed_at, s->given, s->kernel.packed) : EW_OK;
}

static ew_err bind_step(struct ew_plan *p, struct ew_step *s)
{
    struct ew_call *c = s->host ? &s->host->call : &s->call;
    if (s->scratch >= 0)
        c->scratch = address_of(p, s->scratch);
    if (s->aux >= 0 && !s->host)
        c->aux = address_of(p, s->aux);
    ew_plan_bind_groups(p, s);
    if (s->kernel.state)
        c->state = p->kernel_states + s->state_at;
    if (s->kernel.packed)
        EW_TRY(bind_packed(p, s, c));
    return s->kernel.prepare ? s->kernel.prepare(c) : EW_OK;
}

/* The optimiser begins with nothing. */
static ew_err clear_states(struct ew_plan *p)
{
    struct ew_place place;
    for (int i = 0; i < p->n_slots; i++)
        if (p->slots[i].is_optimizer && ew_plan_locate(p, &p->slots[i], &place))
            EW_TRY(ew_backend_fill(place.memory, place.at, 0, ew_tensor_bytes(&p->slots[i].t)));
    return EW_OK;
}

/* Takes the memory, and has the device turn places into addresses. */
static ew_err bind_memory(struct ew_plan *p)
{
    EW_TRY(take_memory(p));
    bind_slots(p);
    ew_plan_bind_host_steps(p);
    EW_TRY(clear_states(p));
    for (int k = 0; k < p->n_steps; k++)
        EW_TRY(bind_step(p, &p->steps[k]));
    EW_TRY(ew_plan_refresh(p));
    return ew_plan_load(p);
}

/* The graph that is run: the caller's, or a copy of it that passes have improved or whose batch is
 * one part.  Weights are shared; the order of inputs and outputs is the same. */
static ew_err copy_graph(struct ew_plan *p, struct ew_graph *g)
{
    const bool optimize = p->opts.optimize && p->opts.mode == EW_PLAN_INFER && !p->opts.dry;
    const unsigned fused = p->opts.mode == EW_PLAN_TRAIN ? ew_backend_info(p->be)->fused : 0;
    p->g = g;
    p->source = g;
    if (p->strategy.parts == 1 && !optimize && !fused && !ew_plan_is_narrow(p))
        return EW_OK;
    EW_TRY(ew_graph_clone(g, &p->clone));
    p->g = p->clone;
    if (optimize) {
        if (p->opts.consume) {
            EW_TRY(ew_plan_take_weights(p));
            EW_TRY(ew_pass_drop_identity(p->clone));
            EW_TRY(ew_pass_fold_flatten_own(p->clone));
        }
        if (ew_backend_info(p->be)->lowers_pow2)
            EW_TRY(ew_pass_lower_dpu(p->clone));
        EW_TRY(ew_pass_all(p->clone));
        return ew_plan_release_replaced(p);
    }
    if (fused & EW_FUSED_NORM_ADD)
        EW_TRY(ew_pass_fuse_add(p->clone));
    if (fused & EW_FUSED_NORM_ACT)
        EW_TRY(ew_pass_fuse_norm(p->clone));
    if (fused & EW_FUSED_SINK_ACT)
        EW_TRY(ew_pass_sink_activation(p->clone));
    if (fused & EW_FUSED_CONV_RELU)
        EW_TRY(ew_pass_fuse_relu(p->clone));
    if (p->strategy.parts > 1) {
        int64_t batch = 0;
        EW_TRY(ew_graph_batch(g, &batch));
        EW_TRY(ew_graph_set_batch(p->clone, batch / p->strategy.parts));
    }
    return p->opts.mode == EW_PLAN_TRAIN ? ew_backend_rewrite(p->be, p->clone) : EW_OK;
}

static ew_err own_graph(struct ew_plan *p, struct ew_graph *g)
{
    EW_TRY(copy_graph(p, g));
    return ew_plan_is_narrow(p) ? ew_plan_narrow(p) : EW_OK;
}

/* The device, and the host for what that cannot do. */
static ew_err open_devices(struct ew_plan *p)
{
    p->backend_given = p->opts.given && p->opts.given->backend;
    if (p->backend_given)
        p->be = p->opts.given->backend;
    else
        EW_TRY(ew_backend_open(&p->opts.backend, &p->be));
    if (ew_backend_info(p->be)->shares_host) {
        p->host = p->be;
        return EW_OK;
    }
    struct ew_backend_opts o = p->opts.backend;
    o.device = "cpu";
    return ew_backend_open(&o, &p->host);
}

static ew_err compile(struct ew_plan *p, struct ew_graph *g)
{
    if (!g->inferred)
        EW_TRY(ew_graph_infer(g));
    EW_TRY(open_devices(p));
    EW_TRY(own_graph(p, g));
    EW_TRY(init_lists(p));
    EW_TRY(ew_plan_choose_kept(p));
    EW_TRY(add_forwards(p));
    if (p->opts.mode == EW_PLAN_TRAIN)
        EW_TRY(ew_plan_add_backward(p));
    EW_TRY(ew_plan_extend_groups(p));
    EW_TRY(make_buffers(p));
    place_states(p);
    drop_views(p);
    ew_plan_mark_stops(p);
    ew_plan_place_weights(p);
    EW_TRY(ew_plan_make_host_steps(p));
    EW_TRY(ew_memory_place(p->buffers, p->n_buffers, &p->block_bytes, NULL));
    if (!p->opts.dry)
        EW_TRY(bind_memory(p));
    EW_TRY(ew_plan_make_views(p, g));
    ew_plan_set_step(p, 0);
    p->opts.given = NULL;
    return EW_OK;
}

ew_err ew_plan_build(struct ew_graph *g, const struct ew_plan_opts *o, const struct ew_strategy *s,
                     struct ew_plan **out)
{
    struct ew_plan *p = calloc(1, sizeof(*p));
    EW_CHECK(p, EW_ERR_MEMORY, "no memory for a plan");
    p->opts = *o;
    p->strategy = *s;
    ew_arena_init(&p->arena);
    const ew_err e = compile(p, g);
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
    if (p->ahead.n)
        ew_backend_sync(p->be);
    ew_plan_unload(p);
    if (!p->block_given)
        ew_backend_free(p->block);
    if (!p->packed_given)
        ew_backend_free(p->packed);
    ew_backend_free(p->optimizer_memory);
    ew_backend_free(p->weights);
    ew_backend_host_free(p->be, p->host_inputs);
    ew_backend_host_free(p->be, p->host_outputs);
    if (ew_plan_is_remote(p))
        ew_backend_close(p->host);
    if (!p->backend_given)
        ew_backend_close(p->be);
    ew_arena_fini(&p->arena);
    ew_graph_free(p->clone);
    free(p->groups.groups);
    free(p->steps);
    free(p->buffers);
    free(p->kernel_states);
    free(p->staging);
    free(p->host_packed);
    free(p);
}
