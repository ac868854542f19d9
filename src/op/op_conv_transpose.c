/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose: the adjoint (dgrad) of a convolution. */
#include "op/conv.h"

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_conv_transpose_attr, win),
    EW_GROUPS_FIELD(struct ew_conv_transpose_attr),
    {.name = "output_padding", .type = EW_FIELD_INTS,
     .offset = offsetof(struct ew_conv_transpose_attr, output_padding), .min = 0, .max = INT32_MAX,
     .help = "added at the end of the output"},
    {.name = "output_shape", .type = EW_FIELD_INTS,
     .offset = offsetof(struct ew_conv_transpose_attr, output_shape), .min = 1, .max = INT32_MAX,
     .help = "spatial size of the output, instead of padding"},
    EW_FIELD_END};
/* clang-format on */

/* Output size and padding of dimension d, by ONNX's rules.  On entry w->in is x's size; on return
 * w->out is x's size and w->in the output's, so that w is the adjoint convolution. */
static ew_err resolve_dim(const struct ew_conv_transpose_attr *a, int i, int d, struct ew_window *w)
{
    const int64_t in = w->in[d], extra = a->output_padding.n ? a->output_padding.v[i] : 0;
    const bool same =
        a->win.auto_pad == EW_AUTO_PAD_SAME_UPPER || a->win.auto_pad == EW_AUTO_PAD_SAME_LOWER;
    int64_t full, wanted = a->output_shape.n ? a->output_shape.v[i] : 0;
    EW_CHECK(!__builtin_mul_overflow(in - 1, w->stride[d], &full) && full < (int64_t)1 << 60,
             EW_ERR_LIMIT, "stride %lld makes the output too large", (long long)w->stride[d]);
    full += (w->kernel[d] - 1) * w->dilation[d] + 1 + extra;
    if (same && !a->output_shape.n)
        wanted = in * w->stride[d];
    if (a->win.auto_pad == EW_AUTO_PAD_VALID)
        w->pad[d] = w->pad_end[d] = 0;
    if (same || a->output_shape.n) {
        const int64_t total = ew_max_i64(full - wanted, 0);
        const bool upper = a->win.auto_pad == EW_AUTO_PAD_SAME_UPPER;
        w->pad[d] = upper ? total / 2 : total - total / 2;
        w->pad_end[d] = total - w->pad[d];
    } else {
        wanted = full - w->pad[d] - w->pad_end[d];
    }
    EW_CHECK(wanted >= 1, EW_ERR_SHAPE,
             "padding of %lld and %lld leaves nothing of an output of %lld", (long long)w->pad[d],
             (long long)w->pad_end[d], (long long)full);
    w->in[d] = wanted;
    w->out[d] = in;
    return EW_OK;
}

ew_err ew_conv_transpose_resolve(const struct ew_call *c, struct ew_conv_sizes *out)
{
    const struct ew_conv_transpose_attr *a = c->attr;
    const struct ew_shape *x = &c->in[0]->shape, *f = &c->in[1]->shape;
    const int64_t channels = x->dim[x->rank - 1], depth = f->rank ? f->dim[f->rank - 1] : 0;
    int64_t filters;
    EW_CHECK(!__builtin_mul_overflow(depth, a->groups, &filters), EW_ERR_LIMIT,
             "%lld groups are too many", (long long)a->groups);
    EW_TRY(ew_conv_check(c, filters));
    EW_CHECK(a->groups >= 1 && channels % a->groups == 0, EW_ERR_SHAPE,
             "%lld groups do not divide %lld channels", (long long)a->groups, (long long)channels);
    EW_CHECK(f->dim[0] == channels, EW_ERR_SHAPE, "filters take %lld channels, the input has %lld",
             (long long)f->dim[0], (long long)channels);
    const int n = x->rank - 2;
    EW_TRY(ew_window_list(&a->output_padding, n, 0, "output_padding"));
    EW_TRY(ew_window_list(&a->output_shape, n, 1, "output_shape"));
    EW_TRY(ew_window_fill(&a->win, x, f->dim + 1, &out->w));
    for (int i = 0; i < n; i++)
        EW_TRY(resolve_dim(a, i, EW_WINDOW_DIMS - n + i, &out->w));
    out->groups = a->groups;
    out->filters = channels; /* of the adjoint convolution */
    out->w.channels = filters;
    return EW_OK;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_transpose_resolve(c, &s));
    const int rank = c->in[0]->shape.rank;
    struct ew_shape *y = &c->out[0]->shape;
    *y = c->in[0]->shape;
    for (int i = 1; i < rank - 1; i++)
        y->dim[i] = s.w.in[EW_WINDOW_DIMS - (rank - 1) + i];
    y->dim[rank - 1] = s.w.channels;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_conv_sizes s;
    if (ew_conv_transpose_resolve(c, &s) == EW_OK)
        ew_conv_cost(&s, c, out);
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_transpose_resolve(c, &s));
    ew_bias_fill(c->n_in > 2 ? c->in[2] : NULL, c->out[0]);
    const struct ew_conv_data d = {.w = c->in[1]->data, .y = c->in[0]->data, .to = c->out[0]->data};
    ew_conv_grad_x(&s, c->in[0]->dtype, &d);
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    EW_TRY(ew_conv_transpose_resolve(c, &s));
    if (!c->dout[0])
        return EW_OK;
    struct ew_conv_data d = {.x = c->dout[0]->data, .w = c->in[1]->data, .y = c->in[0]->data};
    if (c->din[0]) {
        d.to = c->din[0]->data;
        ew_conv_apply(&s, c->in[0]->dtype, &d);
    }
    if (c->din[1]) {
        d.to = c->din[1]->data;
        ew_conv_grad_w(&s, c->in[0]->dtype, &d);
    }
    if (c->n_in > 2 && c->din[2])
        ew_bias_grad(c->dout[0], c->din[2]);
    return EW_OK;
}

