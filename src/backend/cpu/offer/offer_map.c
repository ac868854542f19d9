/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise functions that are not activations of a convolution's epilogue. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/math_attr.h"

static const struct {
    const struct ew_op *op;
    enum ew_map_kind kind;
} maps[] = {{&ew_op_erf, EW_MAP_ERF},   {&ew_op_gelu, EW_MAP_GELU}, {&ew_op_exp, EW_MAP_EXP},
            {&ew_op_sqrt, EW_MAP_SQRT}, {&ew_op_neg, EW_MAP_NEG},   {&ew_op_abs, EW_MAP_ABS}};

static bool map_of(const struct ew_call *c, const struct ew_op *op, struct ew_map *out)
{
    *out = (struct ew_map){0};
    for (size_t i = 0; i < EW_COUNT(maps); i++)
        if (maps[i].op == op)
            out->kind = maps[i].kind;
    if (out->kind == EW_MAP_GELU &&
        ((const struct ew_gelu_attr *)c->attr)->approximate == EW_GELU_TANH)
        out->kind = EW_MAP_GELU_TANH;
    return c->in[0]->dtype == EW_F32;
}

static void map_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->map_run(c->state, begin * EW_PARALLEL_GRAIN,
                                ew_min_i64(end * EW_PARALLEL_GRAIN, ew_tensor_count(c->in[0])));
}

static void back_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    ew_cpu(c->be)->isa->map_back(c->state, begin * EW_PARALLEL_GRAIN,
                                 ew_min_i64(end * EW_PARALLEL_GRAIN, ew_tensor_count(c->in[0])));
}

static ew_err prepare_map(const struct ew_call *c)
{
    EW_CHECK(map_of(c, c->op, c->state), EW_ERR_INTERNAL, "%s: the type has changed", c->name);
    return EW_OK;
}

static ew_err run_map(const struct ew_call *c)
{
    struct ew_map *m = c->state;
    m->x = c->in[0]->data;
    m->y = c->out[0]->data;
    ew_parallel_for(c, ew_parallel_grains(ew_tensor_count(c->in[0])), map_range);
    return EW_OK;
}

static ew_err run_back(const struct ew_call *c)
{
    struct ew_map *m = c->state;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    m->x = c->in[0]->data;
    m->dy = c->dout[0]->data;
    m->dx = c->din[0]->data;
    m->add = !(c->fresh & 1);
    ew_parallel_for(c, ew_parallel_grains(ew_tensor_count(c->in[0])), back_range);
    return EW_OK;
}

static int offer_map(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_map m;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    if (!map_of(query->c, query->op, &m))
        return 0;
    if (back && m.kind != EW_MAP_GELU && m.kind != EW_MAP_GELU_TANH)
        return 0;
    out[0] = (struct ew_kernel){.name = "function",
                                .run = back ? run_back : run_map,
                                .prepare = prepare_map,
                                .fresh = back,
                                .state = sizeof(m)};
    return 1;
}

const struct ew_kernel_family ew_offer_map = {
    .ops = EW_FAMILY_OPS(&ew_op_erf, &ew_op_gelu, &ew_op_exp, &ew_op_sqrt, &ew_op_neg, &ew_op_abs),
    .offer = offer_map};
