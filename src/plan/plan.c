/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling plans: the graph that runs, its forward steps, and `compile`, which calls the other
 * files of this folder in order.  Memory limits are in limit/. */
#include "plan/plan.h"

#include <stdlib.h>

#include "compress/pass.h"
#include "plan/plan_impl.h"

/* ---- Steps ---- */

ew_err ew_plan_step_new(struct ew_plan *p, struct ew_step **out)
{
    EW_TRY(ew_grow((void **)&p->steps, &p->cap_steps, p->n_steps + 1, sizeof(*p->steps)));
    p->steps[p->n_steps] = (struct ew_step){
        .node = -1, .micro_batches = EW_EVERY_MICRO_BATCH, .scratch = -1, .shared = -1};
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

/* Liveness, backwards from the graph's outputs: counts the uses of values by live nodes (p->uses),
 * and marks as needed the nodes with a used output that is not known. */
static void find_needed(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    for (int v = 0; v < g->n_values; v++)
        p->uses[v].first = -1;
    for (int i = 0; i < g->n_outputs; i++)
        p->uses[g->outputs[i]].count++;
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const struct ew_node *n = &g->nodes[k];
        for (int i = 0; i < n->n_out; i++)
            p->needed[k] |=
                n->out[i] >= 0 && p->uses[n->out[i]].count && !ew_plan_has_data(p, n->out[i]);
        for (int i = 0; p->needed[k] && i < n->n_in; i++)
            if (n->in[i] >= 0) {
                struct ew_value_uses *r = &p->uses[n->in[i]];
                r->count++;
                r->known += ew_plan_bit(n->op->known_in, i);
                r->first = k;
            }
    }
}

/* The slot of ew_call.aux, with the size that the operator's hook gives. */
static ew_err add_aux(struct ew_plan *p, struct ew_node_call *c)
{
    struct ew_slot *s = &p->aux[c->node];
    const struct ew_call *view;
    if (!c->call.train || !c->call.op->aux)
        return EW_OK;
    EW_TRY(ew_plan_host_call(p, &c->call, &view));
    s->t = (struct ew_tensor){.dtype = EW_U8, .shape = {1, {(int64_t)c->call.op->aux(view)}}};
    c->slots[c->n_slots++] = s;
    return EW_OK;
}

ew_err ew_plan_forward_call(struct ew_plan *p, int node, enum ew_phase phase, struct ew_slot *outs,
                            struct ew_node_call *out)
{
    const struct ew_node *n = &p->g->nodes[node];
    struct ew_tensor **t = ew_arena_array(&p->arena, (size_t)(n->n_in + n->n_out), sizeof(*t));
    *out = (struct ew_node_call){
        .node = node, .slots = ew_arena_array(&p->arena, (size_t)n->n_in + 1, sizeof(*out->slots))};
    EW_CHECK(t && out->slots, EW_ERR_MEMORY, "node %s: no memory for its step", n->name);
    ew_graph_call(p->g, n, t, &out->call);
    out->call.train = p->opts.mode == EW_PLAN_TRAIN;
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] < 0)
            continue;
        const int from = ew_plan_source(p, n->in[i]);
        struct ew_slot *s = ew_plan_latest(p, from);
        if (phase == EW_PHASE_BACKWARD)
            EW_TRY(ew_plan_saved_slot(p, from, &s));
        t[i] = from == n->in[i] ? &s->t : &p->values[n->in[i]].t;
        out->slots[out->n_slots++] = s;
    }
    for (int i = 0; i < n->n_out; i++)
        t[n->n_in + i] = n->out[i] < 0 ? NULL : &outs[n->out[i]].t;
    return add_aux(p, out);
}

/* Extends the lifetimes of the slots that the last step, a node's forward, reads and writes. */
static void touch_forward(struct ew_plan *p, struct ew_slot *outs, const struct ew_node_call *c)
{
    const struct ew_node *n = &p->g->nodes[c->node];
    ew_plan_touch_call(c, p->n_steps - 1);
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && !outs[n->out[i]].no_storage)
            ew_plan_touch(&outs[n->out[i]], p->n_steps - 1);
}