static const char *const renames[] = {EW_WINDOW_RENAMES, "groups", "group", NULL};

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "3x3", .in = {{"1x3x4x2"}, {"2x3x3x5"}, {"5"}}, .n_in = 3, .out_shape = "1x5x6x5"},
    {.name = "stride 2", .attrs = "stride=2x2 pad=1x1x1x1 output_padding=1x1 kernel=3x3",
     .in = {{"3x3x4x2"}, {"2x3x3x3"}}, .n_in = 2, .out_shape = "3x6x8x3"},
    {.name = "many channels", .attrs = "stride=2x2 pad=1x1x1x1 kernel=4x4",
     .in = {{"1x4x5x18"}, {"18x4x4x17"}, {"17"}}, .n_in = 3, .out_shape = "1x8x10x17"},
    {.name = "asymmetric", .attrs = "stride=3x2 pad=0x1x2x0",
     .in = {{"1x3x3x2"}, {"2x3x2x3"}, {"3"}}, .n_in = 3, .out_shape = "1x7x5x3"},
    {.name = "groups", .attrs = "groups=2 stride=2x2",
     .in = {{"2x2x3x6"}, {"6x2x2x2"}, {"4"}}, .n_in = 3, .out_shape = "2x4x6x4"},
    {.name = "depthwise", .attrs = "groups=4 pad=1x1x1x1",
     .in = {{"1x4x4x4"}, {"4x3x3x1"}}, .n_in = 2, .out_shape = "1x4x4x4"},
    {.name = "dilation", .attrs = "dilation=2x2", .in = {{"1x3x3x2"}, {"2x2x2x3"}}, .n_in = 2,
     .out_shape = "1x5x5x3"},
    {.name = "output shape", .attrs = "stride=3x2 output_shape=10x6",
     .in = {{"1x3x3x1"}, {"1x3x3x2"}}, .n_in = 2, .out_shape = "1x10x6x2"},
    {.name = "same upper", .attrs = "stride=2x2 auto_pad=SAME_UPPER",
     .in = {{"1x3x3x1"}, {"1x3x3x2"}}, .n_in = 2, .out_shape = "1x6x6x2"},
    {.name = "same lower", .attrs = "stride=2x2 auto_pad=SAME_LOWER",
     .in = {{"1x3x3x1"}, {"1x3x3x2"}}, .n_in = 2, .out_shape = "1x6x6x2"},
    {.name = "1-D", .attrs = "stride=2", .in = {{"2x4x3"}, {"3x3x2"}, {"2"}}, .n_in = 3,
     .out_shape = "2x9x2"},
    {.name = "3-D", .attrs = "stride=1x2x1", .in = {{"1x2x3x2x2"}, {"2x2x2x2x3"}}, .n_in = 2,
     .out_shape = "1x3x6x3x3"},
};
/* clang-format on */

const struct ew_op ew_op_conv_transpose = {
    .name = "conv_transpose",
    .help = "transposed convolution over 1 to 3 dimensions",
    .flags = EW_OP_SPATIAL,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 3,
    .param_in = 1 << 1 | 1 << 2,
    .filter_in = 1 << 1,
    .attr_size = sizeof(struct ew_conv_transpose_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "ConvTranspose", .rename = renames},
    EW_OP_CASES(cases),
};
