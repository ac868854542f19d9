/* SPDX-License-Identifier: Apache-2.0 */
/* A 2-D convolution, the largest of each 2x2 outputs, and perhaps a ReLU: what training makes of
 * three nodes (compress/fuse_pool.c).  Files have separate nodes.
 *
 * For backward it keeps one byte an output: which of the four it was, or that the ReLU cut it off.
 * They lie the other way round than outputs: [N, O, windows], and with `turned` [N, windows, O]. */
#include <math.h>
#include <string.h>

#include "op/conv.h"

#define CUT 4 /* no gradient */

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_conv_attr, win),
    EW_GROUPS_FIELD(struct ew_conv_attr),
    EW_EPILOGUE_FIELDS(struct ew_conv_attr, end),
    {.name = "turned", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_conv_attr, turned),
     .help = "the output's channels come before its windows"},
    EW_FIELD_END};
/* clang-format on */

static ew_err resolve(const struct ew_call *c, struct ew_conv_sizes *out)
{
    const struct ew_conv_attr *a = c->attr;
    EW_TRY(ew_conv_resolve(c, out));
    EW_CHECK(c->in[0]->shape.rank == 4 && out->w.out[1] > 1 && out->w.out[2] > 1, EW_ERR_SHAPE,
             "what is pooled has no windows of 2x2");
    EW_CHECK(a->end.act == EW_ACT_NONE || a->end.act == EW_ACT_RELU, EW_ERR_UNSUPPORTED,
             "activation %s behind a pool", ew_act_names[a->end.act]);
    return EW_OK;
}

static bool is_turned(const struct ew_call *c)
{
    return ((const struct ew_conv_attr *)c->attr)->turned;
}

static ew_err infer(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    EW_TRY(resolve(c, &s));
    struct ew_shape *y = &c->out[0]->shape;
    ew_window_shape(&s.w, c->in[0]->shape.rank, s.filters, y);
    const int64_t high = y->dim[1] / 2, wide = y->dim[2] / 2;
    const bool turned = is_turned(c);
    y->dim[1] = turned ? s.filters : high;
    y->dim[2] = turned ? high : wide;
    y->dim[3] = turned ? wide : s.filters;
    return EW_OK;
}

static void cost(const struct ew_call *c, struct ew_cost *out)
{
    struct ew_conv_sizes s;
    if (resolve(c, &s) != EW_OK)
        return;
    ew_conv_cost(&s, c, out);
    out->flops += 4 * ew_tensor_count(c->out[0]);
}

/* What is pooled, in the scratch memory. */
static struct ew_tensor pooled(const struct ew_call *c, const struct ew_conv_sizes *s)
{
    struct ew_tensor t = {.dtype = c->in[0]->dtype, .data = c->scratch};
    ew_window_shape(&s->w, c->in[0]->shape.rank, s->filters, &t.shape);
    return t;
}

static size_t scratch(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    if (resolve(c, &s) != EW_OK)
        return 0;
    const struct ew_tensor t = pooled(c, &s);
    return ew_tensor_bytes(&t);
}

static size_t aux(const struct ew_call *c)
{
    return (size_t)ew_tensor_count(c->out[0]);
}

/* Output i of [N, windows, O]: place `t` of its window in what is pooled. */
static int64_t pooled_at(const struct ew_conv_sizes *s, int64_t i, int t)
{
    const int64_t high = s->w.out[1] / 2, wide = s->w.out[2] / 2, window = i / s->filters;
    const int64_t y = window / wide % high * 2 + t / 2, x = window % wide * 2 + t % 2;
    const int64_t row = window / wide / high * s->w.out[1] + y;
    return (row * s->w.out[2] + x) * s->filters + i % s->filters;
}

/* And its place in [N, O, windows]. */
static int64_t turned_at(const struct ew_conv_sizes *s, int64_t i)
{
    const int64_t windows = s->w.out[1] / 2 * (s->w.out[2] / 2), window = i / s->filters;
    return (window / windows * s->filters + i % s->filters) * windows + window % windows;
}

