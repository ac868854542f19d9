/* SPDX-License-Identifier: Apache-2.0 */
/* Running plans, and what callers see of them. */
#include <string.h>

#include "base/clock.h"
#include "base/flush.h"
#include "plan/plan.h"
#include "plan/plan_impl.h"

static ew_err run_steps(struct ew_plan *p, int part)
{
    for (int k = 0; k < p->n_steps; k++) {
        const struct ew_step *s = &p->steps[k];
        if (s->when == EW_WHEN_FIRST_PART && part > 0)
            continue;
        if (s->when == EW_WHEN_LAST_PART && part < p->strategy.parts - 1)
            continue;
        const ew_err e = s->kernel.run(&s->call);
        if (e != EW_OK)
            return ew_fail_in(e, "node %s", s->call.name);
    }
    return EW_OK;
}

/* Points the steps at one part of the caller's batch. */
static void bind_part(struct ew_plan *p, int part)
{
    for (int i = 0; i < p->g->n_inputs; i++) {
        struct ew_slot *s = &p->values[p->g->inputs[i]];
        const size_t bytes = ew_tensor_bytes(&s->t);
        const bool split = ew_tensor_bytes(&p->batch_inputs[i]) != bytes;
        memcpy(s->t.data, (char *)p->batch_inputs[i].data + (split ? (size_t)part * bytes : 0),
               bytes);
    }
}

static ew_err run_parts(struct ew_plan *p)
{
    struct ew_tensor *loss = &p->values[p->g->outputs[0]].t;
    double sum = 0;
    for (int part = 0; part < p->strategy.parts; part++) {
        bind_part(p, part);
        EW_TRY(run_steps(p, part));
        sum += ew_tensor_get(loss, 0);
    }
    sum /= p->strategy.parts;
    ew_tensor_store(loss, 0, 1, &sum);
    return EW_OK;
}

ew_err ew_plan_run(struct ew_plan *p)
{
    EW_CHECK(!p->opts.dry, EW_ERR_ARG, "a dry plan of graph %s cannot run", p->g->name);
    const uint64_t mode = ew_flush_begin();
    const ew_err e = p->strategy.parts == 1 ? run_steps(p, 0) : run_parts(p);
    ew_flush_end(mode);
    EW_TRY(e);
    p->opts.optimizer.step += p->opts.update;
    return EW_OK;
}

int ew_plan_step_count(const struct ew_plan *p)
{
    return p->n_steps;
}

void ew_plan_step_info(const struct ew_plan *p, int step, struct ew_step_info *out)
{
    const struct ew_step *s = &p->steps[step];
    *out = (struct ew_step_info){
        .name = s->call.name, .kernel = s->kernel.name, .phase = s->phase, .again = s->call.again};
    if (s->node < 0)
        return;
    struct ew_cost cost;
    ew_graph_node_cost(p->g, s->node, &cost);
    out->op = p->g->nodes[s->node].op->name;
    out->flops = (double)cost.flops * (s->phase == EW_PHASE_BACKWARD ? 2 : 1);
    if (s->call.n_out && s->call.out[0])
        out->out = s->call.out[0]->shape;
}

static const struct ew_step *forward_step(const struct ew_plan *p, int node)
{
    return p->node_step[node] < 0 ? NULL : &p->steps[p->node_step[node]];
}

const char *ew_plan_node_kernel(const struct ew_plan *p, int node, const void **packed,
                                size_t *bytes)
{
    const struct ew_step *s = forward_step(p, node);
    *packed = s ? s->call.packed : NULL;
    *bytes = s ? s->kernel.packed : 0;
    return s ? s->kernel.name : NULL;
}

bool ew_plan_node_packs(const struct ew_plan *p, int node, int i)
{
    const struct ew_step *s = forward_step(p, node);
    return s && i < 32 && (s->kernel.packs >> i & 1);
}

static ew_err run_timed(struct ew_plan *p, int64_t *ns)
{
    for (int k = 0; k < p->n_steps; k++) {
        const struct ew_step *s = &p->steps[k];
        const int64_t start = ew_clock_ns();
        const ew_err e = s->kernel.run(&s->call);
        ns[k] = ew_clock_ns() - start;
        if (e != EW_OK)
            return ew_fail_in(e, "node %s", s->call.name);
    }
    return EW_OK;
}

ew_err ew_plan_run_timed(struct ew_plan *p, int64_t *ns)
{
    EW_CHECK(!p->opts.dry && p->strategy.parts == 1, EW_ERR_ARG,
             "only a plan that runs the whole batch at once can be profiled");
    const uint64_t mode = ew_flush_begin();
    const ew_err e = run_timed(p, ns);
    ew_flush_end(mode);
    EW_TRY(e);
    p->opts.optimizer.step += p->opts.update;
    return EW_OK;
}

