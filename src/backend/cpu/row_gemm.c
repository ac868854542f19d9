/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers: a convolution of one tap with the rows as its batch. */
#include "backend/cpu/conv_step.h"
#include "backend/cpu/spot_step.h"
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

static ew_err prepare_spots(const struct ew_call *c)
{
    struct ew_conv_shape s;
    shape_of(c, &s);
    ew_spot_prepare(c, &s, false);
    return EW_OK;
}

static int offer(const struct ew_ask *ask, struct ew_kernel *out)
{
    const struct ew_call *c = ask->c;
    struct ew_conv_shape s;
    if (!fits(c))
        return 0;
    shape_of(c, &s);
    if (c->train && ask->be->isa->spots_pays(&s)) {
        out[0] = ask->phase == EW_PHASE_FORWARD ? ew_spot_forward_kernel(ask->be, &s)
                                                : ew_spot_backward_kernel(ask->be, &s);
        out[0].name = ask->phase == EW_PHASE_FORWARD ? "dense" : "dense gradients";
        out[0].prepare = prepare_spots;
    } else if (ask->phase == EW_PHASE_FORWARD) {
        out[0] = ew_conv_forward_kernel(c, EW_CONV_GEMM, &s);
        out[0].prepare = prepare;
    } else {
        out[0] = ew_conv_backward_kernel(ask->be, &s);
        out[0].prepare = prepare_backward;
    }
    return 1;
}

const struct ew_row ew_row_gemm = {.ops = EW_ROW_OPS("gemm"), .offer = offer};
