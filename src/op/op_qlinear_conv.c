/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearConv: convolution of quantised tensors, quantised again. */
#include "graph/graph.h"
#include "graph/onnx.h"
#include "op/qlinear.h"

static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_int_conv_attr, win), EW_GROUPS_FIELD(struct ew_int_conv_attr),
    EW_QUANT_CLAMP_FIELDS(struct ew_qconv_attr, clamp), EW_FIELD_END};

ew_err ew_qconv_resolve(const struct ew_call *c, struct ew_int_conv *out)
{
    *out = (struct ew_int_conv){
        .x = EW_QCONV_X, .x_zero = EW_QCONV_X_ZERO, .w = EW_QCONV_W, .w_zero = EW_QCONV_W_ZERO};
    return ew_int_conv_resolve(c, out);
}

/* Checks the inputs that only the lowering pass sets. */
static ew_err check_fused(const struct ew_call *c)
{
    const struct ew_tensor *add = ew_call_in(c, EW_QCONV_ADD);
    const struct ew_tensor *table = ew_call_in(c, EW_QCONV_TABLE);
    if (add) {
        for (int i = EW_QCONV_ADD_SCALE; i <= EW_QCONV_SUM_ZERO; i++)
            EW_CHECK(ew_call_in(c, i), EW_ERR_ARG, "input %d is missing", i);
        EW_TRY(ew_quant_check(c, EW_QCONV_ADD, EW_QCONV_ADD_ZERO, 1));
        EW_TRY(ew_quant_check_scale(c, EW_QCONV_ADD_SCALE, 1));
        EW_TRY(ew_quant_check_scale(c, EW_QCONV_SUM_SCALE, 1));
        EW_TRY(ew_quant_check(c, EW_QCONV_SUM_ZERO, EW_QCONV_SUM_ZERO, 1));
        EW_CHECK(ew_shape_equal(&add->shape, &c->out[0]->shape), EW_ERR_SHAPE,
                 "the residual's shape or type differs from the output's");
    }
    if (table) {
        EW_TRY(ew_types_check(c, EW_QCONV_TABLE, EW_TYPES_QUANT8));
        EW_CHECK(ew_tensor_count(table) == 256, EW_ERR_SHAPE, "the table has %lld entries, not 256",
                 (long long)ew_tensor_count(table));
    }
    EW_CHECK((!add && !table) || ew_call_in(c, EW_QCONV_Y_SCALE), EW_ERR_ARG,
             "a float output cannot be added to or looked up");
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    const struct ew_tensor *bias = ew_call_in(c, EW_QCONV_BIAS);
    struct ew_int_conv v;
    EW_TRY(ew_qconv_resolve(c, &v));
    EW_TRY(ew_quant_check_scale(c, EW_QCONV_X_SCALE, 1));
    EW_TRY(ew_quant_check_scale(c, EW_QCONV_W_SCALE, v.s.filters));
    EW_TRY(ew_types_check(c, EW_QCONV_BIAS, 1 << EW_S32));
    EW_CHECK(!bias || ew_tensor_count(bias) == v.s.filters, EW_ERR_SHAPE,
             "the bias does not have one entry for each of %lld filters", (long long)v.s.filters);
    c->out[0]->dtype = EW_F32;
    if (ew_call_in(c, EW_QCONV_Y_SCALE)) {
        EW_CHECK(ew_call_in(c, EW_QCONV_Y_ZERO), EW_ERR_ARG, "the output has no zero point");
        EW_TRY(ew_quant_check_scale(c, EW_QCONV_Y_SCALE, 1));
        EW_TRY(ew_quant_check(c, EW_QCONV_Y_ZERO, EW_QCONV_Y_ZERO, 1));
        const int last = ew_call_in(c, EW_QCONV_TABLE) ? EW_QCONV_TABLE
                         : ew_call_in(c, EW_QCONV_ADD) ? EW_QCONV_SUM_ZERO
                                                       : EW_QCONV_Y_ZERO;
        EW_CHECK(ew_call_in(c, last), EW_ERR_ARG, "input %d is missing", last);
        c->out[0]->dtype = c->in[last]->dtype;
    }
    ew_int_conv_infer(c, &v);
    return check_fused(c);
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_int_conv v;
    const struct ew_tensor *bias = ew_call_in(c, EW_QCONV_BIAS);
    struct ew_tensor *in[] = {c->in[EW_QCONV_X], c->in[EW_QCONV_W],
                              bias ? c->in[EW_QCONV_BIAS] : NULL};
    const struct ew_call plain = {.n_in = bias ? 3 : 2, .in = in, .n_out = 1, .out = c->out};
    if (ew_qconv_resolve(c, &v) == EW_OK)
        ew_conv_cost(&v.s, &plain, out);
}

