/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger: convolution of 8-bit tensors as int32. */
#include "op/int_conv.h"

enum { X, W, X_ZERO, W_ZERO, INPUTS };

static const struct ew_field attrs[] = {EW_WINDOW_FIELDS(struct ew_int_conv_attr, win),
                                        EW_GROUPS_FIELD(struct ew_int_conv_attr), EW_FIELD_END};

static ew_err resolve(const struct ew_call *c, struct ew_int_conv *out)
{
    *out = (struct ew_int_conv){.x = X, .x_zero = X_ZERO, .w = W, .w_zero = W_ZERO};
    return ew_int_conv_resolve(c, out);
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_int_conv v;
    EW_TRY(resolve(c, &v));
    c->out[0]->dtype = EW_S32;
    ew_int_conv_infer(c, &v);
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_int_conv v;
    const struct ew_call plain = {.n_in = 2, .in = c->in}; /* there is no bias */
    if (resolve(c, &v) == EW_OK)
        ew_conv_cost(&v.s, &plain, out);
}

static size_t scratch(const struct ew_call *c)
{
    return ew_int_conv_scratch(c, X, W);
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_int_conv v;
    EW_TRY(resolve(c, &v));
    ew_int_conv_begin(c, &v);
    int32_t *y = c->out[0]->data;
    for (int64_t n = 0; n < v.s.w.batch; n++) {
        int64_t o[EW_WINDOW_DIMS] = {0};
        do
            for (int64_t f = 0; f < v.s.filters; f++)
                *y++ = ew_int_conv_sum(c, &v, n, o, f);
        while (ew_window_next(&v.s.w, o));
    }
    return EW_OK;
}

static const char *const renames[] = {EW_INT_CONV_RENAMES, NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "3x3", .attrs = "pad=1x1x1x1",
     .in = {{"1x6x5x3", EW_U8}, {"5x3x3x3", EW_S8}}, .n_in = 2, .out_shape = "1x6x5x5"},
    {.name = "zero points", .attrs = "pad=1x1x1x1 stride=2x2",
     .in = {{"2x5x5x2", EW_U8}, {"4x3x3x2", EW_U8}, {"", EW_U8}, {"4", EW_U8}}, .n_in = 4,
     .out_shape = "2x3x3x4"},
    {.name = "groups, 1-D", .attrs = "groups=2",
     .in = {{"1x7x4", EW_S8}, {"6x3x2", EW_S8}, {"", EW_S8}}, .n_in = 3, .out_shape = "1x5x6"},
};
/* clang-format on */

const struct ew_op ew_op_conv_integer = {
    .name = "conv_integer",
    .help = "convolution of 8-bit tensors as int32",
    .flags = EW_OP_SPATIAL,
    .min_in = 2,
    .max_in = INPUTS,
    .filter_in = 1 << W,
    .attr_size = sizeof(struct ew_int_conv_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .onnx = {.type = "ConvInteger", .since = 10, .rename = renames},
    EW_OP_CASES(cases),
};
