/* SPDX-License-Identifier: Apache-2.0 */
/* The DPU's arithmetic on single numbers. */
#include "op/dpu.h"

#include <math.h>

#define FAR 20 /* positions */

int64_t ew_dpu_shift(int64_t v, int shift)
{
    if (shift <= 0) /* sums have 32 bits: a larger shift saturates all but 0 */
        return v * ((int64_t)1 << (shift < -FAR ? FAR : -shift));
    if (shift > 2 * FAR)
        return 0;
    const int64_t step = (int64_t)1 << shift, up = v + step / 2;
    return up >= 0 ? up / step : -((step - 1 - up) / step); /* floor */
}

int8_t ew_dpu_store(int64_t v, int shift, const struct ew_quant_clamp *clamp)
{
    const int64_t q = ew_quant_clamp(clamp, ew_dpu_shift(v, shift));
    return (int8_t)(q < -128 ? -128 : (q > 127 ? 127 : q));
}

struct ew_dpu_mean ew_dpu_mean(int64_t height, int64_t width)
{
    static const struct {
        int size;
        struct ew_dpu_mean mean;
    } fixed[] = {{3, {7, 6}}, {5, {10, 8}}, {6, {7, 8}}, {7, {21, 10}}, {14, {21, 12}}};
    for (size_t i = 0; i < EW_COUNT(fixed); i++)
        if (height == fixed[i].size && width == fixed[i].size)
            return fixed[i].mean;
    const double n = (double)(height * width);
    struct ew_dpu_mean best = {1, 0};
    double least = INFINITY;
    for (int s = 0; s < (int)ceil(log2(128 * n)); s++) {
        const double factor = round(ldexp(1, s) / n), error = fabs(ldexp(factor, -s) - 1 / n);
        if (error < least) {
            least = error;
            best = (struct ew_dpu_mean){(int)factor, s};
        }
    }
    return best;
}

int64_t ew_dpu_align(int64_t a, int from, int least)
{
    const int apart = from - least < 2 * FAR ? from - least : 2 * FAR;
    const int64_t guarded = a * (1 << EW_DPU_GUARD), step = (int64_t)1 << apart;
    return guarded >= 0 ? guarded / step : -((step - 1 - guarded) / step); /* floor */
}

/* With 1/6 = 2731 / 2^14: clip(2731 x + 3 * 2731 * 2^from, 0, 2^32) / 2^(14 + from). */
int8_t ew_dpu_hard_sigmoid(int x, int from, int to)
{
    const struct ew_quant_clamp all = {-128, 127};
    const double v = 2731.0 * x + ldexp(3 * 2731.0, from);
    const double cut = v < 0 ? 0 : (v > 0x1p32 ? 0x1p32 : v);
    /* negative positions give fractions: computed in units of 2^-32 */
    const int extra = from < 0 ? -from : 0;
    return ew_dpu_store((int64_t)ldexp(cut, extra), 14 + from - to + extra, &all);
}

int8_t ew_dpu_hard_swish(int x, int from, int to)
{
    const struct ew_quant_clamp all = {-128, 127};
    const int gate = ew_dpu_hard_sigmoid(x, from, EW_DPU_GATE_POSITION);
    return ew_dpu_store((int64_t)x * gate, from + EW_DPU_GATE_POSITION - to, &all);
}

int64_t ew_dpu_second(const struct ew_call *c, int64_t i)
{
    const struct ew_shape *s = &c->out[0]->shape;
    if (ew_tensor_count(c->in[1]) == ew_tensor_count(c->out[0]))
        return ew_tensor_get_int(c->in[1], i);
    const int64_t channels = s->dim[s->rank - 1], image = ew_tensor_count(c->out[0]) / s->dim[0];
    return ew_tensor_get_int(c->in[1], i / image * channels + i % channels);
}

