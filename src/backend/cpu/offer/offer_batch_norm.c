/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm: scale and shift in inference, batch statistics and their gradient in training. */
#include <math.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/step/norm_step.h"
#include "graph/ops.h"
#include "op/norm.h"

enum { X, SCALE, SHIFT, MEAN, VAR };

#define GRAIN 64 /* rows a tile */

static int64_t channels_of(const struct ew_call *c)
{
    return c->in[X]->shape.dim[c->in[X]->shape.rank - 1];
}

static int64_t rows_of(const struct ew_call *c)
{
    return ew_shape_span(&c->in[X]->shape, 0, c->in[X]->shape.rank - 1);
}

/* ---- Inference: c->packed is [2][channels]: scale, shift ---- */

static ew_err pack_inference(const struct ew_call *c)
{
    const struct ew_batch_norm_attr *a = c->attr;
    const int64_t channels = channels_of(c);
    const float *scale = c->in[SCALE]->data, *shift = c->in[SHIFT]->data;
    const float *mean = c->in[MEAN]->data, *var = c->in[VAR]->data;
    float *s = c->packed, *t = s + channels;
    for (int64_t i = 0; i < channels; i++) {
        const double f = (double)scale[i] / sqrt((double)var[i] + a->eps);
        s[i] = (float)f;
        t[i] = (float)((double)shift[i] - (double)mean[i] * f);
    }
    return EW_OK;
}

struct inference {
    const struct ew_kernels *k;
    struct ew_scale_shift map;
    int64_t rows;
};

static void inference_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct inference *w = ctx;
    w->k->scale_shift(&w->map, begin * GRAIN, ew_min_i64(end * GRAIN, w->rows));
}

static ew_err run_inference(const struct ew_call *c)
{
    const int64_t channels = channels_of(c);
    const struct ew_epilogue_attr *end = &((const struct ew_batch_norm_attr *)c->attr)->end;
    struct inference w = {.k = ew_cpu(c->be)->isa,
                          .map = {.channels = channels,
                                  .x = c->in[X]->data,
                                  .scale = c->packed,
                                  .shift = (const float *)c->packed + channels,
                                  .act = (enum ew_act)end->act,
                                  .lo = (float)end->lo,
                                  .hi = (float)end->hi,
                                  .y = c->out[0]->data},
                          .rows = rows_of(c)};
    ew_pool_run(ew_cpu(c->be)->pool, (w.rows + GRAIN - 1) / GRAIN, inference_tiles, &w);
    return EW_OK;
}

/* ---- Training: scratch holds the partial sums ---- */

struct training {
    const struct ew_kernels *k;
    struct ew_batch_norm b;
};

void ew_norm_of_call(const struct ew_call *c, struct ew_batch_norm *out)
{
    const struct ew_batch_norm_attr *a = c->attr;
    *out = (struct ew_batch_norm){.rows = rows_of(c),
                                  .channels = channels_of(c),
                                  .x = c->in[X]->data,
                                  .scale = c->in[SCALE]->data,
                                  .bias = c->in[SHIFT]->data,
                                  .eps = (float)a->eps,
                                  .momentum = (float)(1 - a->momentum),
                                  .act = (enum ew_act)a->end.act,
                                  .lo = (float)a->end.lo,
                                  .hi = (float)a->end.hi,
                                  .mean = c->aux,
                                  .rstd = (float *)c->aux + channels_of(c),
                                  .sums = (float *)c->aux + 2 * channels_of(c),
                                  .dy = c->dout && c->dout[0] ? c->dout[0]->data : NULL};
    out->image = out->rows / c->in[X]->shape.dim[0];
    const struct ew_call *product = ew_call_fused(c, EW_ROLE_EXCITE_PRODUCT);
    const struct ew_call *average = ew_call_fused(c, EW_ROLE_EXCITE_AVERAGE);
    if (!product || !average)
        return;
    const int full = ew_tensor_count(product->in[0]) < ew_tensor_count(product->in[1]);
    out->dy = product->dout[0]->data;
    out->factor = product->in[1 - full]->data;
    out->average_grad = average->dout[0]->data;
    out->average_scale = 1.0f / (float)out->image;
}

static struct training training_of(const struct ew_call *c)
{
    struct training t = {.k = ew_cpu(c->be)->isa};
    ew_norm_of_call(c, &t.b);
    t.b.partial = c->scratch;
    return t;
}

static void stats_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct training *t = ctx;
    t->k->batch_stats(&t->b, begin, end);
}

static void apply_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct training *t = ctx;
    t->k->batch_apply(&t->b, begin * GRAIN, ew_min_i64(end * GRAIN, t->b.rows));
}

static void back_stats_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct training *t = ctx;
    t->k->batch_back_stats(&t->b, begin, end);
}

static void back_apply_tiles(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct training *t = ctx;
    t->k->batch_back_apply(&t->b, begin * GRAIN, ew_min_i64(end * GRAIN, t->b.rows));
}

void ew_norm_finish(const struct ew_call *c, float *partial, int64_t split_rows)
{
    struct ew_batch_norm b;
    ew_norm_of_call(c, &b);
    b.partial = partial;
    b.split_rows = split_rows;
    b.running_mean = c->in[MEAN]->data;
    b.running_var = c->in[VAR]->data;
    ew_cpu(c->be)->isa->batch_finish(&b);
}

