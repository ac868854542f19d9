/* SPDX-License-Identifier: Apache-2.0 */
/* Quantisation-aware training on CUDA devices: fake_quant of activations; weights and biases
 * rounded before a step and restored after it.  Bit-identical to all other backends (op/quant.h,
 * op/quant_weights.h). */
#include "backend/cuda/cuda_backend.h"
#include "op/quant_weights.h"

/* ---- Activations ---- */

enum { X, SCALE, ZERO };

static struct ew_cuda_fake_quant launch_of(const struct ew_call *c)
{
    return (struct ew_cuda_fake_quant){.type = ew_cuda_storage(c->in[X]),
                                       .n = ew_tensor_count(c->in[X]),
                                       .q = {.scale = c->in[SCALE]->data,
                                             .zero = c->in[ZERO]->data,
                                             .is_signed = c->in[ZERO]->dtype == EW_S8},
                                       .x = c->in[X]->data};
}

static ew_err run_forward(const struct ew_call *c)
{
    struct ew_cuda_fake_quant p = launch_of(c);
    p.y = c->out[0]->data;
    EW_CUDA_LAUNCH(c, fake_quant, &p);
    return EW_OK;
}

static ew_err run_backward(const struct ew_call *c)
{
    if (!c->din[X])
        return EW_OK;
    struct ew_cuda_fake_quant p = launch_of(c);
    p.back = 1;
    p.add = ew_cuda_adds(c, X);
    p.dy = c->dout[0]->data;
    p.y = c->din[X]->data;
    EW_CUDA_LAUNCH(c, fake_quant, &p);
    return EW_OK;
}

int ew_cuda_offer_fake_quant(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool back = query->phase == EW_PHASE_BACKWARD;
    if (ew_cuda_query_type(query, 1 << SCALE, 1 << ZERO) < 0 || ew_tensor_count(c->in[X]) == 0 ||
        (c->din && c->din[SCALE]))
        return 0;
    const int n = ew_cuda_one(out, "fake quantize", back ? run_backward : run_forward, 0);
    out->in_place = back;
    return n;
}

/* ---- Weights ---- */

ew_err ew_cuda_run_round(const struct ew_call *c)
{
    const struct ew_weight_rounding *r = c->attr;
    const struct ew_tensor *x = c->in[EW_ROUND_X], *other = c->in[EW_ROUND_OTHER];
    const struct ew_tensor *w = r->is_bias ? other : x;
    const struct ew_weight_channels g = ew_weight_channels(&w->shape, r->axis);
    const struct ew_cuda *be = ew_cuda(c->be);
    const struct ew_cuda_round p = {.is_bias = r->is_bias,
                                    .outer = g.outer,
                                    .inner = g.inner,
                                    .channels = (int)g.count,
                                    .w = w->data,
                                    .bias = ew_cuda_data(r->is_bias ? x : other),
                                    .x_scale = r->x_scale,
                                    .pow2 = r->pow2,
                                    .position = r->position,
                                    .x = x->data,
                                    .kept = c->in[EW_ROUND_KEPT]->data,
                                    .rounded = c->in[EW_ROUND_ROUNDED]->data,
                                    .copy = ew_cuda_cast_of(be, x->data),
                                    .copy_type = be->type};
    EW_CUDA_LAUNCH(c, round_weights, &p);
    return EW_OK;
}

ew_err ew_cuda_run_restore(const struct ew_call *c)
{
    const struct ew_cuda *be = ew_cuda(c->be);
    return ew_cuda_check(
        be->cu,
        be->cu->restore_weights(be->q, c->in[EW_ROUND_X]->data, c->in[EW_ROUND_KEPT]->data,
                                c->in[EW_ROUND_ROUNDED]->data, ew_tensor_count(c->in[EW_ROUND_X])),
        "restore_weights");
}
