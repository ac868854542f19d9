/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions: forward by the best of eight methods, and both gradients. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/step/conv_step.h"
#include "backend/cpu/step/fused_grads_step.h"
#include "backend/cpu/step/sparse_step.h"
#include "backend/cpu/step/tap_pairs_step.h"
#include "backend/cpu/step/winograd_5x5_step.h"
#include "op/conv.h"

static ew_err shape_of(const struct ew_call *c, struct ew_conv_shape *out)
{
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_resolve(c, &s));
    ew_conv_shape_of(&s, out);
    out->normed = c->norm != NULL;
    out->y_step = (int32_t)c->out_step;
    return EW_OK;
}

static enum ew_act act_of(const struct ew_call *c)
{
    return (enum ew_act)((const struct ew_conv_attr *)c->attr)->end.act;
}

/* What training does to the sums, beside adding a bias: relu at most. */
static bool trains(const struct ew_call *c)
{
    return (act_of(c) == EW_ACT_NONE || act_of(c) == EW_ACT_RELU) && c->n_in <= 3;
}

/* Statistics are taken of the sums, to which nothing more may be done. */
static bool bare(const struct ew_call *c)
{
    return act_of(c) == EW_ACT_NONE && c->n_in <= 3;
}

static ew_err prepare(const struct ew_call *c, enum ew_conv_method m)
{
    struct ew_conv_shape s;
    EW_TRY(shape_of(c, &s));
    ew_conv_forward_prepare(c, m, &s, &((const struct ew_conv_attr *)c->attr)->end);
    return EW_OK;
}

static ew_err prepare_gemm(const struct ew_call *c)
{
    return prepare(c, EW_CONV_GEMM);
}

static ew_err prepare_winograd(const struct ew_call *c)
{
    return prepare(c, EW_CONV_WINOGRAD);
}

static ew_err prepare_depthwise(const struct ew_call *c)
{
    return prepare(c, EW_CONV_DEPTHWISE);
}

static ew_err prepare_grouped(const struct ew_call *c)
{
    return prepare(c, EW_CONV_GROUPED);
}

static ew_err prepare_batch_lanes(const struct ew_call *c)
{
    return prepare(c, EW_CONV_BATCH_LANES);
}

static ew_err prepare_backward(const struct ew_call *c)
{
    struct ew_conv_shape s;
    EW_TRY(shape_of(c, &s));
    ew_conv_backward_prepare(c, &s, act_of(c) == EW_ACT_RELU);
    return EW_OK;
}

static ew_err prepare_fused_grads(const struct ew_call *c)
{
    struct ew_conv_shape s;
    EW_TRY(shape_of(c, &s));
    ew_fused_grads_prepare(c, &s, act_of(c) == EW_ACT_RELU);
    return EW_OK;
}

static ew_err prepare_tap_pairs(const struct ew_call *c)
{
    struct ew_conv_shape s;
    EW_TRY(shape_of(c, &s));
    ew_tap_pairs_prepare(c, &s, act_of(c) == EW_ACT_RELU);
    return EW_OK;
}

static ew_err prepare_winograd_5x5(const struct ew_call *c)
{
    struct ew_conv_shape s;
    EW_TRY(shape_of(c, &s));
    ew_winograd_5x5_prepare(c, &s, act_of(c) == EW_ACT_RELU);
    return EW_OK;
}

/* Kernels for certain shapes, whose outputs follow each other. */
static int offer_special(const struct ew_call *c, const struct ew_conv_shape *s,
                         struct ew_kernel *out)
{
    int n = 0;
    if (ew_conv_fits(ew_cpu(c->be)->isa, EW_CONV_DEPTHWISE, s)) {
        out[n] = ew_conv_forward_kernel(c, EW_CONV_DEPTHWISE, s);
        out[n++].prepare = prepare_depthwise;
    }
    if (s->normed && n == 0) {
        out[n] = ew_conv_forward_kernel(c, EW_CONV_GEMM, s);
        out[n++].prepare = prepare_gemm;
    }
    if (s->normed)
        return n;
    if (ew_conv_fits(ew_cpu(c->be)->isa, EW_CONV_GROUPED, s)) {
        out[n] = ew_conv_forward_kernel(c, EW_CONV_GROUPED, s);
        out[n++].prepare = prepare_grouped;
    }
    if (c->train && trains(c) && ew_cpu(c->be)->isa->winograd_5x5_pays(s)) {
        out[n] = ew_winograd_5x5_forward_kernel(c->be, s);
        out[n++].prepare = prepare_winograd_5x5;
    }
    if (ew_conv_fits(ew_cpu(c->be)->isa, EW_CONV_BATCH_LANES, s)) {
        out[n] = ew_conv_forward_kernel(c, EW_CONV_BATCH_LANES, s);
        out[n++].prepare = prepare_batch_lanes;
    }
    if (c->train && trains(c) && ew_cpu(c->be)->isa->tap_pairs_pays(s)) {
        out[n] = ew_tap_pairs_forward_kernel(c->be, s);
        out[n++].prepare = prepare_tap_pairs;
    }
    return n;
}

