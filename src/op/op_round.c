/* SPDX-License-Identifier: Apache-2.0 */
/* Round: the nearest whole number, the even one of two. */
#include "op/pointwise.h"

static double f(double x, const void *attr)
{
    return nearbyint(x);
}

EW_UNARY_FORWARD(f)

const struct ew_op ew_op_round = {
    .name = "round",
    .help = "x rounded to nearest, halves to even",
    EW_ROUNDING_OP(.type = "Round", .since = 11),
    .forward = forward,
};
