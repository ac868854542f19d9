/* SPDX-License-Identifier: Apache-2.0 */
/* Fused 2-D convolution, 2x2 or 3x3 max pooling with stride 2, and optionally ReLU: made in
 * training from three nodes (backend/cpu/fuse/conv_pool_rewrite.c).  Files have separate nodes.
 *
 * For backward it saves one byte per output: the position of the maximum in its window, or that
 * ReLU clipped it.  For 3x3 windows the bytes are in the layout of the outputs, for 2x2 windows
 * transposed: [N, O, windows], and with `turned` [N, windows, O]. */
#include <math.h>
#include <string.h>

#include "op/conv.h"

#define STEP 2 /* pooling stride */

/* clang-format off */
static const struct ew_field attrs[] = {
    EW_WINDOW_FIELDS(struct ew_conv_attr, win),
    EW_GROUPS_FIELD(struct ew_conv_attr),
    EW_EPILOGUE_FIELDS(struct ew_conv_attr, end),
    {.name = "turned", .type = EW_FIELD_BOOL, .offset = offsetof(struct ew_conv_attr, turned),
     .help = "the output's channels come before its windows"},
    {.name = "pool", .type = EW_FIELD_INT, .offset = offsetof(struct ew_conv_attr, pool),
     .help = "3: windows of 3x3 outputs, else of 2x2"},
    EW_FIELD_END};
/* clang-format on */

/* Size of the pooling window. */
static int size_of(const struct ew_call *c)
{
    return ((const struct ew_conv_attr *)c->attr)->pool == 3 ? 3 : 2;
}

/* The byte of an output clipped by ReLU. */
static int cut_of(int size)
{
    return size == 2 ? 4 : 255;
}

static int64_t windows_of(int64_t in, int size)
{
    return (in - size) / STEP + 1;
}

static ew_err resolve(const struct ew_call *c, struct ew_conv_sizes *out)
{
    const struct ew_conv_attr *a = c->attr;
    const int size = size_of(c);
    EW_TRY(ew_conv_resolve(c, out));
    EW_CHECK(c->in[0]->shape.rank == 4 && out->w.out[1] >= size && out->w.out[2] >= size,
             EW_ERR_SHAPE, "the convolution's output is too small for windows of %dx%d", size,
             size);
    EW_CHECK(!a->turned || size == 2, EW_ERR_UNSUPPORTED,
             "windows of 3x3 with a channels-first output");
    EW_CHECK(a->end.act == EW_ACT_NONE || a->end.act == EW_ACT_RELU, EW_ERR_UNSUPPORTED,
             "activation %s after a pool", ew_act_names[a->end.act]);
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
    const int64_t high = windows_of(y->dim[1], size_of(c));
    const int64_t wide = windows_of(y->dim[2], size_of(c));
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
    out->flops += size_of(c) * size_of(c) * ew_tensor_count(c->out[0]);
}

/* The convolution's output before pooling, in scratch. */
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

/* Index in the convolution's output of position `t` of the window of output i of [N, windows, O].
 */
static int64_t pooled_at(const struct ew_conv_sizes *s, int size, int64_t i, int t)
{
    const int64_t high = windows_of(s->w.out[1], size), wide = windows_of(s->w.out[2], size);
    const int64_t window = i / s->filters;
    const int64_t y = window / wide % high * STEP + t / size, x = window % wide * STEP + t % size;
    const int64_t row = window / wide / high * s->w.out[1] + y;
    return (row * s->w.out[2] + x) * s->filters + i % s->filters;
}

/* Index of output i in [N, O, windows], for 2x2 windows. */
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
    const int size = size_of(c);
    const bool relu = ((const struct ew_conv_attr *)c->attr)->end.act == EW_ACT_RELU;
    struct ew_tensor all = pooled(c, &s);
    const struct ew_conv_data d = {.x = c->in[0]->data, .w = c->in[1]->data, .to = all.data};
    ew_bias_fill(c->n_in > 2 ? c->in[2] : NULL, &all);
    ew_conv_apply(&s, all.dtype, &d);
    for (int64_t i = 0; i < ew_tensor_count(c->out[0]); i++) {
        double best = 0;
        int place = 0;
        for (int t = 0; t < size * size; t++) {
            double v;
            ew_tensor_load(&all, pooled_at(&s, size, i, t), 1, &v);
            if (t == 0 || v > best || isnan(v)) {
                best = v;
                place = t;
            }
        }
        if (relu && !(best > 0)) {
            best = isnan(best) ? best : 0;
            place = cut_of(size);
        }
        ew_tensor_store(c->out[0], turned ? turned_at(&s, i) : i, 1, &best);
        if (c->aux)
            ((uint8_t *)c->aux)[turned || size > STEP ? i : turned_at(&s, i)] = (uint8_t)place;
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
    const int size = size_of(c);
    struct ew_tensor all = pooled(c, &s);
    memset(all.data, 0, ew_tensor_bytes(&all));
    for (int64_t i = 0; i < ew_tensor_count(c->dout[0]); i++) {
        double v, sum;
        const int64_t other = turned_at(&s, i);
        const int place = ((const uint8_t *)c->aux)[turned || size > STEP ? i : other];
        ew_tensor_load(c->dout[0], turned ? other : i, 1, &v);
        if (place == cut_of(size))
            continue;
        ew_tensor_load(&all, pooled_at(&s, size, i, place), 1, &sum);
        sum += v; /* windows of 3x3 overlap */
        ew_tensor_store(&all, pooled_at(&s, size, i, place), 1, &sum);
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
    {.name = "3x3", .attrs = "pool=3 stride=2x2 act=relu",
     .in = {{"2x15x17x3"}, {"5x3x3x3"}, {"5"}}, .n_in = 3, .out_shape = "2x3x3x5", .train = true},
    {.name = "3x3, the first layer", .attrs = "pool=3 stride=2x2 pad=1x1x1x1 act=relu",
     .in = {{"4x34x26x3", .no_grad = true}, {"18x3x3x3"}, {"18"}}, .n_in = 3,
     .out_shape = "4x8x6x18", .train = true},
    {.name = "3x3, the first layer, no bias", .attrs = "pool=3",
     .in = {{"2x9x12x2", .no_grad = true}, {"16x3x3x2"}}, .n_in = 2,
     .out_shape = "2x3x4x16", .train = true},
};
/* clang-format on */

const struct ew_op ew_op_conv_pool = {
    .name = "conv_pool",
    .help = "2-D convolution, then the largest of each 2x2 or 3x3 outputs",
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
    EW_OP_CASES(cases),
};