static int offer_forward(const struct ew_call *c, const struct ew_conv_shape *s,
                         struct ew_kernel *out)
{
    int n = s->y_step ? 0 : offer_special(c, s, out);
    if (s->normed)
        return n;
    if (ew_conv_fits(ew_cpu(c->be)->isa, EW_CONV_WINOGRAD, s) &&
        ew_cpu(c->be)->isa->winograd_pays(s, c->train)) {
        out[n] = ew_conv_forward_kernel(c, EW_CONV_WINOGRAD, s);
        out[n++].prepare = prepare_winograd;
    }
    out[n] = ew_conv_forward_kernel(c, EW_CONV_GEMM, s);
    out[n++].prepare = prepare_gemm;
    return n;
}

/* Kernels that make their input from a batch norm's. */
static bool norms(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return k->depthwise_norms(s) || (k->conv_norms(s) && !k->tap_pairs_pays(s));
}

static struct ew_kernel backward_kernel(const struct ew_call *c, const struct ew_conv_shape *s)
{
    const struct ew_kernels *k = ew_cpu(c->be)->isa;
    const bool alone = !c->behind && !c->norm;
    struct ew_kernel out;
    if (!(alone && k->tap_pairs_pays(s)) && ew_fused_grads_pays(c, s, act_of(c) == EW_ACT_RELU)) {
        out = ew_fused_grads_kernel(c->be, s);
        out.prepare = prepare_fused_grads;
    } else if (k->tap_pairs_pays(s)) {
        out = ew_tap_pairs_backward_kernel(c->be, s);
        out.prepare = prepare_tap_pairs;
    } else if (k->winograd_5x5_pays(s)) {
        out = ew_winograd_5x5_backward_kernel(c->be, s);
        out.prepare = prepare_winograd_5x5;
    } else {
        out = ew_conv_backward_kernel(c->be, s);
        out.prepare = prepare_backward;
    }
    return out;
}

/* The best kernel that does not look at the data. */
static struct ew_kernel plain(const struct ew_call *c, enum ew_phase phase,
                              const struct ew_conv_shape *s)
{
    struct ew_kernel offers[EW_OFFERS];
    if (phase == EW_PHASE_BACKWARD)
        return backward_kernel(c, s);
    offer_forward(c, s, offers);
    return offers[0];
}

static ew_err prepare_sparse(const struct ew_call *c, enum ew_phase phase)
{
    struct ew_conv_shape s;
    EW_TRY(shape_of(c, &s));
    const struct ew_kernel otherwise = plain(c, phase, &s);
    return ew_sparse_prepare(c, &s, act_of(c) == EW_ACT_RELU, &otherwise);
}

static ew_err prepare_sparse_forward(const struct ew_call *c)
{
    return prepare_sparse(c, EW_PHASE_FORWARD);
}

static ew_err prepare_sparse_backward(const struct ew_call *c)
{
    return prepare_sparse(c, EW_PHASE_BACKWARD);
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    const struct ew_call *c = query->c;
    const bool forward = query->phase == EW_PHASE_FORWARD;
    struct ew_conv_shape s;
    int n = 1;
    if (c->in[0]->dtype != EW_F32 || shape_of(c, &s) != EW_OK ||
        ew_tensor_count(c->in[0]) >= INT32_MAX || (s.normed && !norms(ew_cpu(c->be)->isa, &s)))
        return 0;
    if (!forward && !trains(c))
        return 0; /* the reference refuses it, and says so */
    if (forward)
        n = offer_forward(c, &s, out);
    else
        out[0] = backward_kernel(c, &s);
    if (trains(c) && ew_sparse_worth(query, &s)) {
        out[0] = ew_sparse_kernel(query, &s, out[0]);
        out[0].prepare = forward ? prepare_sparse_forward : prepare_sparse_backward;
    }
    for (int i = 0; i < n && !bare(c); i++)
        out[i].stats = 0;
    return n;
}

const struct ew_kernel_family ew_offer_conv = {.ops = EW_FAMILY_OPS("conv"), .offer = offer};