ew_err ew_plan_add_forward(struct ew_plan *p, int node, bool recompute)
{
    const struct ew_node *n = &p->g->nodes[node];
    struct ew_slot *outs = recompute ? p->recompute : p->values;
    struct ew_node_call c;
    struct ew_kernel kernel;
    struct ew_step *second;
    EW_CHECK(!n->channels_first, EW_ERR_INTERNAL, "node %s: is not channels-last", n->name);
    EW_TRY(ew_plan_forward_call(p, node, EW_PHASE_FORWARD, outs, &c));
    c.call.recompute = recompute;
    EW_TRY(ew_plan_choose_kernel(p, EW_PHASE_FORWARD, &c, &kernel));
    EW_TRY(ew_plan_add_call(p, EW_PHASE_FORWARD, &c, &kernel));
    touch_forward(p, outs, &c);
    if (recompute)
        return EW_OK;
    p->node_step[node] = p->n_steps - 1;
    if (!ew_plan_splits(p, node))
        return EW_OK;
    EW_TRY(ew_plan_split(p, &second));
    touch_forward(p, outs, &c);
    return EW_OK;
}

static ew_err add_forwards(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    find_needed(p);
    EW_TRY(ew_plan_find_host_nodes(p));
    if (p->opts.mode == EW_PLAN_TRAIN)
        ew_plan_mark_gradients(p);
    EW_TRY(ew_plan_find_groups(p));
    for (int k = 0; k < g->n_nodes; k++)
        if (p->needed[k])
            EW_TRY(ew_plan_add_forward(p, k, false));
    return EW_OK;
}

/* ---- Compile ---- */

#define SLOT_KINDS (5 + EW_UPDATE_STATES)

static void init_slots(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    const int n = g->n_values;
    for (int i = 0; i < p->n_slots; i++) {
        p->slots[i] = (struct ew_slot){.buffer = -1, .first = -1, .last = -1};
        if (i < SLOT_KINDS * n)
            p->slots[i].t = g->values[i % n].t;
        if (i >= n)
            p->slots[i].t.data = NULL;
    }
    p->values = p->slots;
    p->grads = p->values + n;
    p->recompute = p->grads + n;
    for (int k = 0; k < EW_UPDATE_STATES; k++)
        p->state[k] = p->recompute + (k + 1) * n;
    p->kept = p->recompute + (EW_UPDATE_STATES + 1) * n;
    p->rounded = p->kept + n;
    p->aux = p->rounded + n;
}

static ew_err init_lists(struct ew_plan *p)
{
    const struct ew_graph *g = p->g;
    struct ew_arena *a = &p->arena;
    const size_t values = (size_t)g->n_values + 1, nodes = (size_t)g->n_nodes + 1;
    p->n_slots = SLOT_KINDS * g->n_values + g->n_nodes;
    p->slots = ew_arena_array(a, (size_t)p->n_slots + 1, sizeof(*p->slots));
    p->needs_grad = ew_arena_array(a, values, sizeof(*p->needs_grad));
    p->keep = ew_arena_array(a, values, sizeof(*p->keep));
    p->concat_of = ew_arena_array(a, values, sizeof(*p->concat_of));
    p->uses = ew_arena_array(a, values, sizeof(*p->uses));
    p->stops.complete = ew_arena_array(a, values, sizeof(*p->stops.complete));
    p->needed = ew_arena_array(a, nodes, sizeof(*p->needed));
    p->on_host = ew_arena_array(a, nodes, sizeof(*p->on_host));
    p->node_step = ew_arena_array(a, nodes, sizeof(*p->node_step));
    EW_CHECK(!a->failed, EW_ERR_MEMORY, "no memory to plan graph %s", g->name);
    init_slots(p);
    for (int k = 0; k < g->n_nodes; k++)
        p->node_step[k] = -1;
    for (int i = 0; i < g->n_values; i++) {
        const struct ew_value *v = &g->values[i];
        p->concat_of[i] = -1;
        EW_CHECK(p->opts.dry || v->t.data || !ew_value_is_weight(v), EW_ERR_ARG,
                 "%s: its weights have not been loaded or initialised", v->name);
    }
    return EW_OK;
}

static ew_err find_costs(struct ew_plan *p)
{
    p->costs = ew_arena_array(&p->arena, (size_t)p->g->n_nodes + 1, sizeof(*p->costs));
    EW_CHECK(p->costs, EW_ERR_MEMORY, "no memory to plan graph %s", p->g->name);
    for (int k = 0; k < p->g->n_nodes; k++)
        ew_graph_node_cost(p->g, k, &p->costs[k]);
    return EW_OK;
}

/* Fusions that a device may ask for in training, in the order of the passes. */
static const struct {
    enum ew_fused fused;
    ew_err (*pass)(struct ew_graph *g);
} training_passes[] = {{EW_FUSED_NORM_ADD, ew_pass_fuse_add},
                       {EW_FUSED_NORM_ACT, ew_pass_fuse_norm},
                       {EW_FUSED_SINK_ACT, ew_pass_sink_activation},
                       {EW_FUSED_CONV_RELU, ew_pass_fuse_relu}};