ew_err ew_dpu_eltwise_infer(const struct ew_call *c)
{
    const struct ew_shape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    EW_TRY(ew_types_check(c, 0, 1 << EW_S8));
    EW_TRY(ew_types_check(c, 1, 1 << EW_S8));
    bool channels = a->rank == b->rank && a->rank > 1 && a->dim[0] == b->dim[0] &&
                    a->dim[a->rank - 1] == b->dim[a->rank - 1];
    for (int i = 1; i < a->rank - 1; i++)
        channels = channels && b->dim[i] == 1;
    EW_CHECK(channels || ew_shape_equal(a, b), EW_ERR_SHAPE,
             "the second input is neither like the first nor one value a channel");
    c->out[0]->dtype = EW_S8;
    c->out[0]->shape = *a;
    return EW_OK;
}

/* ---- Common part of dpu_add and dpu_mul ---- */

const struct ew_field ew_dpu_eltwise_attrs[] = {
    EW_QUANT_CLAMP_FIELDS(struct ew_dpu_eltwise_attr, clamp),
    EW_DPU_POSITION_FIELD(struct ew_dpu_eltwise_attr, a, "position of the first"),
    EW_DPU_POSITION_FIELD(struct ew_dpu_eltwise_attr, b, "position of the second"),
    EW_DPU_POSITION_FIELD(struct ew_dpu_eltwise_attr, y, "position of the result"), EW_FIELD_END};

/* clang-format off */
#define BYTES(shape) {shape, EW_S8, EW_FILL_BYTES}

const struct ew_op_case ew_dpu_eltwise_cases[EW_DPU_ELTWISE_CASES] = {
    {.name = "one position", .attrs = "a=4 b=4 y=4", .in = {BYTES("2x5x7x11"), BYTES("2x5x7x11")},
     .n_in = 2, .out_shape = "2x5x7x11"},
    {.name = "finer first, relu", .attrs = "a=7 b=4 y=3 lo=0", .in = {BYTES("300"), BYTES("300")},
     .n_in = 2, .out_shape = "300"},
    {.name = "finer second, far apart", .attrs = "a=-2 b=6 y=-3", .in = {BYTES("3x100"), BYTES("3x100")},
     .n_in = 2, .out_shape = "3x100"},
    {.name = "to a finer position", .attrs = "a=3 b=2 y=9", .in = {BYTES("100"), BYTES("100")},
     .n_in = 2, .out_shape = "100"},
    {.name = "one a channel, clamped", .attrs = "a=5 b=7 y=5 lo=-20 hi=90",
     .in = {BYTES("2x3x3x37"), BYTES("2x1x1x37")}, .n_in = 2, .out_shape = "2x3x3x37"},
};
/* clang-format on */

/* ---- Limits (product guide PG338) ---- */

#define KERNEL_MOST      16
#define POOL_KERNEL_MOST 256 /* of depthwise convolutions too */
#define STRIDE_MOST      8
#define CHANNELS_MOST    4096
#define WEIGHTS_MOST     2048 /* taps times groups of 16 input channels */

const char *ew_dpu_refuses_conv(const struct ew_conv_sizes *s)
{
    const struct ew_window *w = &s->w;
    const bool depthwise = s->groups > 1 && s->groups == w->channels && s->filters == w->channels;
    const int64_t kernel = ew_max_i64(w->kernel[1], w->kernel[2]);
    const int64_t stride = ew_max_i64(w->stride[1], w->stride[2]);
    if (w->in[0] > 1 || w->kernel[0] > 1)
        return "has three spatial dimensions";
    if (s->groups > 1 && !depthwise)
        return "is grouped, which the DPU only is by single channels";
    if (kernel > (depthwise ? POOL_KERNEL_MOST : KERNEL_MOST))
        return depthwise ? "has a kernel over 256" : "has a kernel over 16";
    if (stride > (depthwise ? POOL_KERNEL_MOST : STRIDE_MOST))
        return "has a stride over 8";
    if (w->channels > CHANNELS_MOST || s->filters > CHANNELS_MOST)
        return "has over 4096 channels";
    if (!depthwise && w->kernel[1] * w->kernel[2] * ((w->channels + 15) / 16) > WEIGHTS_MOST)
        return "has filters of over 2048 groups of 16 weights";
    return NULL;
}

const char *ew_dpu_refuses_dense(int64_t depth, int64_t filters)
{
    if (filters > CHANNELS_MOST)
        return "has over 4096 outputs";
    return (depth + 15) / 16 > WEIGHTS_MOST ? "has over 32768 inputs" : NULL;
}
