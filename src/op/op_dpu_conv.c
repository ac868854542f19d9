/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and dense layer on the DPU; made by compress/lower_dpu.c. */
#include "op/dpu.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_int_conv_attr, win), EW_GROUPS_FIELD(struct ew_int_conv_attr),
    EW_QUANT_CLAMP_FIELDS(struct ew_dpu_conv_attr, clamp),
    {.name = "shift", .type = EW_FIELD_INT, .offset = offsetof(struct ew_dpu_conv_attr, shift),
     .min = 0, .max = 16, .help = "of sums to the output, right"},
    {.name = "bias_shift", .type = EW_FIELD_INT,
     .offset = offsetof(struct ew_dpu_conv_attr, bias_shift), .min = 0, .max = 23,
     .help = "of biases to the sums, left"},
    {.name = "leaky", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_dpu_conv_attr, leaky),
     .help = "negative sums times 26 / 256"},
    EW_FIELD_END};
/* clang-format on */

static ew_err resolve(const struct ew_call *c, struct ew_int_conv *out)
{
    *out = (struct ew_int_conv){.x = EW_DPU_CONV_X,
                                .x_zero = EW_DPU_CONV_INPUTS,
                                .w = EW_DPU_CONV_W,
                                .w_zero = EW_DPU_CONV_INPUTS};
    return ew_int_conv_resolve(c, out);
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_tensor *bias = ew_call_in(c, EW_DPU_CONV_BIAS);
    struct ew_int_conv v;
    for (int i = 0; i < c->n_in; i++)
        EW_TRY(ew_types_check(c, i, 1 << EW_S8));
    EW_TRY(resolve(c, &v));
    EW_CHECK(!bias || ew_tensor_count(bias) == v.s.filters, EW_ERR_SHAPE,
             "the bias does not have one entry for each of %lld filters", (long long)v.s.filters);
    ew_int_conv_infer(c, &v);
    c->out[0]->dtype = EW_S8;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_int_conv v;
    if (resolve(c, &v) == EW_OK)
        ew_conv_cost(&v.s, c, out);
}

static size_t scratch(const struct ew_call *c)
{
    return ew_int_conv_scratch(c, EW_DPU_CONV_X, EW_DPU_CONV_W);
}

static int8_t finish(const struct ew_dpu_conv_attr *a, int64_t sum)
{
    const bool less = a->leaky && sum < 0;
    return ew_dpu_store(less ? sum * EW_DPU_LEAKY : sum,
                        (int)a->shift + (less ? EW_DPU_LEAKY_SHIFT : 0), &a->clamp);
}

static ew_err forward(const struct ew_call *c)
{
    const struct ew_dpu_conv_attr *a = c->attr;
    const struct ew_tensor *bias = ew_call_in(c, EW_DPU_CONV_BIAS);
    struct ew_int_conv v;
    EW_TRY(resolve(c, &v));
    ew_int_conv_begin(c, &v);
    int8_t *y = c->out[0]->data;
    for (int64_t n = 0; n < v.s.w.batch; n++) {
        int64_t o[EW_WINDOW_DIMS] = {0};
        do {
            for (int64_t f = 0; f < v.s.filters; f++) {
                const int64_t b = bias ? ew_tensor_get_int(bias, f) : 0;
                *y++ = finish(a, ew_int_conv_sum(c, &v, n, o, f) + b * (1 << a->bias_shift));
            }
        } while (ew_window_next(&v.s.w, o));
    }
    return EW_OK;
}

/* clang-format off */
#define BYTES(shape) {shape, EW_S8, EW_FILL_BYTES}
#define KNOWN(shape) {shape, EW_S8, EW_FILL_BYTES, .constant = true}

static const struct ew_op_case cases[] = {
    {.name = "3x3, relu", .attrs = "pad=1x1x1x1 shift=11 bias_shift=9 lo=0",
     .in = {BYTES("1x6x5x20"), KNOWN("33x3x3x20"), KNOWN("33")}, .n_in = 3, .out_shape = "1x6x5x33"},
    {.name = "first layer, stride 2", .attrs = "pad=3x3x3x3 stride=2x2 shift=12 bias_shift=10",
     .in = {BYTES("2x13x11x3"), KNOWN("18x7x7x3"), KNOWN("18")}, .n_in = 3, .out_shape = "2x7x6x18"},
    {.name = "pointwise, relu6", .attrs = "shift=10 lo=0 hi=96",
     .in = {BYTES("1x5x6x64"), KNOWN("70x1x1x64")}, .n_in = 2, .out_shape = "1x5x6x70"},
    {.name = "depthwise", .attrs = "pad=1x1x1x1 groups=70 shift=9 bias_shift=3",
     .in = {BYTES("1x6x9x70"), KNOWN("70x3x3x1"), KNOWN("70")}, .n_in = 3, .out_shape = "1x6x9x70"},
    {.name = "depthwise 5x5, stride 2", .attrs = "pad=2x2x2x2 stride=2x2 groups=33 shift=10 lo=0",
     .in = {BYTES("1x11x9x33"), KNOWN("33x5x5x1")}, .n_in = 2, .out_shape = "1x6x5x33"},
    {.name = "no shift", .attrs = "bias_shift=0",
     .in = {BYTES("1x3x3x1"), KNOWN("4x1x1x1"), KNOWN("4")}, .n_in = 3, .out_shape = "1x3x3x4"},
    {.name = "shift by 14, the fast kernel's last", .attrs = "shift=14 bias_shift=14",
     .in = {BYTES("1x5x5x128"), KNOWN("16x3x3x128"), KNOWN("16")}, .n_in = 3, .out_shape = "1x3x3x16"},
    {.name = "shift by 15", .attrs = "shift=15 bias_shift=15",
     .in = {BYTES("1x5x5x128"), KNOWN("16x3x3x128"), KNOWN("16")}, .n_in = 3, .out_shape = "1x3x3x16"},
    {.name = "shift by 16, the largest bias", .attrs = "shift=16 bias_shift=23",
     .in = {BYTES("1x5x5x128"), KNOWN("16x3x3x128"), KNOWN("16")}, .n_in = 3, .out_shape = "1x3x3x16"},
    {.name = "dense", .attrs = "shift=12 bias_shift=8",
     .in = {BYTES("5x1x1x400"), KNOWN("37x1x1x400"), KNOWN("37")}, .n_in = 3, .out_shape = "5x1x1x37"},
    {.name = "leaky relu", .attrs = "pad=1x1x1x1 shift=8 bias_shift=5 leaky=true",
     .in = {BYTES("1x6x5x4"), KNOWN("9x3x3x4"), KNOWN("9")}, .n_in = 3, .out_shape = "1x6x5x9"},
    {.name = "dilated", .attrs = "pad=2x2x2x2 dilation=2x2 shift=11",
     .in = {BYTES("1x7x6x12"), KNOWN("8x3x3x12")}, .n_in = 2, .out_shape = "1x7x6x8"},
};
/* clang-format on */

const struct ew_op ew_op_dpu_conv = {
    .name = "dpu_conv",
    .help = "int8 convolution by the DPU's rules",
    .flags = EW_OP_SPATIAL,
    .min_in = 2,
    .max_in = EW_DPU_CONV_INPUTS,
    .filter_in = 1 << EW_DPU_CONV_W,
    .attr_size = sizeof(struct ew_dpu_conv_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    EW_OP_CASES(cases),
};