static size_t scratch(const struct ew_call *c)
{
    return ew_int_conv_scratch(c, EW_QCONV_X, EW_QCONV_W);
}

static double scale_of(const struct ew_call *c, int slot)
{
    return ew_tensor_get(c->in[slot], 0);
}

/* Requantises the sum of output element i. */
static int64_t finish(const struct ew_call *c, int32_t sum, double w_scale, int64_t i)
{
    const struct ew_qconv_attr *a = c->attr;
    const struct ew_tensor *add = ew_call_in(c, EW_QCONV_ADD);
    const struct ew_tensor *table = ew_call_in(c, EW_QCONV_TABLE);
    const double x_scale = scale_of(c, EW_QCONV_X_SCALE), y_scale = scale_of(c, EW_QCONV_Y_SCALE);
    const int64_t zero = ew_quant_zero(c->in[EW_QCONV_Y_ZERO], 0);
    int64_t q = ew_quant_sum(sum, ew_quant_ratio(x_scale, w_scale, y_scale), zero,
                             c->in[EW_QCONV_Y_ZERO]->dtype);
    if (add) {
        const double sum_scale = scale_of(c, EW_QCONV_SUM_SCALE);
        const struct ew_quant_binary two = {
            .a_ratio = ew_quant_ratio(y_scale, 1, sum_scale),
            .b_ratio = ew_quant_ratio(scale_of(c, EW_QCONV_ADD_SCALE), 1, sum_scale),
            .zero = ew_quant_zero(c->in[EW_QCONV_SUM_ZERO], 0),
            .dtype = c->in[EW_QCONV_SUM_ZERO]->dtype};
        const int64_t other =
            ew_tensor_get_int(add, i) - ew_quant_zero(c->in[EW_QCONV_ADD_ZERO], 0);
        q = ew_quant_add(&two, q - zero, other);
    }
    q = ew_quant_clamp(&a->clamp, q);
    return table ? ew_tensor_get_int(table, (uint8_t)q) : q;
}