const struct ew_backend *ew_plan_backend(const struct ew_plan *p)
{
    return p->be;
}

ew_err ew_plan_refresh(struct ew_plan *p)
{
    struct ew_release *r;
    EW_TRY(ew_release_open(p, &r));
    ew_err e = EW_OK;
    for (int k = 0; k < p->n_steps && e == EW_OK; k++)
        if (p->steps[k].kernel.pack && !p->steps[k].given && !p->steps[k].sealed) {
            e = p->steps[k].kernel.pack(&p->steps[k].call);
            if (e == EW_OK)
                ew_plan_release_packed(p, r, &p->steps[k]);
        }
    ew_release_close(r);
    return e;
}

struct ew_tensor *ew_plan_input(struct ew_plan *p, int i)
{
    return &p->batch_inputs[i];
}

const struct ew_tensor *ew_plan_output(const struct ew_plan *p, int i)
{
    return &p->values[p->g->outputs[i]].t;
}

void ew_plan_bind_input(struct ew_plan *p, int i, void *data)
{
    p->batch_inputs[i].data = data;
    const int buffer = p->values[p->g->inputs[i]].buffer;
    /* Views of the input share its buffer and must follow it. */
    for (int v = 0; v < p->g->n_values && p->strategy.parts == 1; v++)
        if (buffer >= 0 && p->values[v].buffer == buffer)
            p->values[v].t.data = data;
}

const struct ew_tensor *ew_plan_grad(const struct ew_plan *p, int value)
{
    return p->grads[value].buffer >= 0 && !p->opts.update ? &p->grads[value].t : NULL;
}

struct ew_optimizer *ew_plan_optimizer(struct ew_plan *p)
{
    return &p->opts.optimizer;
}

struct ew_tensor *ew_plan_state(struct ew_plan *p, int value, int i)
{
    p->opts.optimizer.handed++;
    return i < EW_UPDATE_STATES && p->state[i][value].buffer >= 0 ? &p->state[i][value].t : NULL;
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

static bool has_batch_statistics(const struct ew_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++)
        if (g->nodes[k].op->state_in)
            return true;
    return false;
}

static size_t graph_weights(const struct ew_graph *g)
{
    size_t bytes = 0;
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].kind != EW_VALUE_ACT && g->values[i].kind != EW_VALUE_INPUT)
            bytes += ew_tensor_bytes(&g->values[i].t);
    return bytes;
}

/* Gradients that are used up one after the other share their memory. */
static size_t add_gradient(const struct ew_plan *p, size_t sum, size_t bytes)
{
    if (p->opts.update && p->strategy.parts == 1)
        return sum > bytes ? sum : bytes;
    return sum + bytes;
}

void ew_plan_stats(const struct ew_plan *p, struct ew_plan_stats *out)
{
    *out = (struct ew_plan_stats){.steps = p->n_steps,
                                  .arena_bytes = p->block_bytes + p->states_bytes + p->packed_bytes,
                                  .unshared_bytes = p->states_bytes + p->packed_bytes,
                                  .block_bytes = p->block_bytes,
                                  .recompute_cheap = p->strategy.cheap,
                                  .segments = p->strategy.segments,
                                  .parts = p->strategy.parts,
                                  .split_changes_statistics =
                                      p->strategy.parts > 1 && has_batch_statistics(p->g)};
    for (int k = 0; k < p->n_steps; k++)
        out->packed_bytes += ew_align_up(p->steps[k].kernel.packed);
    for (int i = 0; i < p->n_buffers; i++)
        out->unshared_bytes += ew_align_up(p->buffers[i].size);
    out->weight_bytes =
        graph_weights(p->source) - p->released + (p->clone ? p->clone->arena.used : 0);
    for (int i = 0; i < p->g->n_values; i++) {
        const struct ew_value *v = &p->g->values[i];
        if (v->kind == EW_VALUE_PARAM && p->grads[i].buffer >= 0)
            out->grad_bytes = add_gradient(p, out->grad_bytes, ew_tensor_bytes(&v->t));
        for (int k = 0; k < EW_UPDATE_STATES; k++)
            if (p->state[k][i].buffer >= 0)
                out->state_bytes += ew_tensor_bytes(&v->t);
    }
    /* The caller's whole batch, where the steps have a part of their own. */
    for (int i = 0; i < p->g->n_inputs && p->strategy.parts > 1; i++)
        out->arena_bytes += ew_tensor_bytes(&p->batch_inputs[i]);
    double flops = 0;
    for (int k = 0; k < p->g->n_nodes; k++) {
        struct ew_cost cost;
        ew_graph_node_cost(p->g, k, &cost);
        flops += (double)cost.flops;
    }
    out->again_share = flops > 0 ? p->again_flops / flops : 0;
}
