/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's convolutions: forward, dgrad and wgrad. */
#include "backend/cpu/catalogue/conv_rules.h"
#include "backend/cpu/fuse/fuse.h"
#include "backend/cpu/step/conv_step.h"
#include "backend/cpu/step/fused_grads_step.h"
#include "backend/cpu/step/tap_pairs_step.h"
#include "backend/cpu/step/winograd_5x5_step.h"
#include "graph/ops.h"
#include "op/conv.h"

/* ---- From a call to its case ---- */

static ew_err shape_of(const struct ew_call *c, struct ew_conv_shape *out)
{
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_resolve(c, &s));
    ew_conv_shape_of(&s, out);
    out->input_norm = ew_has_role(c, EW_ROLE_INPUT_NORM);
    out->y_step = (int32_t)c->out_step;
    return EW_OK;
}

static enum ew_act act_of(const struct ew_call *c)
{
    return (enum ew_act)((const struct ew_conv_attr *)c->attr)->end.act;
}

/* Some kernel can apply a batch norm to its input. */
static bool norms(const struct ew_kernels *k, const struct ew_conv_shape *s)
{
    return k->depthwise_norms(s) || (k->conv_norms(s) && !k->tap_pairs_pays(s));
}

static bool resolve(const struct ew_kernel_query *query, struct ew_kernel_case *out)
{
    const struct ew_call *c = query->c;
    *out = (struct ew_kernel_case){.query = query, .c = c, .k = ew_cpu(query->be)->isa};
    if (c->in[0]->dtype != EW_F32 || shape_of(c, &out->shape) != EW_OK ||
        ew_tensor_count(c->in[0]) >= INT32_MAX ||
        (out->shape.input_norm && !norms(out->k, &out->shape)))
        return false;
    out->relu = act_of(c) == EW_ACT_RELU;
    /* Otherwise the reference fails with a message. */
    return query->phase == EW_PHASE_FORWARD || ew_conv_trains(c);
}

/* ---- Kernels with their prepare functions ---- */

static ew_err prepare_method(const struct ew_call *c, enum ew_conv_method m)
{
    struct ew_conv_shape s;
    EW_TRY(shape_of(c, &s));
    ew_conv_forward_prepare(c, m, &s, &((const struct ew_conv_attr *)c->attr)->end);
    return EW_OK;
}

/* out[0] may alias the residual: these kernels read it before they write there. */
static bool adds_in_place(const struct ew_call *c, enum ew_conv_method m)
{
    return c->n_in > 3 && !((const struct ew_conv_attr *)c->attr)->end.add_after &&
           (m == EW_CONV_GEMM || m == EW_CONV_WINOGRAD);
}

/* Statistics of the output are taken before the epilogue, so only without activation and
 * addition. */
static struct ew_kernel forward_by(const struct ew_kernel_case *c, enum ew_conv_method m,
                                   ew_err (*prepare)(const struct ew_call *))
{
    struct ew_kernel k = ew_conv_forward_kernel(c->c, m, &c->shape);
    k.prepare = prepare;
    k.in_place = adds_in_place(c->c, m);
    if (act_of(c->c) != EW_ACT_NONE || c->c->n_in > 3)
        k.roles &= ~(unsigned)EW_ROLE_OUTPUT_NORM_STATS;
    return k;
}

