/* SPDX-License-Identifier: Apache-2.0 */
/* Queries about plans: steps, kernels, statistics. */
#include "op/epilogue.h"
#include "plan/plan.h"
#include "plan/plan_impl.h"

int ew_plan_step_count(const struct ew_plan *p)
{
    return p->n_steps;
}

/* Bytes transferred per run, both ways. */
static size_t copied_bytes(const struct ew_plan *p, const struct ew_host_step *h)
{
    size_t bytes = 0;
    for (const struct ew_copy *c = h->copies; c < h->copies + h->n_copies; c++)
        bytes += ew_plan_host_bytes(p, c->slot) * (size_t)(c->in + c->out);
    return bytes;
}

/* The activation in the node's epilogue, or NULL. */
static const char *fused_act(const struct ew_node *n)
{
    for (const struct ew_field *f = n->op->attrs; f && f->name; f++)
        if (f->type == EW_FIELD_ENUM && f->choices == ew_act_names) {
            const int act = *(const int *)(const void *)((const char *)n->attr + f->offset);
            return act == EW_ACT_NONE ? NULL : ew_act_names[act];
        }
    return NULL;
}

void ew_plan_step_info(const struct ew_plan *p, int step, struct ew_step_info *out)
{
    const struct ew_step *s = &p->steps[step];
    *out = (struct ew_step_info){.name = s->call.name,
                                 .kernel = s->kernel.name,
                                 .phase = s->phase,
                                 .node = s->node,
                                 .recompute = s->call.recompute};
    if (s->host) {
        out->on_host = true;
        out->copied_bytes = copied_bytes(p, s->host);
        out->copy_ns = s->host->copy_ns;
    }
    if (s->node < 0)
        return;
    out->op = p->g->nodes[s->node].op->name;
    out->act = fused_act(&p->g->nodes[s->node]);
    out->flops = (double)p->costs[s->node].flops * (s->phase == EW_PHASE_BACKWARD ? 2 : 1);
    if (s->call.n_out && s->call.out[0])
        out->out = s->call.out[0]->shape;
}

bool ew_plan_step_query(const struct ew_plan *p, int step, struct ew_kernel_query *out)
{
    const struct ew_step *s = &p->steps[step];
    if (s->node < 0 || s->phase == EW_PHASE_UPDATE)
        return false;
    *out = (struct ew_kernel_query){s->call.be, p->g->nodes[s->node].op, s->phase, &s->call};
    return true;
}

static struct ew_step *forward_step(const struct ew_plan *p, int node)
{
    return p->node_step[node] < 0 ? NULL : &p->steps[p->node_step[node]];
}

/* The step's packed weights in host memory; NULL if it has none, or for want of memory. */
static const void *read_packed(struct ew_plan *p, struct ew_step *s)
{
    if (!s->kernel.packed || p->opts.dry)
        return NULL;
    if (s->given)
        return s->given;
    if (s->host || !ew_plan_is_remote(p))
        return ew_step_call(s)->packed;
    void *copy = ew_arena_alloc(&p->arena, s->kernel.packed);
    const bool ok = copy && ew_backend_read(p->blocks[EW_REGION_PACKED].memory, s->packed_at, copy,
                                            s->kernel.packed) == EW_OK;
    return ok ? copy : NULL;
}

const char *ew_plan_node_kernel(struct ew_plan *p, int node, const void **packed, size_t *bytes)
{
    struct ew_step *s = forward_step(p, node);
    *packed = s ? read_packed(p, s) : NULL;
    *bytes = s ? s->kernel.packed : 0;
    return s ? s->kernel.name : NULL;
}

bool ew_plan_node_packs(const struct ew_plan *p, int node, int i)
{
    const struct ew_step *s = forward_step(p, node);
    return s && ew_plan_bit(s->kernel.packs, i);
}

struct ew_backend *ew_plan_backend(const struct ew_plan *p)
{
    return p->be;
}

struct ew_optimizer *ew_plan_optimizer(struct ew_plan *p)
{
    return &p->opts.optimizer;
}

