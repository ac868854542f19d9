/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: sliding, global, and adaptive where their windows are even. */
#include <string.h>

#include "backend/cpu/isa.h"
#include "backend/cpu/share.h"
#include "op/pooling.h"

static bool is(const struct ew_call *c, const char *name)
{
    return strcmp(c->op->name, name) == 0;
}

/* Even adaptive windows slide. */
static bool make_even(struct ew_window *w)
{
    for (int i = 0; w->adaptive && i < EW_WINDOW_DIMS; i++) {
        if (w->in[i] % w->out[i])
            return false;
        w->kernel[i] = w->stride[i] = w->in[i] / w->out[i];
        w->dilation[i] = 1;
        w->pad[i] = w->pad_end[i] = 0;
    }
    return true;
}

/* The average over a last window that reaches beyond the padding has a divisor of its own. */
static bool reaches_beyond(const struct ew_window *w)
{
    for (int i = 0; i < EW_WINDOW_DIMS; i++) {
        const int64_t end =
            (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (end > w->in[i] + w->pad[i] + w->pad_end[i])
            return true;
    }
    return false;
}

static bool resolve(const struct ew_call *c, struct ew_pooling *out)
{
    struct ew_window w;
    const bool sliding = is(c, "max_pool") || is(c, "average_pool");
    const bool adaptive = is(c, "adaptive_avg_pool");
    const ew_err e = sliding    ? ew_pool_resolve(c, &w)
                     : adaptive ? ew_adaptive_resolve(c, &w)
                                : ew_global_resolve(c, &w);
    if (e != EW_OK || !make_even(&w))
        return false;
    const struct ew_pool_attr *a = c->attr;
    *out = (struct ew_pooling){.max = is(c, "max_pool") || is(c, "global_max_pool"),
                               .count_pads = is(c, "average_pool") && a->count_include_pad};
    if (out->count_pads && reaches_beyond(&w))
        return false;
    out->shape = (struct ew_conv_shape){.batch = (int32_t)w.batch,
                                        .groups = (int32_t)w.channels,
                                        .cin = (int32_t)w.channels,
                                        .cout = (int32_t)w.channels};
    for (int i = 0; i < EW_WINDOW_DIMS; i++)
        out->shape.axis[i] = (struct ew_conv_axis){.in = (int32_t)w.in[i],
                                                   .out = (int32_t)w.out[i],
                                                   .taps = (int32_t)w.kernel[i],
                                                   .stride = (int32_t)w.stride[i],
                                                   .dilation = (int32_t)w.dilation[i],
                                                   .pad = (int32_t)w.pad[i]};
    return true;
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
