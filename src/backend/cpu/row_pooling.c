/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: sliding, global, and adaptive where their windows are even. */
#include "backend/cpu/isa.h"
#include "backend/cpu/pool_shape.h"
#include "backend/cpu/share.h"

static bool resolve(const struct ew_call *c, struct ew_pooling *out)
{
    *out = (struct ew_pooling){0};
    return ew_pool_shape_of(c, &out->shape, &out->max, &out->count_pads);
}

static void forward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    c->be->isa->pool_run(c->state, begin, end);
}

static void backward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    c->be->isa->pool_back_run(c->state, begin, end);
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
    ew_share_run(c, c->be->isa->pool_tiles(&p->shape), forward_tiles);
    return EW_OK;
}

static ew_err run_backward(const struct ew_call *c)
{
    struct ew_pooling *p = c->state;
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    p->x = c->in[0]->data;
    p->dy = c->dout[0]->data;
    p->dx = c->din[0]->data;
    p->add = !(c->fresh & 1);
    ew_share_run(c, c->be->isa->pool_back_tiles(&p->shape), backward_tiles);
    return EW_OK;
}

static int offer(const struct ew_ask *ask, struct ew_kernel *out)
{
    struct ew_pooling p;
    if (ask->c->in[0]->dtype != EW_F32 || ask->c->n_out != 1 ||
        ew_tensor_count(ask->c->in[0]) >= INT32_MAX || !resolve(ask->c, &p))
        return 0;
    out[0] = (struct ew_kernel){.name = "pool",
                                .run = ask->phase == EW_PHASE_FORWARD ? run_forward : run_backward,
                                .prepare = prepare,
                                .state = sizeof(p),
                                .fresh = true};
    return 1;
}

const struct ew_row ew_row_pooling = {.ops = EW_ROW_OPS("max_pool", "average_pool",
                                                        "global_average_pool", "global_max_pool",
                                                        "adaptive_avg_pool"),
                                      .offer = offer};