#define EW_FORWARD_BY(name, method)                                                                \
    static ew_err prepare_##name(const struct ew_call *c)                                          \
    {                                                                                              \
        return prepare_method(c, method);                                                          \
    }                                                                                              \
    static struct ew_kernel make_##name(const struct ew_kernel_case *c)                            \
    {                                                                                              \
        return forward_by(c, method, prepare_##name);                                              \
    }

EW_FORWARD_BY(gemm, EW_CONV_GEMM)
EW_FORWARD_BY(winograd, EW_CONV_WINOGRAD)
EW_FORWARD_BY(depthwise, EW_CONV_DEPTHWISE)
EW_FORWARD_BY(grouped, EW_CONV_GROUPED)
EW_FORWARD_BY(batch_lanes, EW_CONV_BATCH_LANES)
EW_FORWARD_BY(pixel_lanes, EW_CONV_PIXEL_LANES)
EW_FORWARD_BY(input_lanes, EW_CONV_INPUT_LANES)

static ew_err prepare_winograd_plain(const struct ew_call *c)
{
    struct ew_conv_shape s;
    EW_TRY(shape_of(c, &s));
    s.late_transform = true;
    ew_conv_forward_prepare(c, EW_CONV_WINOGRAD, &s, &((const struct ew_conv_attr *)c->attr)->end);
    return EW_OK;
}

static struct ew_kernel make_winograd_plain(const struct ew_kernel_case *c)
{
    struct ew_kernel_case plain = *c;
    plain.shape.late_transform = true;
    struct ew_kernel k = forward_by(&plain, EW_CONV_WINOGRAD, prepare_winograd_plain);
    k.name = "winograd, plain filters";
    return k;
}

/* Kernels with a separate prepare function for each direction. */
#define EW_PREPARE_BY(name, call)                                                                  \
    static ew_err prepare_##name(const struct ew_call *c)                                          \
    {                                                                                              \
        struct ew_conv_shape s;                                                                    \
        EW_TRY(shape_of(c, &s));                                                                   \
        call(c, &s, act_of(c) == EW_ACT_RELU);                                                     \
        return EW_OK;                                                                              \
    }

EW_PREPARE_BY(backward, ew_conv_backward_prepare)
EW_PREPARE_BY(fused_grads, ew_fused_grads_prepare)
EW_PREPARE_BY(tap_pairs, ew_tap_pairs_prepare)
EW_PREPARE_BY(winograd_5x5, ew_winograd_5x5_prepare)

static struct ew_kernel make_tap_pairs(const struct ew_kernel_case *c)
{
    const bool forward = c->query->phase == EW_PHASE_FORWARD;
    struct ew_kernel k = forward ? ew_tap_pairs_forward_kernel(c->c->be, &c->shape)
                                 : ew_tap_pairs_backward_kernel(c->c->be, &c->shape);
    k.prepare = prepare_tap_pairs;
    return k;
}

static struct ew_kernel make_winograd_5x5(const struct ew_kernel_case *c)
{
    const bool forward = c->query->phase == EW_PHASE_FORWARD;
    struct ew_kernel k = forward ? ew_winograd_5x5_forward_kernel(c->c->be, &c->shape)
                                 : ew_winograd_5x5_backward_kernel(c->c->be, &c->shape);
    k.prepare = prepare_winograd_5x5;
    return k;
}

static struct ew_kernel make_fused_grads(const struct ew_kernel_case *c)
{
    struct ew_kernel k = ew_fused_grads_kernel(c->c->be, &c->shape);
    k.prepare = prepare_fused_grads;
    return k;
}

static struct ew_kernel make_backward(const struct ew_kernel_case *c)
{
    struct ew_kernel k = ew_conv_backward_kernel(c->c->be, &c->shape);
    k.prepare = prepare_backward;
    return k;
}

static const char *wgrad_of(const struct ew_kernel_case *c)
{
    return ew_conv_wgrad_text(c->k, &c->shape);
}

/* ---- The lists ---- */

#define EPILOGUE "bias, activation, residual addition"

static const struct ew_kernel_entry forward[] = {
    {.name = "zero-skipping",
     .folder = "sparse",
     .fuses = "bias, ReLU",
     .test = "backend/test_kernel_tap_pairs.c",
     .rules = {EW_IF_TRAINING, EW_IF_RELU_AT_MOST, EW_IF_NO_FUSED_NORM, EW_IF_WIDE_PRODUCT},
     .wrap = ew_wrap_sparse},
    {.name = "depthwise",
     .folder = "depthwise",
     .fuses = EPILOGUE "; batch norm before it; statistics of the batch norm after it",
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_CONTIGUOUS, EW_IF_DEPTHWISE},
     .make = make_depthwise},
    {.name = "grouped",
     .folder = "grouped",
     .fuses = EPILOGUE,
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_CONTIGUOUS, EW_IF_NO_INPUT_NORM, EW_IF_GROUPED},
     .make = make_grouped},
    {.name = "winograd F(5x5,5x5)",
     .folder = "winograd",
     .fuses = "bias, ReLU; max pool 2x2 and transpose",
     .test = "backend/test_kernel_winograd_5x5.c",
     .rules = {EW_IF_CONTIGUOUS, EW_IF_NO_INPUT_NORM, EW_IF_TRAINING, EW_IF_RELU_AT_MOST,
               EW_IF_WINOGRAD_5X5},
     .make = make_winograd_5x5},
    {.name = "batch in lanes",
     .folder = "direct",
     .fuses = EPILOGUE,
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_CONTIGUOUS, EW_IF_NO_INPUT_NORM, EW_IF_BATCH_LANES},
     .cycles = ew_conv_gemm_cycles, /* as many MACs as GEMM */
     .make = make_batch_lanes},
    {.name = "pixels in lanes",
     .folder = "direct",
     .fuses = EPILOGUE,
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_CONTIGUOUS, EW_IF_NO_INPUT_NORM, EW_IF_PIXEL_LANES},
     .cycles = ew_conv_gemm_cycles, /* as many MACs as GEMM */
     .make = make_pixel_lanes},
    {.name = "inputs in lanes",
     .folder = "direct",
     .fuses = EPILOGUE,
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_CONTIGUOUS, EW_IF_NO_INPUT_NORM, EW_IF_INFERENCE, EW_IF_INPUT_LANES},
     .cycles = ew_conv_gemm_cycles, /* as many MACs as GEMM */
     .make = make_input_lanes},
    {.name = "tap pairs",
     .folder = "unpacked",
     .fuses = "bias, ReLU",
     .test = "backend/test_kernel_tap_pairs.c",
     .rules = {EW_IF_CONTIGUOUS, EW_IF_NO_INPUT_NORM, EW_IF_TRAINING, EW_IF_RELU_AT_MOST,
               EW_IF_TAP_PAIRS},
     .make = make_tap_pairs},
    {.name = "winograd",
     .folder = "winograd",
     .fuses = EPILOGUE,
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_NO_INPUT_NORM, EW_IF_WINOGRAD, EW_IF_WINOGRAD_WIDE, EW_IF_WINOGRAD_WINS,
               EW_IF_WORTH_THE_BYTES},
     .cycles = ew_conv_winograd_cycles,
     .detail = ew_conv_winograd_form,
     .make = make_winograd},
    {.name = "winograd, plain filters",
     .folder = "winograd",
     .fuses = EPILOGUE,
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_NO_INPUT_NORM, EW_IF_WINOGRAD, EW_IF_WINOGRAD_WIDE, EW_IF_WINOGRAD_WINS,
               EW_IF_PLAIN_FILTERS},
     .cycles = ew_conv_winograd_plain_cycles,
     .make = make_winograd_plain},
    {.name = "implicit gemm",
     .folder = "gemm",
     .fuses = EPILOGUE "; batch norm before a 1x1; statistics of the batch norm after it",
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_GEMM_INPUT},
     .cycles = ew_conv_gemm_cycles,
     .make = make_gemm},
};

