/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm and pools on CUDA devices. */
#include "backend/cuda/cuda_backend.h"
#include "graph/ops.h"
#include "op/norm.h"
#include "op/pooling.h"

/* ---- Batch norm ---- */

enum { X, SCALE, BIAS, MEAN, VAR, ADD };

static int channels_of(const struct ew_call *c)
{
    return (int)c->in[X]->shape.dim[c->in[X]->shape.rank - 1];
}

static int64_t pixels_of(const struct ew_call *c)
{
    return ew_shape_span(&c->in[X]->shape, 0, c->in[X]->shape.rank - 1);
}

static ew_err run_norm(const struct ew_call *c)
{
    const struct ew_batch_norm_attr *a = c->attr;
    const struct ew_cuda_norm p = {.type = ew_cuda_storage(c->in[X]),
                                   .pixels = pixels_of(c),
                                   .channels = channels_of(c),
                                   .eps = (float)a->eps,
                                   .momentum = (float)a->momentum,
                                   .batch_stats = c->train,
                                   .update_running = c->train,
                                   .again = c->recompute,
                                   .act = ew_cuda_act_of(&a->end),
                                   .x = c->in[X]->data,
                                   .residual = a->added ? c->in[ADD]->data : NULL,
                                   .y = c->out[0]->data,
                                   .scale = c->in[SCALE]->data,
                                   .bias = c->in[BIAS]->data,
                                   .mean = c->in[MEAN]->data,
                                   .var = c->in[VAR]->data,
                                   .kept = c->aux,
                                   .scratch = c->scratch};
    EW_CUDA_LAUNCH(c, norm, &p);
    return EW_OK;
}

/* aux: mean and 1 / std, then the sums of backward. */
static ew_err back_norm(const struct ew_call *c)
{
    const struct ew_batch_norm_attr *a = c->attr;
    const bool mask = a->added && a->end.act != EW_ACT_NONE;
    const struct ew_cuda_norm_back p = {.type = ew_cuda_storage(c->in[X]),
                                        .pixels = pixels_of(c),
                                        .channels = channels_of(c),
                                        .batch_stats = c->train,
                                        .act = ew_cuda_act_of(&a->end),
                                        .add_dx = ew_cuda_adds(c, X),
                                        .add_dscale = ew_cuda_adds(c, SCALE),
                                        .add_dbias = ew_cuda_adds(c, BIAS),
                                        .x = c->in[X]->data,
                                        .y = mask ? c->out[0]->data : NULL,
                                        .dy = c->dout[0]->data,
                                        .add_dresidual = a->added && ew_cuda_adds(c, ADD),
                                        .dresidual = a->added ? ew_cuda_data(c->din[ADD]) : NULL,
                                        .dx = ew_cuda_data(c->din[X]),
                                        .scale = c->in[SCALE]->data,
                                        .bias = c->in[BIAS]->data,
                                        .kept = c->aux,
                                        .dscale = ew_cuda_data(c->din[SCALE]),
                                        .dbias = ew_cuda_data(c->din[BIAS]),
                                        .sums = (float *)c->aux + 2 * channels_of(c),
                                        .scratch = c->scratch};
    EW_CUDA_LAUNCH(c, norm_back, &p);
    return EW_OK;
}

int ew_cuda_offer_norm(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const struct ew_batch_norm_attr *a = c->attr;
    const unsigned statistics = 1 << SCALE | 1 << BIAS | 1 << MEAN | 1 << VAR;
    if (ew_cuda_query_type(query, statistics, 0) < 0 || a->training_mode || pixels_of(c) == 0)
        return 0;
    const size_t scratch = ew_cuda_reduce_scratch(1, pixels_of(c), channels_of(c), 2);
    const bool back = query->phase == EW_PHASE_BACKWARD;
    ew_cuda_one(out, "batch norm", back ? back_norm : run_norm, scratch);
    out->in_place = back;
    return 1;
}

/* ---- Pools ---- */

ew_err ew_cuda_pool_window(const struct ew_call *c, struct ew_window *w)
{
    return c->op == &ew_op_global_average_pool ? ew_global_resolve(c, w)
           : c->op == &ew_op_adaptive_avg_pool ? ew_adaptive_resolve(c, w)
                                               : ew_pool_resolve(c, w);
}

bool ew_cuda_flatten(struct ew_window *w)
{
    const bool across = w->kernel[0] == 1 && w->stride[0] == 1 && !w->pad[0] && !w->pad_end[0] &&
                        w->in[0] == w->out[0];
    if (across || (w->adaptive && w->in[0] == w->out[0])) {
        w->batch *= w->in[0];
        w->in[0] = w->out[0] = 1;
        return true;
    }
    for (int i = 1; i <= 2; i++)
        if (w->adaptive || w->kernel[i] != 1 || w->stride[i] != 1 || w->pad[i] || w->pad_end[i] ||
            w->in[i] != w->out[i])
            return false;
    const int64_t row = w->in[1] * w->in[2];
    w->in[1] = w->in[0], w->out[1] = w->out[0];
    w->in[2] = w->out[2] = row;
    w->kernel[1] = w->kernel[0], w->stride[1] = w->stride[0], w->dilation[1] = w->dilation[0];
    w->pad[1] = w->pad[0], w->pad_end[1] = w->pad_end[0];
    w->in[0] = w->out[0] = w->kernel[0] = w->stride[0] = w->dilation[0] = 1;
    w->pad[0] = w->pad_end[0] = 0;
    return true;
}