void ew_plan_set_step(struct ew_plan *p, uint64_t step)
{
    p->step_key = ew_run_mix(p->opts.seed ^ ew_run_mix(step));
    ew_plan_set_micro_batch(p, 0);
}

void ew_plan_set_micro_batch(struct ew_plan *p, int micro_batch)
{
    p->params.key =
        micro_batch ? ew_run_mix(p->step_key ^ ew_run_mix((uint64_t)micro_batch)) : p->step_key;
    p->params.optimizer = p->opts.update ? &p->opts.optimizer : NULL;
    for (int k = 0; k < p->n_steps; k++) {
        struct ew_step *s = &p->steps[k];
        ew_step_call(s)->seed = ew_run_seed(p->params.key, s->node);
    }
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
        if (ew_value_is_weight(&g->values[i]))
            bytes += ew_tensor_bytes(&g->values[i].t);
    return bytes;
}

/* Gradients that are consumed one by one share memory, so the largest counts. */
static size_t add_gradient(const struct ew_plan *p, size_t sum, size_t bytes)
{
    if (p->opts.update && !p->opts.bucket_bytes && p->strategy.micro_batches == 1)
        return sum > bytes ? sum : bytes;
    return sum + bytes;
}

void ew_plan_stats(const struct ew_plan *p, struct ew_plan_stats *out)
{
    size_t own = 0;
    for (int i = EW_REGION_STEPS + 1; i < EW_REGIONS; i++)
        own += p->blocks[i].bytes;
    *out = (struct ew_plan_stats){.steps = p->n_steps,
                                  .arena_bytes = ew_plan_whole_block(p) + own,
                                  .unshared_bytes = own,
                                  .block_bytes = p->blocks[EW_REGION_STEPS].bytes,
                                  .resident_bytes = p->blocks[EW_REGION_WEIGHTS].bytes,
                                  .recompute_cheap = p->strategy.cheap,
                                  .segments = p->strategy.segments,
                                  .micro_batches = p->strategy.micro_batches,
                                  .swapped = p->strategy.swapped,
                                  .slower = p->strategy.slower,
                                  .split_changes_statistics =
                                      p->strategy.micro_batches > 1 && has_batch_statistics(p->g)};
    double again = 0;
    for (int k = 0; k < p->n_steps; k++) {
        const struct ew_step *s = &p->steps[k];
        again += s->call.recompute ? (double)p->costs[s->node].flops : 0;
        out->packed_bytes += ew_align_up(s->kernel.packed);
        out->host_steps += s->host != NULL;
        out->copied_bytes += s->host ? copied_bytes(p, s->host) : 0;
    }
    for (int i = 0; i < p->n_buffers; i++)
        out->unshared_bytes += ew_align_up(p->buffers[i].size);
    out->weight_bytes =
        graph_weights(p->source) - p->released + (p->g != p->source ? p->g->arena.used : 0);
    for (int i = 0; i < p->g->n_values; i++) {
        const struct ew_value *v = &p->g->values[i];
        if (v->kind == EW_VALUE_PARAM && p->grads[i].buffer >= 0)
            out->grad_bytes = add_gradient(p, out->grad_bytes, ew_tensor_bytes(&v->t));
        for (int k = 0; k < EW_UPDATE_STATES; k++)
            if (p->state[k][i].region == EW_REGION_OPTIMIZER)
                out->state_bytes += ew_tensor_bytes(&v->t);
    }
    /* With micro-batches, the caller's whole batch. */
    for (int i = 0; i < p->g->n_inputs && p->strategy.micro_batches > 1; i++)
        out->arena_bytes += ew_tensor_bytes(&p->batch_inputs[i]);
    double flops = 0;
    for (int k = 0; k < p->g->n_nodes; k++)
        flops += (double)p->costs[k].flops;
    out->recompute_share = flops > 0 ? again / flops : 0;
}

struct ew_plan_given ew_plan_lend(const struct ew_plan *p)
{
    return (struct ew_plan_given){
        .backend = p->be, .block = p->blocks[EW_REGION_STEPS].memory, .block_alone = true};
}
