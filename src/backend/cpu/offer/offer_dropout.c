/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout, forward and backward; with a mask output it is left to the reference. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/math_attr.h"

#define GRAIN 2048 /* elements of a tile; each needs a random number */

struct work {
    const struct ew_kernels *k;
    struct ew_dropout drop;
    int64_t count;
};

static void tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->dropout_run(&w->drop, begin * GRAIN, ew_min_i64(end * GRAIN, w->count));
}

static void run(const struct ew_call *c, const struct ew_tensor *x, struct ew_tensor *y, bool add)
{
    struct work w = {.k = ew_cpu(c->be)->isa,
                     .drop = {.seed = c->seed,
                              .ratio = ew_dropout_ratio(c),
                              .x = x->data,
                              .y = y->data,
                              .add = add},
                     .count = ew_tensor_count(y)};
    ew_pool_run(ew_cpu(c->be)->pool, (w.count + GRAIN - 1) / GRAIN, tiles, &w);
}

static ew_err run_forward(const struct ew_call *c)
{
    if (c->out[0])
        run(c, c->in[0], c->out[0], false);
    return EW_OK;
}

static ew_err run_backward(const struct ew_call *c)
{
    if (c->din[0] && c->dout[0])
        run(c, c->dout[0], c->din[0], !(c->fresh & 1));
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    if (c->in[0]->dtype != EW_F32 || (c->n_out > 1 && c->out[1]))
        return 0;
    out[0] =
        (struct ew_kernel){.name = "dropout",
                           .run = query->phase == EW_PHASE_FORWARD ? run_forward : run_backward,
                           .fresh = true,
                           .in_place = true};
    return 1;
}

const struct ew_kernel_family ew_offer_dropout = {.ops = EW_FAMILY_OPS(&ew_op_dropout),
                                                  .offer = offer};
