/* SPDX-License-Identifier: Apache-2.0 */
/* ThresholdedRelu: x where it is above alpha, else 0. */
#include "op/math_attr.h"
#include "op/pointwise.h"

static const struct ew_field attrs[] = {
    EW_SCALE_FIELD("alpha", alpha, "1", "threshold"),
    EW_FIELD_END,
};

static double f(double x, const void *attr)
{
    const struct ew_scale_attr *a = attr;
    return x > a->alpha ? x : 0;
}

static double df(double x, double y, const void *attr)
{
    return y > 0 || y < 0 ? 1 : 0;
}

EW_UNARY_FORWARD(f)
EW_UNARY_BACKWARD(df)

static const struct ew_op_case cases[] = {
    {.name = "plain",
     .in = {{"9", EW_F32, EW_FILL_VALUES, .values = "-1,-0.5,0,0.5,0.9,1.1,2,3,4"}},
     .n_in = 1,
     .out_shape = "9"},
    {.name = "below",
     .attrs = "alpha=-0.6",
     .in = {{"5", EW_F32, EW_FILL_VALUES, .values = "-1,-0.5,0.3,0.9,2"}},
     .n_in = 1,
     .out_shape = "5"},
};

const struct ew_op ew_op_thresholded_relu = {
    .name = "thresholded_relu",
    .help = "x where it is above alpha, else 0",
    .saves = EW_SAVE_OUT,
    .attr_size = sizeof(struct ew_scale_attr),
    .attrs = attrs,
    EW_UNARY_OP(.type = "ThresholdedRelu", .since = 10),
    EW_OP_CASES(cases),
};