#define GRADS "ReLU's gradient; bias gradient; optimiser step"

static const struct ew_kernel_entry backward[] = {
    {.name = "zero-skipping gradients",
     .folder = "sparse",
     .fuses = GRADS,
     .test = "backend/test_kernel_tap_pairs.c",
     .rules = {EW_IF_TRAINING, EW_IF_RELU_AT_MOST, EW_IF_NO_FUSED_NORM, EW_IF_SPARSE_GRADS},
     .wrap = ew_wrap_sparse},
    {.name = "fused dgrad+wgrad",
     .folder = "gemm",
     .fuses = GRADS "; gradients of the batch norms before and after it",
     .test = "backend/test_kernel_fused_grads.c",
     .rules = {EW_IF_NOT_TAP_PAIRS, EW_IF_FUSED_1X1},
     .make = make_fused_grads},
    {.name = "depthwise fused dgrad+wgrad",
     .folder = "depthwise",
     .fuses = "gradients of the batch norms before and after it",
     .test = "backend/test_kernel_fused_norm.c",
     .rules = {EW_IF_NOT_TAP_PAIRS, EW_IF_FUSED_DEPTHWISE},
     .make = make_fused_grads},
    {.name = "tap pairs gradients",
     .folder = "unpacked",
     .fuses = GRADS,
     .test = "backend/test_kernel_tap_pairs.c",
     .rules = {EW_IF_TAP_PAIRS},
     .make = make_tap_pairs},
    {.name = "winograd F(5x5,5x5) gradients",
     .folder = "winograd",
     .fuses = GRADS "; max pool 2x2 and transpose",
     .test = "backend/test_kernel_winograd_5x5.c",
     .rules = {EW_IF_WINOGRAD_5X5},
     .make = make_winograd_5x5},
    {.name = "depthwise gradients",
     .folder = "depthwise",
     .fuses = "ReLU's gradient; bias gradient",
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_DEPTHWISE},
     .make = make_backward},
    {.name = "grouped gradients",
     .folder = "grouped",
     .fuses = "ReLU's gradient; bias gradient",
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_GROUPED_DGRAD},
     .detail = wgrad_of,
     .make = make_backward},
    {.name = "batch in lanes gradients",
     .folder = "direct",
     .fuses = GRADS,
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_LANES_DGRAD},
     .detail = wgrad_of,
     .make = make_backward},
    {.name = "winograd gradients",
     .folder = "winograd",
     .fuses = GRADS,
     .test = "backend/test_kernel_conv.c",
     .rules = {EW_IF_WINOGRAD_DGRAD},
     .cycles = ew_conv_winograd_grads_cycles,
     .detail = wgrad_of,
     .make = make_backward},
    {.name = "implicit gemm gradients",
     .folder = "gemm",
     .fuses = GRADS,
     .test = "backend/test_kernel_conv.c",
     .cycles = ew_conv_gemm_grads_cycles,
     .detail = wgrad_of,
     .make = make_backward},
};

#define NEEDS "float32, fewer than 2^31 elements"

const struct ew_kernel_list ew_conv_kernels[2] = {
    {.ops = EW_FAMILY_OPS(&ew_op_conv),
     .phase = EW_PHASE_FORWARD,
     .needs = NEEDS,
     .resolve = resolve,
     .entries = forward,
     .n = (int)EW_COUNT(forward)},
    {.ops = EW_FAMILY_OPS(&ew_op_conv),
     .phase = EW_PHASE_BACKWARD,
     .needs = NEEDS ", no activation but ReLU",
     .resolve = resolve,
     .entries = backward,
     .n = (int)EW_COUNT(backward),
     .most = 1},
};
