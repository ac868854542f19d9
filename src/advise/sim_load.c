/* SPDX-License-Identifier: Apache-2.0 */
/* Work of one run of a plan. */
#include "advise/sim_load.h"

#include <math.h>

#include "advise/call_bytes.h"
#include "backend/backend.h"
#include "compress/pass.h"
#include "graph/ops.h"
#include "op/conv.h"
#include "plan/plan.h"

static int64_t groups_of(const struct ew_call *c)
{
    if (c->op != &ew_op_conv)
        return 1;
    const struct ew_conv_attr *attr = c->attr;
    return attr->groups;
}

static bool is_product(const struct ew_op *op)
{
    return op == &ew_op_conv || op == &ew_op_conv_transpose || op == &ew_op_gemm ||
           op == &ew_op_matmul;
}

static ew_err take_step(struct ew_arena *a, const struct ew_plan *p, int k, struct ew_sim_load *l)
{
    static const char *const phases[] = {"forward", "backward", "update"};
    struct ew_step_info info;
    struct ew_kernel_query q;
    ew_plan_step_info(p, k, &info);
    struct ew_sim_step *s = &l->steps[l->n++];
    *s = (struct ew_sim_step){.name = ew_arena_strdup(a, info.name ? info.name : ""),
                              .op = ew_arena_strdup(a, info.op ? info.op : ""),
                              .phase = phases[info.phase],
                              .flops = info.flops,
                              .groups = 1};
    EW_CHECK(s->name && s->op, EW_ERR_MEMORY, "no memory for a simulation");
    if (ew_plan_step_query(p, k, &q) && q.c) {
        s->bytes = ew_call_bytes(q.c, q.c->n_in);
        s->groups = groups_of(q.c);
        l->products += is_product(q.op);
    }
    l->flops += s->flops;
    l->bytes += s->bytes;
    if (s->groups > 1) {
        l->root_groups += sqrt((double)s->groups);
        l->grouped_flops += s->flops;
    }
    return EW_OK;
}

static ew_err take_steps(struct ew_arena *a, const struct ew_plan *p, struct ew_sim_load *l)
{
    struct ew_plan_stats stats;
    ew_plan_stats(p, &stats);
    l->memory_bytes = (int64_t)(stats.arena_bytes + stats.weight_bytes);
    l->steps = ew_arena_array(a, (size_t)ew_plan_step_count(p) + 1, sizeof(*l->steps));
    EW_CHECK(l->steps, EW_ERR_MEMORY, "no memory for a simulation");
    for (int k = 0; k < ew_plan_step_count(p); k++)
        EW_TRY(take_step(a, p, k, l));
    return EW_OK;
}

static ew_err load_of(struct ew_arena *a, struct ew_graph *g, struct ew_sim_load *l)
{
    const struct ew_plan_opts o = {
        .mode = l->train ? EW_PLAN_TRAIN : EW_PLAN_INFER,
        .dry = true,
        .update = l->train,
        .optimizer = {.kind = EW_OPTIMIZER_SGD, .lr = 0.01, .momentum = 0.9},
        .backend = {.threads = 1, .reference = true}}; /* the same on every host */
    struct ew_plan *p;
    EW_TRY(ew_graph_batch(g, &l->batch));
    for (int i = 0; i < g->n_inputs; i++)
        l->input_bytes += (double)ew_tensor_bytes(&g->values[g->inputs[i]].t);
    if (!l->train)
        EW_TRY(ew_pass_all(g)); /* a dry plan leaves these out */
    EW_TRY(ew_plan_compile(g, &o, &p));
    const ew_err e = take_steps(a, p, l);
    ew_plan_free(p);
    return e;
}

ew_err ew_sim_load_of(struct ew_arena *a, const struct ew_graph *g, bool train,
                      struct ew_sim_load *out)
{
    struct ew_graph *copy;
    *out = (struct ew_sim_load){.train = train};
    EW_TRY(ew_graph_clone(g, &copy));
    const ew_err e = load_of(a, copy, out);
    ew_graph_free(copy);
    return e;
}
