/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two tensors of equal shape, and products and sums that broadcast one value for each
 * channel, forward and backward.  offer_add.c has sums of equal shapes. */
#include <string.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/norm_step.h"
#include "graph/ops.h"

#define GRAIN    8192 /* elements of a tile, about */
#define CHANNELS 4    /* with fewer, most lanes are empty: left to the reference */

struct work {
    const struct ew_kernels *k;
    struct ew_channel_scale g;
    struct ew_mul_map m;
    int64_t rows, grain; /* rows or elements: all, and those of a tile */
    int small;           /* the broadcast input, 0 or 1; -1: none */
    struct ew_squeeze_excite_norm excite;
};

/* `small` is [b..., 1..., c...] where `full` is [b..., r..., c...]. */
static bool broadcasts(const struct ew_shape *full, const struct ew_shape *small,
                       struct ew_channel_scale *g)
{
    const int lead = full->rank - small->rank;
    if (lead < 0)
        return false;
    int64_t size[3] = {1, 1, 1};
    int phase = 0;
    for (int i = 0; i < full->rank; i++) {
        const int64_t d = full->dim[i], s = i < lead ? 1 : small->dim[i - lead];
        if (s != d && s != 1)
            return false;
        if (s != d && phase == 2)
            return false; /* a second run of broadcast dimensions */
        if (s != d)
            phase = 1;
        else if (phase == 1 && d != 1)
            phase = 2;
        size[phase] *= d;
    }
    *g = (struct ew_channel_scale){.batch = size[0], .rows = size[1], .channels = size[2]};
    return phase == 2 && g->channels >= CHANNELS;
}

static bool resolve(const struct ew_call *c, struct work *w)
{
    *w = (struct work){.k = ew_cpu(c->be)->isa, .small = -1};
    const struct ew_shape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    const bool sum = c->op == &ew_op_add;
    if (ew_shape_equal(a, b)) {
        w->rows = ew_tensor_count(c->in[0]);
        w->grain = GRAIN;
        return !sum;
    }
    if (broadcasts(a, b, &w->g))
        w->small = 1;
    else if (broadcasts(b, a, &w->g))
        w->small = 0;
    w->g.sum = sum;
    w->rows = w->g.batch * w->g.rows;
    w->grain = w->small < 0 || w->g.channels >= GRAIN ? 1 : GRAIN / w->g.channels;
    return w->small >= 0;
}

static void mul_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->mul_run(&w->m, begin * w->grain, ew_min_i64(end * w->grain, w->rows));
}

static void channel_scale_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->channel_scale_run(&w->g, begin * w->grain, ew_min_i64(end * w->grain, w->rows));
}

static void sum_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->channel_scale_sum(&w->g, begin, end);
}

static void run_tiles(const struct ew_call *c, struct work *w, ew_pool_fn *fn)
{
    ew_pool_run(ew_cpu(c->be)->pool, (w->rows + w->grain - 1) / w->grain, fn, w);
}

static ew_err run_forward(const struct ew_call *c)
{
    struct work w;
    EW_CHECK(resolve(c, &w), EW_ERR_INTERNAL, "%s: its shapes have changed", c->name);
    if (w.small < 0) {
        w.m = (struct ew_mul_map){c->in[0]->data, c->in[1]->data, c->out[0]->data, false};
        run_tiles(c, &w, mul_tiles);
        return EW_OK;
    }
    w.g.x = c->in[1 - w.small]->data;
    w.g.s = c->in[w.small]->data;
    w.g.y = c->out[0]->data;
    run_tiles(c, &w, channel_scale_tiles);
    return EW_OK;
}

static bool adds(const struct ew_call *c, int i)
{
    return !(c->fresh >> i & 1);
}

/* Gradient of the input that is not broadcast: dy s, or dy for a sum. */
static void back_full(const struct ew_call *c, struct work *w, struct ew_tensor *dx)
{
    const bool add = adds(c, 1 - w->small);
    if (!w->g.sum) {
        w->g.x = c->dout[0]->data;
        w->g.s = c->in[w->small]->data;
        w->g.y = dx->data;
        w->g.add = add;
        run_tiles(c, w, channel_scale_tiles);
    } else if (add) {
        const struct ew_add_map sum = {.a = dx->data, .b = c->dout[0]->data, .y = dx->data};
        w->k->add_run(&sum, 0, ew_tensor_count(dx));
    } else if (dx->data != c->dout[0]->data) {
        memcpy(dx->data, c->dout[0]->data, ew_tensor_bytes(dx));
    }
}

static void squeeze_excite_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct work *w = ctx;
    w->k->squeeze_excite_run(&w->excite, begin, end);
}

/* Squeeze-and-excite: the full input is recomputed from the batch norm's input; its gradient is
 * left to the norm. */
static void back_excite(const struct ew_call *c, struct work *w)
{
    struct ew_batch_norm norm;
    ew_norm_of_call(ew_call_fused(c, EW_ROLE_EXCITE_PRODUCT), &norm);
    norm.dy = c->dout[0]->data;
    w->excite = (struct ew_squeeze_excite_norm){.norm = &norm,
                                                .dfactor = c->din[w->small]->data,
                                                .add = adds(c, w->small),
                                                .sums = c->shared};
    ew_pool_run(ew_cpu(c->be)->pool, w->k->squeeze_excite_tiles(&w->excite), squeeze_excite_tiles,
                w);
}

/* din[0] may alias dout[0], so it is written last. */
static ew_err run_backward(const struct ew_call *c)
{
    struct work w;
    EW_CHECK(resolve(c, &w), EW_ERR_INTERNAL, "%s: its shapes have changed", c->name);
    if (!c->dout[0])
        return EW_OK;
    if (w.small < 0) {
        for (int i = 1; i >= 0; i--) {
            if (!c->din[i])
                continue;
            w.m = (struct ew_mul_map){c->dout[0]->data, c->in[1 - i]->data, c->din[i]->data,
                                      adds(c, i)};
            run_tiles(c, &w, mul_tiles);
        }
        return EW_OK;
    }
    if (ew_has_role(c, EW_ROLE_EXCITE_PRODUCT)) {
        back_excite(c, &w);
        return EW_OK;
    }
    if (c->din[w.small]) {
        w.g.x = w.g.sum ? NULL : c->in[1 - w.small]->data;
        w.g.dy = c->dout[0]->data;
        w.g.ds = c->din[w.small]->data;
        w.g.add = adds(c, w.small);
        ew_pool_run(ew_cpu(c->be)->pool, w.k->channel_scale_sum_tiles(&w.g), sum_tiles, &w);
    }
    if (c->din[1 - w.small])
        back_full(c, &w, c->din[1 - w.small]);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    struct work w;
    if (c->in[0]->dtype != EW_F32 || c->in[0] == c->in[1] || !resolve(c, &w))
        return 0;
    out[0] =
        (struct ew_kernel){.name = w.small < 0 ? "mul" : "channel scale",
                           .run = query->phase == EW_PHASE_FORWARD ? run_forward : run_backward,
                           .fresh = true,
                           .in_place = true,
                           .roles = w.small >= 0 && !w.g.sum ? EW_ROLE_EXCITE_PRODUCT : 0};
    return 1;
}

const struct ew_kernel_family ew_offer_channel_scale = {
    .ops = EW_FAMILY_OPS(&ew_op_mul, &ew_op_add), .offer = offer};
