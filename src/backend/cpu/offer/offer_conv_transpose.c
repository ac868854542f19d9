/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions: the dgrad of a convolution (step/adjoint_step.c). */
#include "backend/cpu/step/adjoint_step.h"
#include "graph/ops.h"

static bool shape_of(const struct ew_call *c, struct ew_conv_shape *out)
{
    struct ew_conv_sizes s;
    if (c->in[0]->dtype != EW_F32 || ew_tensor_count(c->in[0]) == 0 ||
        ew_tensor_count(c->in[0]) >= INT32_MAX || ew_tensor_count(c->in[1]) >= INT32_MAX ||
        ew_tensor_count(c->out[0]) >= INT32_MAX || ew_conv_transpose_resolve(c, &s) != EW_OK)
        return false;
    ew_conv_shape_of(&s, out);
    return true;
}

static ew_err prepare_forward(const struct ew_call *c)
{
    struct ew_conv_shape s;
    EW_CHECK(shape_of(c, &s), EW_ERR_INTERNAL, "%s: the convolution has changed", c->name);
    ew_adjoint_forward_prepare(c, &s);
    return EW_OK;
}

static ew_err prepare_backward(const struct ew_call *c)
{
    struct ew_conv_shape s;
    EW_CHECK(shape_of(c, &s), EW_ERR_INTERNAL, "%s: the convolution has changed", c->name);
    ew_adjoint_backward_prepare(c, &s);
    return EW_OK;
}

static int offer(const struct ew_kernel_query *query, struct ew_kernel *out)
{
    struct ew_conv_shape s;
    if (!shape_of(query->c, &s))
        return 0;
    if (query->phase == EW_PHASE_FORWARD) {
        struct ew_call c = *query->c;
        c.be = query->be;
        out[0] = ew_adjoint_forward_kernel(&c, &s, "transposed implicit gemm");
        out[0].prepare = prepare_forward;
    } else {
        out[0] = ew_adjoint_backward_kernel(query->be, &s);
        out[0].prepare = prepare_backward;
    }
    return 1;
}

const struct ew_kernel_family ew_offer_conv_transpose = {
    .ops = EW_FAMILY_OPS(&ew_op_conv_transpose), .offer = offer};
