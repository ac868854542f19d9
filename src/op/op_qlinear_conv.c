/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearConv: convolution of quantised tensors, quantised again. */
#include "op/int_conv.h"

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS, INPUTS };

static const struct ew_field attrs[] = {EW_WINDOW_FIELDS(struct ew_int_conv_attr, win),
                                        EW_GROUPS_FIELD(struct ew_int_conv_attr), EW_FIELD_END};

static ew_err resolve(const struct ew_call *c, struct ew_int_conv *out)
{
    *out = (struct ew_int_conv){.x = X, .x_zero = X_ZERO, .w = W, .w_zero = W_ZERO};
    return ew_int_conv_resolve(c, out);
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_tensor *bias = ew_call_in(c, BIAS);
    struct ew_int_conv v;
    EW_TRY(resolve(c, &v));
    EW_TRY(ew_quant_check_scale(c, X_SCALE, 1));
    EW_TRY(ew_quant_check_scale(c, W_SCALE, v.s.filters));
    EW_TRY(ew_quant_check_scale(c, Y_SCALE, 1));
    EW_TRY(ew_quant_check(c, Y_ZERO, Y_ZERO, 1));
    EW_TRY(ew_types_check(c, BIAS, 1 << EW_S32));
    EW_CHECK(!bias || ew_tensor_count(bias) == v.s.filters, EW_ERR_SHAPE,
             "the bias does not have one entry for each of %lld filters", (long long)v.s.filters);
    c->out[0]->dtype = c->in[Y_ZERO]->dtype;
    ew_int_conv_infer(c, &v);
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_int_conv v;
    const struct ew_tensor *bias = ew_call_in(c, BIAS);
    struct ew_tensor *in[] = {c->in[X], c->in[W], bias ? c->in[BIAS] : NULL};
    const struct ew_call plain = {.n_in = bias ? 3 : 2, .in = in, .n_out = 1, .out = c->out};
    if (resolve(c, &v) == EW_OK)
        ew_conv_cost(&v.s, &plain, out);
}

static size_t scratch(const struct ew_call *c)
{
    return ew_int_conv_scratch(c, X, W);
}

/* One pixel of the output: all filters. */
static void pixel(const struct ew_call *c, const struct ew_int_conv *v, int64_t image,
                  const int64_t *o, int64_t to)
{
    const struct ew_tensor *bias = ew_call_in(c, BIAS);
    const int64_t zero = ew_tensor_get_int(c->in[Y_ZERO], 0);
    const double ratio = ew_tensor_get(c->in[X_SCALE], 0) / ew_tensor_get(c->in[Y_SCALE], 0);
    for (int64_t f = 0; f < v->s.filters; f++) {
        const int64_t b = bias ? ew_tensor_get_int(bias, f) : 0;
        const double sum = (double)(ew_int_conv_sum(c, v, image, o, f) + b);
        const double y = sum * ratio * ew_quant_scale(c->in[W_SCALE], f);
        const int64_t q = ew_quant_round(y, zero, c->out[0]->dtype);
        ew_tensor_store_int(c->out[0], to + f, 1, &q);
    }
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_int_conv v;
    EW_TRY(resolve(c, &v));
    ew_int_conv_begin(c, &v);
    int64_t to = 0;
    for (int64_t n = 0; n < v.s.w.batch; n++) {
        int64_t o[EW_WINDOW_DIMS] = {0};
        do {
            pixel(c, &v, n, o, to);
            to += v.s.filters;
        } while (ew_window_next(&v.s.w, o));
    }
    return EW_OK;
}

static const char *const renames[] = {EW_INT_CONV_RENAMES, NULL};

/* clang-format off */
#define SCALE(shape) {shape, .fill = EW_FILL_POSITIVE}

static const struct ew_op_case cases[] = {
    {.name = "3x3", .attrs = "pad=1x1x1x1",
     .in = {{"1x6x5x3", EW_U8}, SCALE(""), {"", EW_U8}, {"5x3x3x3", EW_S8}, SCALE(""), {"", EW_S8},
            SCALE(""), {"", EW_U8}},
     .n_in = 8, .out_shape = "1x6x5x5"},
    {.name = "by filter, with bias", .attrs = "stride=2x2 groups=2",
     .in = {{"2x5x5x4", EW_S8}, SCALE(""), {"", EW_S8}, {"6x3x3x2", EW_S8}, SCALE("6"),
            {"6", EW_S8}, SCALE(""), {"", EW_S8}, {"6", EW_S32}},
     .n_in = INPUTS, .out_shape = "2x2x2x6"},
};
/* clang-format on */

const struct ew_op ew_op_qlinear_conv = {
    .name = "qlinear_conv",
    .help = "convolution of quantised tensors, quantised again",
    .flags = EW_OP_SPATIAL,
    .min_in = 8,
    .max_in = INPUTS,
    .filter_in = 1 << W,
    .attr_size = sizeof(struct ew_int_conv_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .onnx = {.type = "QLinearConv", .since = 10, .rename = renames},
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
