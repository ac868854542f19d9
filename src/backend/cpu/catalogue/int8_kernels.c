/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's 8-bit convolutions. */
#include "backend/cpu/catalogue/catalogue.h"
#include "backend/cpu/step/conv_pass.h"
#include "graph/ops.h"

/* ---- From a call to its case ---- */

static ew_err layer_of(const struct ew_call *c, struct ew_qlayer *out)
{
    struct ew_int_conv v;
    EW_TRY(ew_qconv_resolve(c, &v));
    *out = (struct ew_qlayer){.y_scale = EW_QCONV_Y_SCALE,
                              .y_zero = EW_QCONV_Y_ZERO,
                              .bias = EW_QCONV_BIAS,
                              .clamp = ((const struct ew_qconv_attr *)c->attr)->clamp};
    ew_conv_shape_of(&v.s, &out->shape);
    return EW_OK;
}

static bool resolve(const struct ew_kernel_query *query, struct ew_kernel_case *out)
{
    *out = (struct ew_kernel_case){.query = query, .c = query->c, .k = ew_cpu(query->be)->isa};
    if (query->phase != EW_PHASE_FORWARD || layer_of(query->c, &out->layer) != EW_OK ||
        !ew_qlayer_fits(query->c, &out->layer))
        return false;
    out->shape = out->layer.shape;
    return true;
}

/* ---- Kernels with their prepare and pack functions ---- */

static ew_err prepare_method(const struct ew_call *c, enum ew_qlayer_method m)
{
    struct ew_qlayer l;
    EW_TRY(layer_of(c, &l));
    return ew_qlayer_prepare(c, &l, m);
}

static ew_err pack(const struct ew_call *c)
{
    struct ew_qlayer l;
    EW_TRY(layer_of(c, &l));
    return ew_qlayer_pack(c, &l);
}

static struct ew_kernel layer_by(const struct ew_kernel_case *c, enum ew_qlayer_method m,
                                 ew_err (*prepare)(const struct ew_call *))
{
    struct ew_kernel k = ew_qlayer_kernel(c->c, &c->layer, m);
    k.prepare = prepare;
    k.pack = pack;
    return k;
}

#define EW_LAYER_BY(name, method)                                                                  \
    static ew_err prepare_##name(const struct ew_call *c)                                          \
    {                                                                                              \
        return prepare_method(c, method);                                                          \
    }                                                                                              \
    static struct ew_kernel make_##name(const struct ew_kernel_case *c)                            \
    {                                                                                              \
        return layer_by(c, method, prepare_##name);                                                \
    }

EW_LAYER_BY(gemm, EW_QLAYER_GEMM)
EW_LAYER_BY(depthwise, EW_QLAYER_DEPTHWISE)
EW_LAYER_BY(columns, EW_QLAYER_DEPTHWISE_COLUMN)
EW_LAYER_BY(grouped, EW_QLAYER_GROUPED)
EW_LAYER_BY(winograd, EW_QLAYER_WINOGRAD)

/* ---- Conditions and estimates ---- */

static bool if_uint8(const struct ew_kernel_case *c)
{
    return c->c->in[EW_QCONV_X]->dtype == EW_U8;
}

static bool if_plain_end(const struct ew_kernel_case *c)
{
    return ew_qlayer_end_is_plain(c->c, &c->layer);
}

static bool if_columns(const struct ew_kernel_case *c)
{
    return c->k->int8_depthwise_column_fits(&c->shape);
}

static bool if_grouped(const struct ew_kernel_case *c)
{
    return c->k->int8_grouped_fits(&c->shape);
}

static bool if_winograd(const struct ew_kernel_case *c)
{
    return c->k->int8_winograd_fits(&c->shape);
}

static bool if_winograd_wins(const struct ew_kernel_case *c)
{
    return c->k->int8_winograd_pays(&c->shape);
}

static bool if_winograd_loses(const struct ew_kernel_case *c)
{
    return !if_winograd_wins(c);
}

static bool if_depthwise(const struct ew_kernel_case *c)
{
    return c->k->int8_depthwise_fits(&c->shape);
}

static bool if_not_depthwise(const struct ew_kernel_case *c)
{
    return !if_depthwise(c);
}

static double winograd_cycles(const struct ew_kernel_case *c)
{
    return c->k->int8_winograd_cycles(&c->shape);
}

/* There is an estimate only where Winograd is an alternative. */
static double gemm_cycles(const struct ew_kernel_case *c)
{
    return if_winograd(c) ? c->k->int8_gemm_cycles(&c->shape) : 0;
}

/* ---- The list ---- */

#define EPILOGUE "bias, clamp, table, requantisation"
#define WINOGRAD                                                                                   \
    {                                                                                              \
        "3x3 with stride 1, 2-D, no groups or dilation, channels within what 32-bit sums hold",    \
            if_winograd                                                                            \
    }

static const struct ew_kernel_entry entries[] = {
    {.name = "int8 depthwise columns",
     .folder = "int8",
     .fuses = EPILOGUE,
     .test = "backend/test_kernel_int8_conv.c",
     .rules = {{"uint8 input", if_uint8},
               {"depthwise 3x3 or 5x5 with stride 1 or 2, on VNNI (with AVX-VNNI from 32 channels "
                "on), or on AVX2 from 16 channels on",
                if_columns},
               {"bytes out, nothing added, ratios below 1", if_plain_end}},
     .make = make_columns},
    {.name = "int8 grouped",
     .folder = "int8",
     .fuses = EPILOGUE ", residual addition",
     .test = "backend/test_kernel_int8_conv.c",
     .rules = {{"uint8 input", if_uint8},
               {"3x3 in groups of 4, 8 or 16 channels, stride 1 or 2, on VNNI or AVX2",
                if_grouped}},
     .make = make_grouped},
    {.name = "int8 winograd",
     .folder = "int8",
     .fuses = EPILOGUE ", residual addition",
     .test = "backend/test_kernel_int8_winograd.c",
     .rules = {WINOGRAD,
               {"fewer estimated cycles than int8 implicit gemm", if_winograd_wins, true}},
     .cycles = winograd_cycles,
     .make = make_winograd},
    {.name = "int8 depthwise",
     .folder = "int8",
     .fuses = EPILOGUE ", residual addition",
     .test = "backend/test_kernel_int8_conv.c",
     .rules = {{"depthwise", if_depthwise}},
     .make = make_depthwise},
    {.name = "int8 implicit gemm",
     .folder = "int8",
     .fuses = EPILOGUE ", residual addition",
     .test = "backend/test_kernel_int8_conv.c",
     .rules = {{"not depthwise", if_not_depthwise}},
     .cycles = gemm_cycles,
     .make = make_gemm},
    {.name = "int8 winograd",
     .folder = "int8",
     .fuses = EPILOGUE ", residual addition",
     .test = "backend/test_kernel_int8_winograd.c",
     .rules = {WINOGRAD, {"for --tune, where the estimate prefers the other", if_winograd_loses}},
     .cycles = winograd_cycles,
     .make = make_winograd},
};

const struct ew_kernel_list ew_int8_conv_kernels = {
    .ops = EW_FAMILY_OPS(&ew_op_qlinear_conv),
    .phase = EW_PHASE_FORWARD,
    .needs = "constant weights and scales, symmetric filters",
    .resolve = resolve,
    .entries = entries,
    .n = (int)EW_COUNT(entries)};