static ew_err forward(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    EW_TRY(resolve(c, &s));
    const bool turned = is_turned(c);
    const bool relu = ((const struct ew_conv_attr *)c->attr)->end.act == EW_ACT_RELU;
    struct ew_tensor all = pooled(c, &s);
    const struct ew_conv_data d = {.x = c->in[0]->data, .w = c->in[1]->data, .to = all.data};
    ew_bias_fill(c->n_in > 2 ? c->in[2] : NULL, &all);
    ew_conv_apply(&s, all.dtype, &d);
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        double best = 0;
        int place = 0;
        for (int t = 0; t < 4; t++) {
            double v;
            ew_tensor_load(&all, pooled_at(&s, i, t), 1, &v);
            if (t == 0 || v > best || isnan(v)) {
                best = v;
                place = t;
            }
        }
        if (relu && !(best > 0)) {
            best = isnan(best) ? best : 0;
            place = CUT;
        }
        ew_tensor_store(c->out[0], turned ? turned_at(&s, i) : i, 1, &best);
        if (c->aux)
            ((uint8_t *)c->aux)[turned ? i : turned_at(&s, i)] = (uint8_t)place;
    }
    return EW_OK;
}

static ew_err backward(const struct ew_call *c)
{
    struct ew_conv_sizes s;
    EW_TRY(resolve(c, &s));
    if (!c->dout[0])
        return EW_OK;
    const bool turned = is_turned(c);
    struct ew_tensor all = pooled(c, &s);
    memset(all.data, 0, ew_tensor_bytes(&all));
    for (int64_t i = 0; i < ew_tensor_count(c->dout[0]); i++) {
        double v;
        const int64_t other = turned_at(&s, i);
        const int place = ((const uint8_t *)c->aux)[turned ? i : other];
        ew_tensor_load(c->dout[0], turned ? other : i, 1, &v);
        if (place != CUT)
            ew_tensor_store(&all, pooled_at(&s, i, place), 1, &v);
    }
    struct ew_conv_data d = {.x = c->in[0]->data, .w = c->in[1]->data, .y = all.data};
    if (c->din[0]) {
        d.to = c->din[0]->data;
        ew_conv_grad_x(&s, all.dtype, &d);
    }
    if (c->din[1]) {
        d.to = c->din[1]->data;
        ew_conv_grad_w(&s, all.dtype, &d);
    }
    if (c->n_in > 2 && c->din[2])
        ew_bias_grad(&all, c->din[2]);
    return EW_OK;
}

/* clang-format off */
static const struct ew_op_case cases[] = {
    {.name = "5x5", .attrs = "pad=2x2x2x2 act=relu",
     .in = {{"2x8x10x1"}, {"6x5x5x1"}, {"6"}}, .n_in = 3, .out_shape = "2x4x5x6", .train = true},
    {.name = "odd sizes", .attrs = "pad=1x0x1x0",
     .in = {{"1x7x9x3"}, {"4x3x3x3"}}, .n_in = 2, .out_shape = "1x3x3x4", .train = true},
    {.name = "stride and groups", .attrs = "stride=2x1 groups=2 act=relu",
     .in = {{"2x9x5x2"}, {"4x3x2x1"}, {"4"}}, .n_in = 3, .out_shape = "2x2x2x4", .train = true},
    {.name = "the first layer", .attrs = "pad=2x2x2x2 act=relu",
     .in = {{"5x28x28x1", .no_grad = true}, {"6x5x5x1"}, {"6"}}, .n_in = 3,
     .out_shape = "5x14x14x6", .train = true},
    {.name = "the first layer, no bias", .attrs = "pad=1x1x1x1",
     .in = {{"3x17x40x3", .no_grad = true}, {"9x3x3x3"}}, .n_in = 2,
     .out_shape = "3x8x20x9", .train = true},
    {.name = "turned", .attrs = "pad=1x2x1x2 act=relu turned=true",
     .in = {{"5x13x14x6"}, {"16x5x5x6"}, {"16"}}, .n_in = 3, .out_shape = "5x16x5x7",
     .train = true},
    {.name = "turned, no bias", .attrs = "turned=true",
     .in = {{"2x11x6x2"}, {"19x5x5x2"}}, .n_in = 2, .out_shape = "2x19x3x1", .train = true},
    {.name = "turned, 3x3", .attrs = "turned=true act=relu",
     .in = {{"2x6x7x3"}, {"4x3x3x3"}}, .n_in = 2, .out_shape = "2x4x2x2", .train = true},
};
/* clang-format on */

const struct ew_op ew_op_conv_pool = {
    .name = "conv_pool",
    .help = "2-D convolution, then the largest of each 2x2 outputs",
    .flags = EW_OP_SPATIAL,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1 | EW_SAVE_AUX,
    .min_in = 2,
    .max_in = 3,
    .param_in = 1 << 1 | 1 << 2,
    .filter_in = 1 << 1,
    .attr_size = sizeof(struct ew_conv_attr),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .scratch = scratch,
    .aux = aux,
    .forward = forward,
    .backward = backward,
    .cases = cases,
    .n_cases = EW_COUNT(cases),
};
