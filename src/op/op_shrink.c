/* SPDX-License-Identifier: Apache-2.0 */
/* Shrink: towards 0 by bias, and 0 within lambd of it. */
#include "op/math_attr.h"
#include "op/pointwise.h"

static const struct ew_field attrs[] = {
    EW_SCALE_FIELD("lambd", alpha, "0.5", "threshold"),
    EW_SCALE_FIELD("bias", beta, "0", "step towards 0"),
    EW_FIELD_END,
};

static double f(double x, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    if (x < -a->alpha)
        return x + a->beta;
    return x > a->alpha ? x - a->beta : 0;
}

static double df(double x, double y, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return fabs(x) > a->alpha ? 1 : 0;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "hard",
     .in = {{"7", EW_F32, EW_FILL_VALUES, .values = "-2,-0.6,-0.4,0,0.4,0.6,2"}},
     .n_in = 1,
     .out_shape = "7"},
    {.name = "soft",
     .attrs = "lambd=1.5 bias=1.5",
     .in = {{"7", EW_F32, EW_FILL_VALUES, .values = "-2,-1,-0.4,0,0.4,1.6,2"}},
     .n_in = 1,
     .out_shape = "7"},
};

const struct ew_op ew_op_shrink = {
    .name = "shrink",
    .help = "x drawn towards 0 by bias, 0 within lambd of it",
    .flags = EW_OP_INPLACE | EW_OP_ELEMENTWISE,
    .saves = EW_SAVE_IN0,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct ew_scale_attr),
    .attrs = attrs,
    .infer = ew_unary_infer_number,
    .forward = forward,
    .backward = backward,
    .onnx = {.type = "Shrink", .since = 9},
    EW_OP_CASES(cases),
};
