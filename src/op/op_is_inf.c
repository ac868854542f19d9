/* SPDX-License-Identifier: Apache-2.0 */
/* IsInf: true where x is infinite, of either sign or of one. */
#include "op/pointwise.h"

struct attr {
    bool negative, positive;
};

static const struct ew_field attrs[] = {
    {.name = "detect_negative",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct attr, negative),
     .def = "true",
     .help = "minus infinity counts"},
    {.name = "detect_positive",
     .type = EW_FIELD_BOOL,
     .offset = offsetof(struct attr, positive),
     .def = "true",
     .help = "plus infinity counts"},
    EW_FIELD_END,
};

static double f(double x, const void *attr)
{
    const struct attr *a = attr;
    return isinf(x) && (x < 0 ? a->negative : a->positive) ? 1 : 0;
}

EW_UNARY_FORWARD(f)

static const struct ew_op_case cases[] = {
    {.name = "both",
     .in = {{"4", EW_F32, EW_FILL_VALUES, .values = "nan,1,inf,-inf"}},
     .n_in = 1,
     .out_shape = "4"},
    {.name = "positive",
     .attrs = "detect_negative=false",
     .in = {{"3", EW_F16, EW_FILL_VALUES, .values = "1,inf,-inf"}},
     .n_in = 1,
     .out_shape = "3"},
};

const struct ew_op ew_op_is_inf = {
    .name = "is_inf",
    .help = "true where x is infinite",
    .flags = EW_OP_ELEMENTWISE,
    .min_in = 1,
    .max_in = 1,
    .attr_size = sizeof(struct attr),
    .attrs = attrs,
    .infer = ew_unary_infer_test,
    .forward = forward,
    .onnx = {.type = "IsInf", .since = 10},
    EW_OP_CASES(cases),
};
