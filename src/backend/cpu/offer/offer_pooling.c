/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: sliding, global, and adaptive with windows of equal size. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/pool_shape.h"
#include "graph/ops.h"
#include "op/pooling.h"

static bool resolve(const struct ew_call *c, struct ew_pooling *out)
{
    *out = (struct ew_pooling){0};
    return ew_pool_shape_of(c, &out->shape, &out->max, &out->count_pads);
}

static void forward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct ew_pooling *p = c->state;
    if (p->index)
        ew_cpu(c->be)->isa->max_pool_run(p, begin, end);
    else
        ew_cpu(c->be)->isa->pool_run(p, begin, end);
}

static void backward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct ew_pooling *p = c->state;
    if (p->max)
        ew_cpu(c->be)->isa->max_pool_back_run(p, begin, end);
    else
        ew_cpu(c->be)->isa->pool_back_run(p, begin, end);
}

static ew_err prepare(const struct ew_call *c)
{
    EW_CHECK(resolve(c, c->state), EW_ERR_INTERNAL, "%s: the pool has changed", c->name);
    return EW_OK;
}

static ew_err run_forward(const struct ew_call *c)
{
    struct ew_pooling *p = c->state;
    p->x = c->in[0]->data;
    p->y = c->out[0]->data;
    p->index = p->max && c->train ? c->aux : NULL;
    ew_parallel_for(c, ew_cpu(c->be)->isa->pool_tiles(&p->shape), forward_tiles);
    return EW_OK;
}

static ew_err run_backward(const struct ew_call *c)
{
    struct ew_pooling *p = c->state;
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    p->index = c->aux;
    p->dy = c->dout[0]->data;
    p->dx = c->din[0]->data;
    p->add = !(c->fresh & 1);
    ew_parallel_for(c, p->max ? k->max_pool_back_tiles(&p->shape) : k->pool_back_tiles(&p->shape),
                    backward_tiles);
    return EW_OK;
}

/* In larger windows the index of the maximum does not fit a byte. */
static bool takes(const struct ew_call *c, const struct ew_pooling *p)
{
    const struct ew_conv_axis *a = p->shape.axis;
    return !p->max || !c->train || (int64_t)a[0].taps * a[1].taps <= EW_MAX_POOL_SMALL / a[2].taps;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_pooling p;
    if (query->c->in[0]->dtype != EW_F32 || query->c->n_out != 1 ||
        ew_tensor_count(query->c->in[0]) >= INT32_MAX || !resolve(query->c, &p) ||
        !takes(query->c, &p))
        return 0;
    out[0] =
        (struct ew_kernel){.name = "pool",
                           .run = query->phase == EW_PHASE_FORWARD ? run_forward : run_backward,
                           .prepare = prepare,
                           .state = sizeof(p),
                           .fresh = true};
    return 1;
}

const struct ew_kernel_family ew_offer_pooling = {
    .ops = EW_FAMILY_OPS(&ew_op_max_pool, &ew_op_average_pool, &ew_op_global_average_pool,
                         &ew_op_global_max_pool, &ew_op_adaptive_avg_pool),
    .offer = offer};