/* One pixel of the output: all filters. */
static void pixel(const struct ew_call *c, const struct ew_int_conv *v, int64_t image,
                  const int64_t *o, int64_t to)
{
    const struct ew_tensor *bias = ew_call_in(c, EW_QCONV_BIAS);
    for (int64_t f = 0; f < v->s.filters; f++) {
        const uint32_t b = bias ? (uint32_t)ew_tensor_get_int(bias, f) : 0;
        const int32_t sum = (int32_t)((uint32_t)ew_int_conv_sum(c, v, image, o, f) + b);
        const double w_scale = ew_quant_scale(c->in[EW_QCONV_W_SCALE], f);
        if (ew_call_in(c, EW_QCONV_Y_SCALE)) {
            const int64_t q = finish(c, sum, w_scale, to + f);
            ew_tensor_store_int(c->out[0], to + f, 1, &q);
        } else {
            const float ratio = ew_quant_ratio(scale_of(c, EW_QCONV_X_SCALE), w_scale, 1);
            ((float *)c->out[0]->data)[to + f] = (float)sum * ratio;
        }
    }
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_int_conv v;
    EW_TRY(ew_qconv_resolve(c, &v));
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

/* A node that the lowering pass has made has no ONNX form. */
static ew_err export(const struct ew_graph *g, int node, struct ew_onnx_node *n)
{
    const struct ew_node *at = &g->nodes[node];
    const struct ew_qconv_attr *a = at->attr;
    EW_CHECK(ew_quant_clamps_nothing(&a->clamp) && at->n_in <= EW_QCONV_BIAS + 1 &&
                 at->in[EW_QCONV_Y_SCALE] >= 0,
             EW_ERR_UNSUPPORTED, "node %s: fused with what follows it", at->name);
    return EW_OK;
}

static const char *const renames[] = {EW_INT_CONV_RENAMES, EW_QUANT_CLAMP_RENAMES, NULL};

/* clang-format off */
#define SCALE(shape) {shape, .fill = EW_FILL_POSITIVE, .constant = true}
#define TINY {"", .fill = EW_FILL_VALUES, .values = "0.003", .constant = true} /* outputs use all of their range */
#define BYTE(value, type) {"", type, EW_FILL_VALUES, .values = value, .constant = true}
#define BYTES(shape, type) {shape, type, EW_FILL_BYTES}
#define KNOWN(shape, type) {shape, type, EW_FILL_BYTES, .constant = true}

static const struct ew_op_case cases[] = {
    {.name = "3x3", .attrs = "pad=1x1x1x1",
     .in = {{"1x6x5x3", EW_U8}, SCALE(""), BYTE("3", EW_U8), KNOWN("5x3x3x3", EW_S8), SCALE(""),
            BYTE("0", EW_S8), SCALE(""), BYTE("2", EW_U8)},
     .n_in = 8, .out_shape = "1x6x5x5"},
    {.name = "by filter, with bias", .attrs = "stride=2x2 groups=2",
     .in = {{"2x5x5x4", EW_S8}, SCALE(""), {"", EW_S8}, {"6x3x3x2", EW_S8}, SCALE("6"),
            {"6", EW_S8}, SCALE(""), {"", EW_S8}, {"6", EW_S32, .constant = true}},
     .n_in = 9, .out_shape = "2x2x2x6"},
    {.name = "all bytes, clamped", .attrs = "pad=1x1x1x1 lo=5 hi=200",
     .in = {BYTES("1x7x6x20", EW_U8), TINY, BYTE("131", EW_U8), KNOWN("35x3x3x20", EW_S8),
            SCALE("35"), {NULL}, SCALE(""), BYTE("7", EW_U8),
            {"35", EW_S32, .constant = true}},
     .n_in = 9, .out_shape = "1x7x6x35"},
    {.name = "3x3 of two images, int8, unpadded below", .attrs = "pad=1x0x0x2 lo=-20",
     .in = {BYTES("2x9x8x37", EW_S8), TINY, BYTE("-77", EW_S8), KNOWN("66x3x3x37", EW_S8),
            SCALE("66"), {NULL}, SCALE(""), BYTE("-20", EW_S8),
            {"66", EW_S32, .constant = true}},
     .n_in = 9, .out_shape = "2x8x8x66"},
    {.name = "3x3 to float", .attrs = "pad=1x1x1x1",
     .in = {BYTES("1x5x13x64", EW_U8), TINY, BYTE("3", EW_U8), KNOWN("17x3x3x64", EW_U8),
            SCALE("17"), BYTE("128", EW_U8)},
     .n_in = 6, .out_shape = "1x5x13x17"},
    {.name = "wide, pointwise", .in = {BYTES("1x5x6x64", EW_S8), TINY, BYTE("-3", EW_S8),
                                       KNOWN("70x1x1x64", EW_S8), SCALE("70"), {NULL}, SCALE(""),
                                       BYTE("-9", EW_S8), {"70", EW_S32, .constant = true}},
     .n_in = 9, .out_shape = "1x5x6x70"},
    {.name = "depthwise", .attrs = "pad=1x1x1x1 groups=70",
     .in = {BYTES("1x6x9x70", EW_U8), TINY, BYTE("131", EW_U8), KNOWN("70x3x3x1", EW_S8),
            SCALE("70"), {NULL}, SCALE(""), BYTE("7", EW_U8),
            {"70", EW_S32, .constant = true}},
     .n_in = 9, .out_shape = "1x6x9x70"},
    {.name = "depthwise 5x5, stride 2, int8", .attrs = "pad=2x2x2x2 stride=2x2 groups=33 lo=0",
     .in = {BYTES("1x11x9x33", EW_S8), TINY, BYTE("-100", EW_S8), KNOWN("33x5x5x1", EW_S8),
            SCALE("33"), {NULL}, SCALE(""), BYTE("-7", EW_S8),
            {"33", EW_S32, .constant = true}},
     .n_in = 9, .out_shape = "1x6x5x33"},
    {.name = "grouped", .attrs = "pad=1x1x1x1 groups=8",
     .in = {BYTES("1x6x5x32", EW_U8), TINY, BYTE("100", EW_U8), KNOWN("32x3x3x4", EW_S8), SCALE(""),
            {NULL}, SCALE(""), BYTE("100", EW_U8)},
     .n_in = 8, .out_shape = "1x6x5x32"},
    {.name = "grouped by 8, stride 2, added", .attrs = "pad=1x1x1x1 groups=4 stride=2x2",
     .in = {BYTES("1x5x17x32", EW_U8), TINY, BYTE("100", EW_U8), KNOWN("32x3x3x8", EW_S8),
            SCALE(""), {NULL}, SCALE(""), BYTE("100", EW_U8), {NULL}, BYTES("1x3x9x32", EW_S8),
            SCALE(""), BYTE("9", EW_S8), SCALE(""), BYTE("10", EW_S8)},
     .n_in = 14, .out_shape = "1x3x9x32"},
    {.name = "grouped by 16", .attrs = "pad=1x1x1x1 groups=3",
     .in = {BYTES("2x4x9x48", EW_U8), TINY, BYTE("100", EW_U8), KNOWN("48x3x3x16", EW_S8),
            SCALE("48"), {NULL}, SCALE(""), BYTE("100", EW_U8)},
     .n_in = 8, .out_shape = "2x4x9x48"},
    {.name = "depthwise 3x3, stride 2, looked up", .attrs = "pad=1x1x1x1 stride=2x2 groups=96",
     .in = {BYTES("1x9x14x96", EW_U8), TINY, BYTE("131", EW_U8), KNOWN("96x3x3x1", EW_S8),
            SCALE("96"), {NULL}, SCALE(""), BYTE("7", EW_U8), {"96", EW_S32, .constant = true},
            {NULL}, {NULL}, {NULL}, {NULL}, {NULL}, KNOWN("256", EW_S8)},
     .n_in = 15, .out_shape = "1x5x7x96"},
    {.name = "depthwise 5x5", .attrs = "pad=2x2x2x2 groups=130",
     .in = {BYTES("1x4x11x130", EW_U8), TINY, BYTE("0", EW_U8), KNOWN("130x5x5x1", EW_S8),
            SCALE("130"), {NULL}, SCALE(""), BYTE("0", EW_U8)},
     .n_in = 8, .out_shape = "1x4x11x130"},
    {.name = "depthwise 5x5, stride 2", .attrs = "pad=2x2x2x2 groups=20 stride=2x2",
     .in = {BYTES("1x8x15x20", EW_U8), TINY, BYTE("255", EW_U8), KNOWN("20x5x5x1", EW_S8),
            SCALE(""), {NULL}, SCALE(""), BYTE("255", EW_U8)},
     .n_in = 8, .out_shape = "1x4x8x20"},
    {.name = "depthwise 1x1, as batch norm", .attrs = "groups=70 lo=100",
     .in = {BYTES("1x3x5x70", EW_U8), TINY, BYTE("30", EW_U8), KNOWN("70x1x1x1", EW_S8), SCALE("70"),
            {NULL}, SCALE(""), BYTE("100", EW_U8), {"70", EW_S32, .constant = true}},
     .n_in = 9, .out_shape = "1x3x5x70"},
    {.name = "many rows", .attrs = "stride=2x2",
     .in = {BYTES("3x13x11x30", EW_S8), TINY, BYTE("30", EW_S8), KNOWN("17x1x1x30", EW_S8),
            SCALE("17"), {NULL}, SCALE(""), BYTE("-100", EW_S8)},
     .n_in = 8, .out_shape = "3x7x6x17"},
    {.name = "first layer", .attrs = "stride=2x2 pad=3x3x3x3",
     .in = {BYTES("1x21x19x3", EW_U8), TINY, BYTE("128", EW_U8), KNOWN("40x7x7x3", EW_S8),
            SCALE("40"), {NULL}, SCALE(""), BYTE("0", EW_U8)},
     .n_in = 8, .out_shape = "1x11x10x40"},
    {.name = "1-D, dilation", .attrs = "dilation=2 pad=2x2",
     .in = {BYTES("2x9x6", EW_U8), TINY, BYTE("128", EW_U8), KNOWN("5x3x6", EW_S8), SCALE("5"),
            {NULL}, SCALE(""), BYTE("0", EW_U8)},
     .n_in = 8, .out_shape = "2x9x5"},
    {.name = "3-D", .attrs = "pad=1x1x1x1x1x1",
     .in = {BYTES("1x3x4x5x4", EW_U8), TINY, BYTE("128", EW_U8), KNOWN("6x3x3x3x4", EW_S8),
            SCALE("6"), {NULL}, SCALE(""), BYTE("0", EW_U8)},
     .n_in = 8, .out_shape = "1x3x4x5x6"},
    {.name = "unsigned filters", .attrs = "pad=1x1x1x1",
     .in = {BYTES("1x4x5x6", EW_U8), TINY, BYTE("3", EW_U8), KNOWN("9x3x3x6", EW_U8), SCALE(""),
            BYTE("128", EW_U8), SCALE(""), BYTE("100", EW_U8)},
     .n_in = 8, .out_shape = "1x4x5x9"},
    {.name = "to float", .attrs = "pad=1x1x1x1",
     .in = {BYTES("1x4x5x6", EW_U8), TINY, BYTE("3", EW_U8), KNOWN("9x3x3x6", EW_S8), SCALE("9")},
     .n_in = 5, .out_shape = "1x4x5x9"},
    {.name = "added", .attrs = "lo=100",
     .in = {BYTES("1x5x6x24", EW_U8), TINY, BYTE("120", EW_U8), KNOWN("40x1x1x24", EW_S8),
            SCALE("40"), {NULL}, SCALE(""), BYTE("90", EW_U8), {"40", EW_S32, .constant = true},
            BYTES("1x5x6x40", EW_U8), SCALE(""), BYTE("99", EW_U8), SCALE(""), BYTE("100", EW_U8)},
     .n_in = 14, .out_shape = "1x5x6x40"},
    {.name = "added, looked up", .attrs = "pad=1x1x1x1",
     .in = {BYTES("1x5x6x24", EW_U8), TINY, BYTE("120", EW_U8), KNOWN("40x3x3x24", EW_S8),
            SCALE("40"), {NULL}, SCALE(""), BYTE("9", EW_S8), {"40", EW_S32, .constant = true},
            BYTES("1x5x6x40", EW_S8), SCALE(""), BYTE("99", EW_S8), SCALE(""), BYTE("10", EW_S8),
            KNOWN("256", EW_U8)},
     .n_in = 15, .out_shape = "1x5x6x40"},
    {.name = "looked up", .attrs = "stride=2x1",
     .in = {BYTES("1x5x6x24", EW_U8), TINY, BYTE("120", EW_U8), KNOWN("40x3x3x24", EW_S8),
            SCALE("40"), {NULL}, SCALE(""), BYTE("90", EW_U8), {"40", EW_S32, .constant = true}, {NULL}, {NULL},
            {NULL}, {NULL}, {NULL}, KNOWN("256", EW_U8)},
     .n_in = 15, .out_shape = "1x2x4x40"},
};
/* clang-format on */

const struct ew_op ew_op_qlinear_conv = {
    .name = "qlinear_conv",
    .help = "convolution of quantised tensors, quantised again",
    .flags = EW_OP_SPATIAL,
    .min_in = 5,
    .max_in = EW_QCONV_INPUTS,
    .spatial_in = 1 << EW_QCONV_ADD,
    .filter_in = 1 << EW_QCONV_W,
    .attr_size = sizeof(struct ew_qconv_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .forward = forward,
    .onnx = {.type = "QLinearConv", .since = 10, .rename = renames, .export = export},
    EW_OP_CASES(cases),
};
