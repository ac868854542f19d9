/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers: a convolution of one tap with the rows as its batch. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/step/conv_step.h"
#include "backend/cpu/step/sparse_step.h"
#include "backend/cpu/step/tap_pairs_step.h"
#include "op/math_attr.h"

static void shape_of(const struct ew_call *c, struct ew_conv_shape *out)
{
    const struct ew_conv_axis one = {.in = 1, .out = 1, .taps = 1, .stride = 1, .dilation = 1};
    *out = (struct ew_conv_shape){.batch = (int32_t)c->in[0]->shape.dim[0],
                                  .groups = 1,
                                  .cin = (int32_t)c->in[0]->shape.dim[1],
                                  .cout = (int32_t)c->in[1]->shape.dim[0],
                                  .axis = {one, one, one}};
}

/* x [m, k], weights [n, k], bias [n]: what exporters write for a linear layer. */
static bool fits(const struct ew_call *c)
{
    const struct ew_gemm_attr *a = c->attr;
    const struct ew_tensor *bias = c->n_in > 2 ? c->in[2] : NULL;
    const int64_t n = c->in[1]->shape.dim[0];
    return c->in[0]->dtype == EW_F32 && !a->trans_a && a->trans_b && !(a->alpha < 1) &&
           !(a->alpha > 1) && !(a->beta < 1) && !(a->beta > 1) &&
           (!bias || (bias->shape.rank == 1 && bias->shape.dim[0] == n)) &&
           ew_tensor_count(c->in[0]) < INT32_MAX && ew_tensor_count(c->in[0]) > 0;
}

static ew_err prepare(const struct ew_call *c)
{
    struct ew_conv_shape s;
    shape_of(c, &s);
    ew_conv_forward_prepare(c, EW_CONV_GEMM, &s, NULL);
    return EW_OK;
}

static ew_err prepare_backward(const struct ew_call *c)
{
    struct ew_conv_shape s;
    shape_of(c, &s);
    ew_conv_backward_prepare(c, &s, false);
    return EW_OK;
}

static ew_err prepare_tap_pairs(const struct ew_call *c)
{
    struct ew_conv_shape s;
    shape_of(c, &s);
    ew_tap_pairs_prepare(c, &s, false);
    return EW_OK;
}

/* The kernel that does not look at the data. */
static struct ew_kernel plain(const struct ew_call *c, enum ew_phase phase,
                              const struct ew_conv_shape *s)
{
    const bool forward = phase == EW_PHASE_FORWARD;
    struct ew_kernel k;
    if (c->train && ew_cpu(c->be)->isa->tap_pairs_pays(s)) {
        k = forward ? ew_tap_pairs_forward_kernel(c->be, s)
                    : ew_tap_pairs_backward_kernel(c->be, s);
        k.name = forward ? "dense" : "dense gradients";
        k.prepare = prepare_tap_pairs;
    } else if (forward) {
        k = ew_conv_forward_kernel(c, EW_CONV_GEMM, s);
        k.prepare = prepare;
    } else {
        k = ew_conv_backward_kernel(c->be, s);
        k.prepare = prepare_backward;
    }
    return k;
}

static ew_err prepare_sparse(const struct ew_call *c, enum ew_phase phase)
{
    struct ew_conv_shape s;
    shape_of(c, &s);
    const struct ew_kernel otherwise = plain(c, phase, &s);
    return ew_sparse_prepare(c, &s, false, &otherwise);
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
    struct ew_conv_shape s;
    if (!fits(c))
        return 0;
    shape_of(c, &s);
    out[0] = plain(c, query->phase, &s);
    if (ew_sparse_worth(query, &s)) {
        out[0] = ew_sparse_kernel(query, &s, out[0]);
        out[0].prepare =
            query->phase == EW_PHASE_FORWARD ? prepare_sparse_forward : prepare_sparse_backward;
    }
    return 1;
}

const struct ew_kernel_family ew_offer_dense = {.ops = EW_FAMILY_OPS("gemm"), .offer = offer};