static bool is_global(const struct ew_window *w)
{
    return ew_window_outs(w) == 1 &&
           (w->adaptive || ew_window_taps(w) == w->in[0] * w->in[1] * w->in[2]) && !w->pad[0] &&
           !w->pad[1] && !w->pad[2];
}

static struct ew_cuda_pool pool_of(const struct ew_call *c, const struct ew_window *w)
{
    const struct ew_pool_attr *a =
        c->op == &ew_op_max_pool || c->op == &ew_op_average_pool ? c->attr : NULL;
    return (struct ew_cuda_pool){.type = ew_cuda_storage(c->in[0]),
                                 .kind = c->op == &ew_op_max_pool ? EW_CUDA_POOL_MAX
                                                                  : EW_CUDA_POOL_MEAN,
                                 .count_pad = a && a->count_include_pad,
                                 .pad_end_d = (int)w->pad_end[0],
                                 .pad_end_h = (int)w->pad_end[1],
                                 .pad_end_w = (int)w->pad_end[2],
                                 .adaptive = w->adaptive,
                                 .g = {.n = (int)w->batch,
                                       .h = (int)w->in[1],
                                       .w = (int)w->in[2],
                                       .c = (int)w->channels,
                                       .oh = (int)w->out[1],
                                       .ow = (int)w->out[2],
                                       .k = (int)w->channels,
                                       .kh = (int)w->kernel[1],
                                       .kw = (int)w->kernel[2],
                                       .sh = (int)w->stride[1],
                                       .sw = (int)w->stride[2],
                                       .ph = (int)w->pad[1],
                                       .pw = (int)w->pad[2],
                                       .dh = (int)w->dilation[1],
                                       .dw = (int)w->dilation[2],
                                       .groups = 1,
                                       .d = (int)w->in[0],
                                       .od = (int)w->out[0],
                                       .kd = (int)w->kernel[0],
                                       .sd = (int)w->stride[0],
                                       .pd = (int)w->pad[0],
                                       .dd = (int)w->dilation[0]},
                                 .index = c->aux};
}

static ew_err run_pool(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_cuda_pool_window(c, &w));
    const bool flat = ew_cuda_flatten(&w);
    struct ew_cuda_pool p = pool_of(c, &w);
    p.x = c->in[0]->data;
    p.y = c->out[0]->data;
    if (flat)
        EW_CUDA_LAUNCH(c, pool, &p);
    else
        EW_CUDA_LAUNCH(c, pool_3d, &p);
    return EW_OK;
}

static ew_err back_pool(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_cuda_pool_window(c, &w));
    if (!c->din[0])
        return EW_OK;
    const bool flat = ew_cuda_flatten(&w);
    struct ew_cuda_pool p = pool_of(c, &w);
    p.dy = c->dout[0]->data;
    p.dx = c->din[0]->data;
    p.add = ew_cuda_adds(c, 0);
    if (flat)
        EW_CUDA_LAUNCH(c, pool_back, &p);
    else
        EW_CUDA_LAUNCH(c, pool_3d_back, &p);
    return EW_OK;
}

/* A single window over the whole image: the sum over pixels of [N, pixels, C]. */
static ew_err run_global(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_cuda_pool_window(c, &w));
    const int64_t pixels = w.in[0] * w.in[1] * w.in[2];
    const struct ew_cuda_reduce r = {.type = ew_cuda_storage(c->in[0]),
                                     .outer = w.batch,
                                     .mid = pixels,
                                     .inner = w.channels,
                                     .scale = 1 / (float)pixels,
                                     .a = c->in[0]->data,
                                     .out = c->out[0]->data,
                                     .scratch = c->scratch};
    return ew_cuda_sum_rows(c, &r);
}

static ew_err back_global(const struct ew_call *c)
{
    struct ew_window w;
    EW_TRY(ew_cuda_pool_window(c, &w));
    if (!c->din[0])
        return EW_OK;
    const int64_t pixels = w.in[0] * w.in[1] * w.in[2];
    const struct ew_cuda_chain p = {.type = ew_cuda_storage(c->in[0]),
                                    .n = 1,
                                    .add = ew_cuda_adds(c, 0),
                                    .dim = {1, w.batch, pixels, w.channels},
                                    .a = c->dout[0]->data,
                                    .a_stride = {0, w.channels, 0, 1},
                                    .link = {{.op = EW_CUDA_OP_AFFINE, .lo = 1 / (float)pixels}},
                                    .y = c->din[0]->data};
    EW_CUDA_LAUNCH(c, chain, &p);
    return EW_OK;
}

int ew_cuda_offer_pool(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->phase == EW_PHASE_BACKWARD, max = c->op == &ew_op_max_pool;
    struct ew_window w;
    if (max && !back && (c->in[0]->dtype == EW_U8 || c->in[0]->dtype == EW_S8))
        return ew_cuda_offer_qpool(query, out);
    if (ew_cuda_query_type(query, 0, 0) < 0 || ew_cuda_pool_window(c, &w) != EW_OK ||
        ew_call_out(c, 1) || ew_tensor_count(c->in[0]) >= INT32_MAX ||
        ew_tensor_count(c->in[0]) == 0)
        return 0;
    if (!max && is_global(&w) && w.batch < 65536) {
        const size_t scratch =
            ew_cuda_reduce_scratch(w.batch, w.in[0] * w.in[1] * w.in[2], w.channels, 1);
        return ew_cuda_one(out, "global mean", back ? back_global : run_global, back ? 0 : scratch);
    }
    if (max && !ew_max_pool_small(&w))
        return 0;
    return ew_cuda_one(out, "pool", back ? back_pool : run_pool, 0);
}