ew_err ew_plan_passes(const struct ew_device_passes *device, struct ew_graph *g)
{
    if (device->lowers_pow2)
        EW_TRY(ew_pass_lower_dpu(g));
    EW_TRY(ew_pass_all(g));
    if (device->launch_macs > 0)
        EW_TRY(ew_pass_join_convs(g, device->launch_macs));
    return device->cache_bytes > 0 ? ew_pass_fuse_separable(g, device->cache_bytes) : EW_OK;
}

/* Sets p->g, the graph that runs: the caller's, or a copy for passes, micro-batches or narrow
 * types.  The copy shares weights and has the same order of inputs and outputs. */
static ew_err make_graph(struct ew_plan *p, struct ew_graph *g)
{
    const bool optimize = p->opts.optimize && p->opts.mode == EW_PLAN_INFER && !p->opts.dry;
    const unsigned fused = p->opts.mode == EW_PLAN_TRAIN ? ew_backend_info(p->be)->fused : 0;
    p->g = g;
    p->source = g;
    if (p->strategy.micro_batches == 1 && !optimize && !fused && !ew_plan_is_narrow(p))
        return EW_OK;
    EW_TRY(ew_graph_clone(g, &p->g));
    if (optimize) {
        if (p->opts.consume) {
            EW_TRY(ew_plan_take_weights(p));
            EW_TRY(ew_pass_drop_identity(p->g));
            EW_TRY(ew_pass_fold_flatten_own(p->g));
            EW_TRY(ew_pass_fold_batch_norm_own(p->g));
        }
        EW_TRY(ew_plan_passes(&ew_backend_info(p->be)->passes, p->g));
        return ew_plan_release_replaced(p);
    }
    if (p->strategy.micro_batches > 1) {
        /* before the passes, which leave dead nodes without inputs */
        int64_t batch = 0;
        EW_TRY(ew_graph_batch(g, &batch));
        EW_TRY(ew_graph_set_batch(p->g, batch / p->strategy.micro_batches));
    }
    for (size_t i = 0; i < EW_COUNT(training_passes); i++)
        if (fused & training_passes[i].fused)
            EW_TRY(training_passes[i].pass(p->g));
    return p->opts.mode == EW_PLAN_TRAIN ? ew_backend_rewrite(p->be, p->g) : EW_OK;
}

/* Opens the device, and the CPU for host steps. */
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
    EW_TRY(make_graph(p, g));
    EW_TRY(find_costs(p));
    EW_TRY(ew_plan_narrow(p));
    EW_TRY(init_lists(p));
    EW_TRY(ew_plan_choose_kept(p));
    EW_TRY(ew_plan_add_rounding(p, EW_TASK_ROUND));
    EW_TRY(add_forwards(p));
    if (p->opts.mode == EW_PLAN_TRAIN)
        EW_TRY(ew_plan_add_backward(p));
    EW_TRY(ew_plan_add_rounding(p, EW_TASK_RESTORE));
    EW_TRY(ew_plan_make_buffers(p));
    EW_TRY(ew_plan_keep_rounded(p));
    ew_plan_mark_stops(p);
    ew_plan_place_weights(p);
    EW_TRY(ew_plan_make_host_steps(p));
    EW_TRY(ew_memory_place(p->buffers, p->n_buffers, &p->blocks[EW_REGION_STEPS].bytes, NULL));
    if (!p->opts.dry)
        EW_TRY(ew_plan_bind_memory(p));
    EW_TRY(ew_plan_make_views(p, g));
    ew_plan_set_step(p, 0);
    p->opts.given = NULL;
    p->opts.rounded = NULL;
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
    if (p->in_flight.n)
        ew_backend_sync(p->be);
    ew_plan_unload(p);
    for (int i = 0; i < EW_REGIONS; i++)
        if (!p->blocks[i].given)
            ew_backend_free(p->blocks[i].memory);
    ew_backend_host_free(p->be, p->host_io);
    if (ew_plan_is_remote(p))
        ew_backend_close(p->host);
    if (!p->backend_given)
        ew_backend_close(p->be);
    ew_arena_fini(&p->arena);
    if (p->g != p->source)
        ew_graph_free(p->g);
    free(p->groups.groups);
    free(p->steps);
    free(p->buffers);
    free(p);
}