void ew_norm_reduce(const struct ew_call *c, float *partial)
{
    struct training t = {.k = ew_cpu(c->be)->isa};
    ew_norm_of_call(c, &t.b);
    t.b.partial = partial;
    ew_pool_run(ew_cpu(c->be)->pool, t.k->batch_splits(t.b.rows), stats_tiles, &t);
    ew_norm_finish(c, partial, 0);
}

static ew_err reduce_stats(const struct ew_call *c)
{
    if (!c->recompute && !ew_has_role(c, EW_ROLE_STATS_READY)) /* else aux has the statistics */
        ew_norm_reduce(c, c->scratch);
    return EW_OK;
}

static ew_err apply_norm(const struct ew_call *c)
{
    struct training t = training_of(c);
    t.b.y = c->out[0]->data;
    if (t.b.y) /* else fused: the reader applies the norm */
        ew_pool_run(ew_cpu(c->be)->pool, (t.b.rows + GRAIN - 1) / GRAIN, apply_tiles, &t);
    return EW_OK;
}

static ew_err run_training(const struct ew_call *c)
{
    EW_TRY(reduce_stats(c));
    return apply_norm(c);
}

/* Reductions of the gradient: dscale and dbias, and aux for dx. */
static ew_err reduce_grads(const struct ew_call *c)
{
    if (!c->dout[0])
        return EW_OK;
    struct training t = training_of(c);
    t.b.dscale = c->din[SCALE]->data;
    t.b.dbias = c->din[SHIFT]->data;
    t.b.add_dparam = !(c->fresh >> SCALE & 1);
    if (ew_has_role(c, EW_ROLE_EXCITE_NORM))
        t.k->squeeze_excite_total(&(struct ew_squeeze_excite_norm){.norm = &t.b, .sums = c->shared},
                                  t.b.sums);
    if (c->roles & (EW_ROLE_SUMS_READY | EW_ROLE_EXCITE_NORM)) {
        t.b.partial = t.b.sums;
        t.b.splits = 1;
    } else {
        ew_pool_run(ew_cpu(c->be)->pool, t.k->batch_splits(t.b.rows), back_stats_tiles, &t);
    }
    t.k->batch_back_finish(&t.b);
    return EW_OK;
}

static ew_err apply_grads(const struct ew_call *c)
{
    if (!c->dout[0])
        return EW_OK;
    struct training t = training_of(c);
    t.b.dx = c->din[X]->data;
    t.b.add_dx = !(c->fresh >> X & 1);
    if (t.b.dx) /* else fused: the layer before computes dx */
        ew_pool_run(ew_cpu(c->be)->pool, (t.b.rows + GRAIN - 1) / GRAIN, back_apply_tiles, &t);
    return EW_OK;
}

static ew_err run_backward(const struct ew_call *c)
{
    EW_TRY(reduce_grads(c));
    return apply_grads(c);
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const struct ew_batch_norm_attr *a = c->attr;
    const int64_t channels = channels_of(c), rows = rows_of(c);
    if (c->in[X]->dtype != EW_F32 || c->in[SCALE]->dtype != EW_F32 ||
        c->in[MEAN]->dtype != EW_F32 || a->training_mode || a->added || c->n_out != 1 || rows == 0)
        return 0;
    if (!c->train) {
        for (int i = SCALE; i <= VAR; i++)
            if (!c->in[i]->data)
                return 0; /* computed at run time: left to the reference */
        out[0] = (struct ew_kernel){.name = "scale and shift",
                                    .run = run_inference,
                                    .pack = pack_inference,
                                    .packs = 1u << SCALE | 1u << SHIFT | 1u << MEAN | 1u << VAR,
                                    .packed = 2 * (size_t)channels * sizeof(float)};
        return 1;
    }
    /* Only some gradients are wanted (a parameter is frozen or shared): rare, left to the
     * reference.  A query without din asks for the shapes alone. */
    const bool whole = query->phase == EW_PHASE_FORWARD || !c->din ||
                       (c->din[X] && c->din[SCALE] && c->din[SHIFT]);
    if (!whole)
        return 0;
    const size_t floats = ew_cpu(query->be)->isa->batch_partial(rows, channels);
    const bool forward = query->phase == EW_PHASE_FORWARD;
    out[0] =
        (struct ew_kernel){.name = "batch norm",
                           .run = forward ? run_training : run_backward,
                           .reduce = forward ? reduce_stats : reduce_grads,
                           .apply = forward ? apply_norm : apply_grads,
                           .scratch = floats * sizeof(float),
                           .fresh = true,
                           .in_place = true,
                           .roles = EW_ROLE_STATS_ONLY | EW_ROLE_STATS_READY | EW_ROLE_SUMS_ONLY |
                                    EW_ROLE_SUMS_READY | EW_ROLE_EXCITE_NORM};
    return 1;
}

const struct ew_kernel_family ew_offer_batch_norm = {.ops = EW_FAMILY_OPS(&ew_op_batch_norm),
                                                     .offer = offer};
