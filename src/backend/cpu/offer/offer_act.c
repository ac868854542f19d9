/* SPDX-License-Identifier: Apache-2.0 */
/* Activations that are nodes of their own, forward and backward. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "graph/ops.h"
#include "op/epilogue.h"

#define GRAIN 8192 /* elements a tile */

struct work {
    const struct ew_kernels *k;
    struct ew_act_map map;
    int64_t count;
};

static void forward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->act_run(&w->map, begin * GRAIN, ew_min_i64(end * GRAIN, w->count));
}

static void backward_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->act_back(&w->map, begin * GRAIN, ew_min_i64(end * GRAIN, w->count));
}

static struct work work_of(const struct ew_call *c, int64_t count)
{
    struct ew_epilogue_attr e = {0};
    ew_act_of_call(c, &e);
    return (struct work){.k = ew_cpu(c->be)->isa,
                         .map = {.act = (enum ew_act)e.act, .lo = (float)e.lo, .hi = (float)e.hi},
                         .count = count};
}

static ew_err run_forward(const struct ew_call *c)
{
    struct work w = work_of(c, ew_tensor_count(c->in[0]));
    w.map.x = c->in[0]->data;
    w.map.y = c->out[0]->data;
    ew_pool_run(ew_cpu(c->be)->pool, (w.count + GRAIN - 1) / GRAIN, forward_tiles, &w);
    return EW_OK;
}

/* If the output was saved instead of the input, the derivative is computed from the output.  If
 * dout[0] is masked already, it only has to be copied or added. */
static ew_err run_backward(const struct ew_call *c)
{
    if (!c->din[0] || !c->dout[0])
        return EW_OK;
    struct work w = work_of(c, ew_tensor_count(c->din[0]));
    w.map.from_output = c->op->saves & EW_SAVE_OUT;
    w.map.dy = c->dout[0]->data;
    w.map.dx = c->din[0]->data;
    w.map.add = !(c->fresh & 1);
    const bool masked = ew_has_role(c, EW_ROLE_RELU_MASKED);
    if (masked && !w.map.add && w.map.dy == w.map.dx)
        return EW_OK;
    const struct ew_tensor *x = w.map.from_output ? c->out[0] : c->in[0];
    w.map.act = masked ? EW_ACT_NONE : w.map.act;
    w.map.x = masked ? w.map.dy : x->data;
    ew_pool_run(ew_cpu(c->be)->pool, (w.count + GRAIN - 1) / GRAIN, backward_tiles, &w);
    return EW_OK;
}

/* True if gradients of clip's bounds are wanted, which these kernels do not compute. */
static bool wants_more(const struct ew_call *c)
{
    for (int i = 1; c->din && i < c->n_in; i++)
        if (c->din[i])
            return true;
    return false;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_epilogue_attr e = {0};
    if (query->c->in[0]->dtype != EW_F32 || wants_more(query->c) || !ew_act_of_call(query->c, &e))
        return 0;
    const bool forward = query->phase == EW_PHASE_FORWARD;
    out[0] = (struct ew_kernel){.name = "activation",
                                .run = forward ? run_forward : run_backward,
                                .fresh = true,
                                .roles = e.act == EW_ACT_RELU ? EW_ROLE_RELU_MASKED : 0,
                                .in_place = true};
    return 1;
}

const struct ew_kernel_family ew_offer_act = {
    .ops = EW_FAMILY_OPS(&ew_op_relu, &ew_op_clip, &ew_op_leaky_relu, &ew_op_hard_swish,
                         &ew_op_hard_sigmoid, &ew_op_silu, &ew_op_sigmoid, &ew_op_tanh),
    .offer = offer};
