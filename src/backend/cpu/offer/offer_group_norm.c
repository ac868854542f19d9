/* SPDX-License-Identifier: Apache-2.0 */
/* Group norm, and instance norm as groups of one channel. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/norm.h"

static bool resolve(const struct ew_call *c, struct ew_group_norm *out)
{
    const struct ew_group_norm_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape;
    const int64_t channels = x->dim[x->rank - 1];
    const bool instance = c->op == &ew_op_instance_norm;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i]->dtype != EW_F32)
            return false;
    *out = (struct ew_group_norm){.images = x->dim[0],
                                  .rows = ew_shape_span(x, 1, x->rank - 1),
                                  .channels = channels,
                                  .run = instance ? 1 : channels / a->groups,
                                  .per_group = ew_tensor_count(c->in[1]) != channels,
                                  .eps = (float)a->eps};
    return ew_tensor_count(c->in[0]) > 0;
}

/* Scratch: factors, partial sums, and without aux also mean and 1 / std. */
static size_t scratch_bytes(const struct ew_kernels *k, const struct ew_group_norm *g)
{
    return ew_float_bytes((size_t)(g->images * 3 * g->channels)) +
           ew_float_bytes(k->group_norm_partial(g)) +
           ew_float_bytes((size_t)(2 * g->images * (g->channels / g->run)));
}

struct work {
    const struct ew_kernels *k;
    struct ew_group_norm g;
};

static struct work of_call(const struct ew_call *c)
{
    struct work w = {.k = ew_cpu(c->be)->isa};
    struct ew_group_norm *g = &w.g;
    resolve(c, g);
    g->x = c->in[0]->data;
    g->scale = c->in[1]->data;
    g->bias = c->in[2]->data;
    char *room = c->scratch;
    g->factors = (void *)room;
    room += ew_float_bytes((size_t)(g->images * 3 * g->channels));
    g->partial = (void *)room;
    room += ew_float_bytes(w.k->group_norm_partial(g));
    g->mean = c->aux ? c->aux : (void *)room;
    g->rstd = g->mean + g->images * (g->channels / g->run);
    return w;
}

#define LOOP(name)                                                                                 \
    static void name(void *ctx, int64_t begin, int64_t end, int worker)                            \
    {                                                                                              \
        const struct work *w = ctx;                                                                \
        w->k->group_norm_##name(&w->g, begin, end);                                                \
    }

LOOP(stats)
LOOP(finish)
LOOP(apply)
LOOP(back_stats)
LOOP(back_apply)

static ew_err run_forward(const struct ew_call *c)
{
    struct ew_pool *pool = ew_cpu(c->be)->pool;
    struct work w = of_call(c);
    const int64_t tiles = w.k->group_norm_tiles(&w.g);
    w.g.y = c->out[0]->data;
    ew_pool_run(pool, tiles, stats, &w);
    ew_pool_run(pool, w.g.images, finish, &w);
    ew_pool_run(pool, tiles, apply, &w);
    return EW_OK;
}

static float *gradient(const struct ew_call *c, int i)
{
    return c->din[i] ? c->din[i]->data : NULL;
}

static ew_err run_backward(const struct ew_call *c)
{
    struct ew_pool *pool = ew_cpu(c->be)->pool;
    if (!c->dout[0])
        return EW_OK;
    struct work w = of_call(c);
    const int64_t tiles = w.k->group_norm_tiles(&w.g);
    w.g.dy = c->dout[0]->data;
    w.g.dx = gradient(c, 0);
    w.g.dscale = gradient(c, 1);
    w.g.dbias = gradient(c, 2);
    w.g.add_dx = !(c->fresh & 1);
    w.g.add_dscale = !(c->fresh & 2);
    w.g.add_dbias = !(c->fresh & 4);
    ew_pool_run(pool, tiles, back_stats, &w);
    w.k->group_norm_back_finish(&w.g);
    if (w.g.dx)
        ew_pool_run(pool, tiles, back_apply, &w);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_group_norm g;
    struct ew_call c = *query->c;
    c.op = query->op;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    if (!resolve(&c, &g))
        return 0;
    out[0] = (struct ew_kernel){.name = "group norm",
                                .run = back ? run_backward : run_forward,
                                .fresh = back,
                                .scratch = scratch_bytes(ew_cpu(query->be)->isa, &g)};
    return 1;
}

const struct ew_kernel_family ew_offer_group_norm = {
    .ops = EW_FAMILY_OPS(&ew_op_group_norm, &ew_op_instance_norm), .offer = offer};
