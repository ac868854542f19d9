/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's dense layers: 1x1 convolutions with rows as batch. */
#include "backend/cpu/catalogue/conv_rules.h"
#include "backend/cpu/step/conv_step.h"
#include "backend/cpu/step/tap_pairs_step.h"
#include "graph/ops.h"
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

/* x [m, k], weights [n, k], bias [n]: a Gemm node as ONNX exporters write a linear layer. */
static bool is_linear(const struct ew_call *c)
{
    const struct ew_gemm_attr *a = c->attr;
    const struct ew_tensor *bias = c->n_in > 2 ? c->in[2] : NULL;
    const int64_t n = c->in[1]->shape.dim[0];
    return c->in[0]->dtype == EW_F32 && !a->trans_a && a->trans_b && !(a->alpha < 1) &&
           !(a->alpha > 1) && !(a->beta < 1) && !(a->beta > 1) &&
           (!bias || (bias->shape.rank == 1 && bias->shape.dim[0] == n)) &&
           ew_tensor_count(c->in[0]) < INT32_MAX && ew_tensor_count(c->in[0]) > 0;
}

static bool resolve(const struct ew_kernel_query *query, struct ew_kernel_case *out)
{
    *out = (struct ew_kernel_case){.query = query, .c = query->c, .k = ew_cpu(query->be)->isa};
    if (!is_linear(query->c))
        return false;
    shape_of(query->c, &out->shape);
    return true;
}

static ew_err prepare_gemm(const struct ew_call *c)
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

static struct ew_kernel make_dense(const struct ew_kernel_case *c)
{
    const bool forward = c->query->phase == EW_PHASE_FORWARD;
    struct ew_kernel k = forward ? ew_tap_pairs_forward_kernel(c->c->be, &c->shape)
                                 : ew_tap_pairs_backward_kernel(c->c->be, &c->shape);
    k.name = forward ? "dense" : "dense gradients";
    k.prepare = prepare_tap_pairs;
    return k;
}

static struct ew_kernel make_gemm(const struct ew_kernel_case *c)
{
    const bool forward = c->query->phase == EW_PHASE_FORWARD;
    struct ew_kernel k = forward ? ew_conv_forward_kernel(c->c, EW_CONV_GEMM, &c->shape)
                                 : ew_conv_backward_kernel(c->c->be, &c->shape);
    k.prepare = forward ? prepare_gemm : prepare_backward;
    return k;
}

/* ---- The lists ---- */

static const struct ew_kernel_entry forward[] = {
    {.name = "zero-skipping",
     .folder = "sparse",
     .fuses = "bias",
     .test = "backend/test_kernel_tap_pairs.c",
     .rules = {EW_IF_TRAINING, EW_IF_NO_FUSED_NORM, EW_IF_WIDE_PRODUCT},
     .wrap = ew_wrap_sparse},
    {.name = "dense",
     .folder = "unpacked",
     .fuses = "bias",
     .test = "backend/test_kernel_tap_pairs.c",
     .rules = {EW_IF_TRAINING, EW_IF_DENSE_PAIRS},
     .make = make_dense},
    {.name = "implicit gemm",
     .folder = "gemm",
     .fuses = "bias",
     .test = "backend/test_kernel_conv.c",
     .cycles = ew_conv_gemm_cycles,
     .make = make_gemm},
};

static const struct ew_kernel_entry backward[] = {
    {.name = "zero-skipping gradients",
     .folder = "sparse",
     .fuses = "bias gradient; optimiser step",
     .test = "backend/test_kernel_tap_pairs.c",
     .rules = {EW_IF_TRAINING, EW_IF_NO_FUSED_NORM, EW_IF_WIDE_PRODUCT},
     .wrap = ew_wrap_sparse},
    {.name = "dense gradients",
     .folder = "unpacked",
     .fuses = "bias gradient; optimiser step",
     .test = "backend/test_kernel_tap_pairs.c",
     .rules = {EW_IF_TRAINING, EW_IF_DENSE_PAIRS},
     .make = make_dense},
    {.name = "implicit gemm gradients",
     .folder = "gemm",
     .fuses = "bias gradient; optimiser step",
     .test = "backend/test_kernel_conv.c",
     .cycles = ew_conv_gemm_grads_cycles,
     .make = make_gemm},
};

#define NEEDS "float32, x [m, k], weights [n, k], bias [n], alpha = beta = 1"

const struct ew_kernel_list ew_dense_kernels[2] = {
    {.ops = EW_FAMILY_OPS(&ew_op_gemm),
     .phase = EW_PHASE_FORWARD,
     .needs = NEEDS,
     .resolve = resolve,
     .entries = forward,
     .n = (int)EW_COUNT(forward),
     .most = 1},
    {.ops = EW_FAMILY_OPS(&ew_op_gemm),
     .phase = EW_PHASE_BACKWARD,
     .needs = NEEDS,
     .resolve = resolve,
     .entries = backward,
     .n = (int)EW_COUNT(backward),
     .most = 1},
};
