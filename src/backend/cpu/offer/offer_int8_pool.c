/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of 8-bit tensors. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/int8_step.h"
#include "backend/cpu/step/pool_shape.h"
#include "graph/ops.h"

struct step {
    struct ew_conv_shape shape;
    struct ew_qpool pool;
};

static bool resolve(const struct ew_call *c, struct step *out)
{
    *out = (struct step){.pool = {.of_x = {.flip = c->in[0]->dtype == EW_S8 ? 0x80 : 0}}};
    if (!ew_pool_shape_of(c, &out->shape, &out->pool.max, &out->pool.count_pads))
        return false;
    for (int i = EW_QPOOL_X_SCALE; i < c->n_in; i++)
        if (!ew_qknown(c, i))
            return false;
    return true;
}

static ew_err prepare(const struct ew_call *c)
{
    struct step *s = c->state;
    EW_CHECK(resolve(c, s), EW_ERR_INTERNAL, "%s: the pool has changed", c->name);
    s->pool.shape = &s->shape;
    if (s->pool.max)
        return EW_OK;
    s->pool.of_x = ew_qbyte_of(c, EW_QPOOL_X, EW_QPOOL_X_ZERO);
    s->pool.of_y = ew_qbyte_of(c, EW_QPOOL_Y_ZERO, EW_QPOOL_Y_ZERO);
    s->pool.scale_x = (float)ew_tensor_get(c->in[EW_QPOOL_X_SCALE], 0);
    s->pool.scale_y = (float)ew_tensor_get(c->in[EW_QPOOL_Y_SCALE], 0);
    return EW_OK;
}

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct ew_call *c = ctx;
    const struct step *s = c->state;
    ew_cpu(c->be)->isa->int8_pool_run(&s->pool, begin, end);
}

static ew_err run(const struct ew_call *c)
{
    struct step *s = c->state;
    s->pool.x = c->in[0]->data;
    s->pool.y = c->out[0]->data;
    ew_parallel_for(c, ew_cpu(c->be)->isa->int8_pool_tiles(&s->shape), tiles);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct step s;
    const enum ew_dtype dtype = query->c->in[0]->dtype;
    if ((dtype != EW_U8 && dtype != EW_S8) || query->phase != EW_PHASE_FORWARD ||
        query->c->n_out != 1 || ew_tensor_count(query->c->in[0]) >= INT32_MAX ||
        !resolve(query->c, &s))
        return 0;
    out[0] = (struct ew_kernel){
        .name = "int8 pool", .run = run, .prepare = prepare, .state = sizeof(struct step)};
    return 1;
}

const struct ew_kernel_family ew_offer_int8_pool = {
    .ops = EW_FAMILY_OPS(&ew_op_max_pool, &ew_op_global_max_pool, &ew_op_qlinear_average_pool,
                         &ew_op_qlinear_global_average_pool),
    .offer = offer};
