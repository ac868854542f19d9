/* SPDX-License-Identifier: Apache-2.0 */
/* Ceil: the smallest whole number that is not below x. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return ceil(x);
}

EW_UNARY_FORWARD(f)

const struct ew_op ew_op_ceil = {
    .name = "ceil",
    .help = "x rounded up",
    EW_ROUNDING_OP(.type = "Ceil"),
    .forward = forward,
};
