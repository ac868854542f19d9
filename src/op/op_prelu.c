/* SPDX-License-Identifier: Apache-2.0 */
/* PRelu: x, or slope x below 0, with a trainable slope that broadcasts to x. */
#include "op/pointwise.h"

static ew_err infer(const struct ew_call *c)
{
    EW_TRY(ew_broadcast_infer_number(c));
    char a[EW_SHAPE_TEXT], b[EW_SHAPE_TEXT];
    EW_CHECK(ew_shape_equal(&c->out[0]->shape, &c->in[0]->shape), EW_ERR_SHAPE,
             "a slope of %s does not broadcast to %s", ew_shape_text(&c->in[1]->shape, a),
             ew_shape_text(&c->in[0]->shape, b));
    return EW_OK;
}

static double f(double x, double slope)
{
    return x > 0 ? x : slope * x;
}

static int64_t fi(int64_t x, int64_t slope)
{
    return x > 0 ? x : (int64_t)((uint64_t)slope * (uint64_t)x);
}

static uint64_t fu(uint64_t x, uint64_t slope)
{
    return x;
}

static void df(double x, double slope, double *gx, double *gslope)
{
    *gx = x > 0 ? 1 : slope;
    *gslope = x > 0 ? 0 : x;
}

EW_BINARY_FORWARD(f, fi, fu)
EW_BINARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "channels",
     .in = {{"2x3x3x4", EW_F32, EW_FILL_AWAY}, {"4"}},
     .n_in = 2,
     .out_shape = "2x3x3x4"},
    {.name = "one", .in = {{"2x5", EW_F32, EW_FILL_AWAY}, {"1"}}, .n_in = 2, .out_shape = "2x5"},
    {.name = "rows",
     .in = {{"2x3x5x7", EW_F32, EW_FILL_AWAY}, {"3x1x1"}},
     .n_in = 2,
     .out_shape = "2x3x5x7"},
    {.name = "int", .in = {{"2x5", EW_S32}, {"5", EW_S32}}, .n_in = 2, .out_shape = "2x5"},
};

const struct ew_op ew_op_prelu = {
    .name = "prelu",
    .help = "x, or slope x below 0",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0 | EW_SAVE_IN1,
    .min_in = 2,
    .max_in = 2,
    .param_in = 1 << 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "PRelu", .since = 7},
    EW_OP_CASES(cases),
};
